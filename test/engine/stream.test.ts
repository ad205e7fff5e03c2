import { describe, expect, it } from "@effect/vitest"
import { APICallError, tool as sdkTool } from "ai"
import { defineAgent, defineEffectTool, effectSchema, Engine, Output, type StreamedPart, tool } from "chamvi-effect"
import { Deferred, Effect, Schema, Stream } from "effect"
import { calls as answersCalls, says as answers, scripted } from "../support/model.ts"
import { begins, calls, says, streaming } from "../support/streamModel.ts"
import { breaking, partsOf, reading, shortOf, textsOf, waiting } from "../support/streams.ts"
import { engines } from "./support.ts"

const add = tool({
  inputSchema: Schema.Struct({ a: Schema.Finite }),
  execute: ({ a }) => Effect.succeed(a + 1)
})

const prompt = "Go."

describe.each(engines)("Engine.stream $where", ({ withAgents }) => {
  it.live("gives texts as they are written, and tool results as they come", () =>
    Effect.gen(function*() {
      const [written, counted] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const count = defineEffectTool({
        inputSchema: Schema.Struct({}),
        streaming: true,
        execute: () => Stream.concat(Stream.make(1), Stream.fromEffect(Effect.as(Deferred.await(counted), 2)))
      })
      const agent = defineAgent({
        name: "live",
        stream: true,
        model: streaming(() =>
          waiting([written], begins("Let ", "me "), [
            { type: "text-delta", id: "t", delta: "count." },
            { type: "text-end", id: "t" },
            ...calls(["count", {}])
          ]), says("Done.")),
        tools: { count }
      })
      yield* withAgents([agent])((engine) =>
        Effect.scoped(Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt })
          const reader = yield* reading(engine, "1")
          const first = yield* reader.until((part) => part.type === "text-delta")
          expect(shortOf(first.map(({ part }) => part))[0]).toBe("start-step 0")
          // the model goes on only now that what it wrote was read
          yield* Deferred.succeed(written, undefined)
          const second = yield* reader.until((part) => part.type === "tool-result")
          expect(second.at(-1)?.part).toMatchObject({ toolName: "count", output: 1, preliminary: true })
          yield* Deferred.succeed(counted, undefined)
          const rest = yield* reader.until((part) => part.type === "run-completed")
          expect(shortOf([...first, ...second, ...rest].map(({ part }) => part))).toEqual([
            "start-step 0",
            `"Let me count."`,
            "tool-call count {}",
            "preliminary 1",
            "preliminary 2",
            "tool-result 2",
            "finish-step 0",
            "start-step 1",
            `"Done."`,
            "finish-step 1",
            "run-completed"
          ])
        }))
      )
    }))

  it.live("gives a late reader all parts, and one that comes back those behind its cursor, wherever it stopped", () => {
    const agent = defineAgent({
      name: "late",
      stream: true,
      model: streaming(
        [...begins("Let me add."), ...calls(["add", { a: 1 }], ["nothing", {}])],
        says("It ", "is ", "2.")
      ),
      tools: { add }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const live = yield* Stream.runCollect(engine.stream("1"))
        expect(live.at(-1)?.part).toEqual({ type: "run-completed" })
        expect(yield* Stream.runCollect(engine.stream("1"))).toEqual(live)
        expect(new Set(live.map(({ cursor }) => cursor)).size).toBe(live.length)
        for (const [index, { cursor }] of live.entries()) {
          expect(yield* Stream.runCollect(engine.stream("1", { after: cursor }))).toEqual(live.slice(index + 1))
        }
        // what is no cursor of this run begins at the beginning
        for (const after of ["", "nonsense", "00000000.1.1", `${live[2]!.cursor}.1.1`, "1.2"]) {
          expect(yield* Stream.runCollect(engine.stream("1", { after }))).toEqual(live)
        }
      })
    )
  })

  it.live("lets a reader be as slow as it likes, and the run goes on", () => {
    const agent = defineAgent({
      name: "slow",
      stream: true,
      model: streaming(says(...Array.from({ length: 2000 }, (_, index) => `${index} `)))
    })
    return withAgents([agent])((engine) =>
      Effect.scoped(Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const pull = yield* Stream.toPull(Stream.rechunk(engine.stream("1"), 1))
        const [first] = yield* Effect.orDie(pull as Effect.Effect<readonly [StreamedPart], unknown>)
        // nobody reads on, and the run comes to its end
        const { text } = yield* engine.resume(agent, "1")
        const rest: Array<StreamedPart> = []
        while (rest.at(-1)?.part.type !== "run-completed") {
          rest.push(...yield* Effect.orDie(pull as Effect.Effect<readonly [StreamedPart], unknown>))
        }
        expect(textsOf([first, ...rest].map(({ part }) => part))).toEqual([text])
      }))
    )
  })

  it.live("gives whole texts where the agent does not stream", () => {
    const agent = defineAgent({
      name: "whole",
      model: scripted(answersCalls(["add", { a: 1 }]), answers("It is 2.")),
      tools: { add }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const parts = yield* partsOf(engine, "1")
        expect(parts.filter(({ type }) => type === "text-delta")).toEqual([
          { type: "text-delta", id: "0", text: "It is 2." }
        ])
        expect(shortOf(parts)).toEqual([
          "start-step 0",
          `tool-call add {"a":1}`,
          "tool-result 2",
          "finish-step 0",
          "start-step 1",
          `"It is 2."`,
          "finish-step 1",
          "run-completed"
        ])
      })
    )
  })

  it.live("tells of calls that are invalid or fail what the model reads of them", () => {
    const fails = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail("out of stock") })
    const agent = defineAgent({
      name: "fails",
      stream: true,
      model: streaming(calls(["fails", {}], ["add", { a: "no number" }]), says("Sorry.")),
      tools: { add, fails }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const parts = yield* partsOf(engine, "1")
        expect(shortOf(parts).slice(1, 4)).toEqual([
          "tool-call fails {}",
          `tool-call add {"a":"no number"} invalid`,
          "tool-error out of stock"
        ])
      })
    )
  })

  it.live("announces a step whose model call failed and is made again, and the step's parts stand once in the end", () => {
    const broken = new APICallError({ message: "overloaded", url: "", requestBodyValues: {}, isRetryable: true })
    const agent = defineAgent({
      name: "again",
      stream: true,
      model: streaming(() => breaking(broken, ...begins("Hel")), says("Hello.")),
      maxRetries: 1
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const parts = yield* partsOf(engine, "1")
        expect(shortOf(parts)).toEqual([
          "start-step 0",
          `"Hel"`,
          "step-restarted 0",
          `"Hello."`,
          "finish-step 0",
          "run-completed"
        ])
        expect(textsOf(parts)).toEqual(["Hello."])
      })
    )
  })

  it.live("ends where the run fails, and tells a reader that follows of its retry", () => {
    const output = Output.object({ schema: Schema.Struct({ ok: Schema.Boolean }) })
    const agent = defineAgent({
      name: "retried",
      stream: true,
      model: streaming(calls(["add", { a: 1 }]), says("none"), says(`{"ok":true}`)),
      tools: { add },
      output
    })
    return withAgents([agent])((engine) =>
      Effect.scoped(Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const follower = yield* reading(engine, "1", { follow: true })
        const before = yield* Stream.runCollect(engine.stream("1"))
        expect(before.at(-1)?.part).toMatchObject({ type: "run-failed", failure: { step: 1 } })
        yield* follower.until((part) => part.type === "run-failed")
        yield* engine.retry("1")
        const followed = yield* follower.until((part) => part.type === "run-completed")
        const after = yield* Stream.runCollect(engine.stream("1", { after: before.at(-1)!.cursor }))
        expect(followed).toEqual(after)
        expect(shortOf(after.map(({ part }) => part))).toEqual([
          "step-restarted 1",
          `"{"ok":true}"`,
          "finish-step 1",
          "run-completed"
        ])
      }))
    )
  })

  it.live("ends where the run waits for a person, and goes on behind it once there is an answer", () => {
    const pay = tool({ inputSchema: Schema.Struct({}), needsApproval: true, execute: () => Effect.succeed("paid") })
    const agent = defineAgent({
      name: "waits",
      stream: true,
      model: streaming(calls(["add", { a: 1 }], ["pay", {}]), calls(["pay", {}]), says("Done.")),
      tools: { add, pay }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const first = yield* Stream.runCollect(engine.stream("1"))
        const [request] = first.flatMap(({ part }) => part.type === "tool-approval-request" ? [part] : [])
        expect(first.at(-1)?.part).toMatchObject({
          type: "run-waiting",
          approvals: [{ id: request?.approvalId, toolName: "pay" }]
        })
        // nothing has happened since
        expect(yield* Stream.runCollect(engine.stream("1", { after: first.at(-1)!.cursor }))).toEqual([])
        yield* engine.approve("1", request!.approvalId)
        const second = yield* Stream.runCollect(engine.stream("1", { after: first.at(-1)!.cursor }))
        expect(shortOf(second.map(({ part }) => part))).toEqual([
          "tool-approval-response yes",
          `tool-result "paid"`,
          "finish-step 0",
          "start-step 1",
          "tool-call pay {}",
          "tool-approval-request",
          "run-waiting"
        ])
        yield* engine.deny("1", Engine.approvalId({ step: 1, toolCallId: "call-1" }))
        const third = yield* Stream.runCollect(engine.stream("1", { after: second.at(-1)!.cursor }))
        expect(shortOf(third.map(({ part }) => part))).toEqual([
          "tool-approval-response no",
          "tool-output-denied",
          "finish-step 1",
          "start-step 2",
          `"Done."`,
          "finish-step 2",
          "run-completed"
        ])
        // replays have published nothing again
        expect(yield* partsOf(engine, "1")).toEqual(
          [...first, ...second, ...third].map(({ part }) => part).filter(({ type }) => type !== "run-waiting")
        )
      })
    )
  })

  it.live("ends where the run is cancelled, with what was written until then", () =>
    Effect.gen(function*() {
      const agent = defineAgent({
        name: "cancelled",
        stream: true,
        model: streaming(() => waiting([Deferred.makeUnsafe()], begins("Once upon a time"), []))
      })
      yield* withAgents([agent])((engine) =>
        Effect.scoped(Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt })
          const reader = yield* reading(engine, "1")
          yield* reader.until((part) => part.type === "text-delta")
          yield* engine.cancel("1")
          yield* reader.until((part) => part.type === "run-cancelled")
          expect(shortOf(yield* partsOf(engine, "1"))).toEqual(["start-step 0", `"Once upon a time"`, "run-cancelled"])
        }))
      )
    }))

  it.live("keeps bytes, and files of the model, apart where they are large", () => {
    const bytes = new Uint8Array(100_000).fill(7)
    const image = sdkTool({ inputSchema: effectSchema(Schema.Struct({})), execute: () => ({ bytes }) })
    const agent = defineAgent({
      name: "bytes",
      stream: true,
      model: streaming([
        { type: "file", mediaType: "image/png", data: { type: "data", data: Buffer.from(bytes).toString("base64") } },
        ...calls(["image", {}])
      ], says("Done.")),
      tools: { image }
    })
    return withAgents([agent], { maxRowSize: 20_000 })((engine) =>
      Effect.gen(function*() {
        yield* engine.start(agent, { runId: "1", prompt })
        const parts = yield* partsOf(engine, "1")
        expect(parts.find(({ type }) => type === "file")).toEqual({ type: "file", mediaType: "image/png", data: bytes })
        expect(parts.find(({ type }) => type === "tool-result")).toMatchObject({ output: { bytes } })
      })
    )
  })

  it.live("knows no run that was never started, and forgets the parts of one that is pruned", () => {
    const agent = defineAgent({ name: "pruned", stream: true, model: streaming(says("One."), says("Two.")) })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect(yield* Effect.flip(partsOf(engine, "1"))).toMatchObject({ _tag: "RunNotFoundError" })
        yield* engine.start(agent, { runId: "1", prompt })
        const first = yield* Stream.runCollect(engine.stream("1"))
        yield* engine.prune({ olderThan: -1 })
        expect(yield* Effect.flip(partsOf(engine, "1"))).toMatchObject({ _tag: "RunNotFoundError" })
        yield* engine.start(agent, { runId: "1", prompt })
        // the cursor is one of the run before
        const second = yield* partsOf(engine, "1", { after: first.at(-1)!.cursor })
        expect(textsOf(second)).toEqual(["Two."])
      })
    )
  })
})
