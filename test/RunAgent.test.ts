/** Agents of the AI SDK as Effects: their tools bound to the call, their failures typed, their end waited for. */
import { assert, describe, it } from "@effect/vitest"
import {
  type Agent,
  APICallError,
  generateText as sdkGenerateText,
  isStepCount,
  Output,
  ToolLoopAgent,
  type ToolSet
} from "ai"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  EffectStore,
  runAgent,
  streamAgent,
  tool,
  ToolContext,
  ToolNotAllowedError,
  wrapToolsForRun
} from "chamvi-effect"
import { Cause, Context, Data, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { expectTypeOf } from "vitest"
import { z } from "zod"
import { calls, readBy, says, scripted } from "./support/model.ts"
import { calls as streamsCalls, says as streamsText, streaming } from "./support/streamModel.ts"
import { Remote } from "./support/remote.ts"

const label = defineEffectTool({
  description: "Adds a label.",
  inputSchema: Schema.Struct({ label: Schema.String }),
  execute: ({ label }) => Effect.flatMap(Remote, (remote) => remote.apply(label))
})

const applied = Effect.map(Remote, (remote) => remote.applied.length)
const layers = Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), EffectStore.layerMemory, Remote.layer)
const labelling = () => scripted(calls(["label", { label: "bug" }]), says("Labelled."))

describe("runAgent", () => {
  it.effect("answers the result of the agent's generate", () =>
    Effect.gen(function*() {
      const add = yield* tool({
        inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        execute: ({ a, b }) => Effect.succeed(a + b)
      })
      const model = scripted(calls(["add", { a: 1, b: 2 }]), says("It is 3."))
      const agent = new ToolLoopAgent({ model, tools: { add } })
      const result = yield* runAgent(agent, { prompt: "1 + 2?" })
      assert.deepStrictEqual([result.text, result.steps[0]?.toolResults[0]?.output], ["It is 3.", 3])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("reconciles the effect tools of an agent that was made once, run by run", () =>
    Effect.gen(function*() {
      const turns = [calls(["label", { label: "bug" }, "a"], ["label", { label: "bug" }, "b"]), says("Labelled.")]
      const agent = new ToolLoopAgent({ model: scripted(...turns, ...turns, ...turns), tools: { label: yield* label } })
      const run = (runId: string) => Effect.provide(runAgent(agent, { prompt: "go" }), ToolContext.layer({ runId }))
      const first = yield* run("run-1")
      assert.deepStrictEqual(first.steps[0]?.toolResults.map(({ output }) => output), [
        { id: 1, text: "bug" },
        { id: 1, text: "bug" }
      ])
      yield* run("run-1")
      assert.strictEqual(yield* applied, 1)
      yield* run("run-2")
      assert.strictEqual(yield* applied, 2)
    }).pipe(Effect.provide(layers)))

  it.effect("leaves the agent as it is: outside of a run its effect tools refuse", () =>
    Effect.gen(function*() {
      const agent = new ToolLoopAgent({
        model: scripted(calls(["label", { label: "bug" }]), says("Labelled."), calls(["label", { label: "bug" }])),
        tools: { label: yield* label },
        stopWhen: isStepCount(2)
      })
      yield* runAgent(agent, { prompt: "go" })
      const result = yield* Effect.promise(() => agent.generate({ prompt: "go" }))
      const failed = result.steps[0]?.content.find((part) => part.type === "tool-error")
      assert.match(String(failed?.error), /wrapToolsForRun/)
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("keeps tools that were wrapped for a run bound to that run, with what it allows", () =>
    Effect.gen(function*() {
      const ctx = yield* ToolContext
      const tools = yield* wrapToolsForRun({ label: yield* label }, ctx, yield* EffectStore, () => false)
      const agent = new ToolLoopAgent({ model: labelling(), tools })
      const result = yield* runAgent(agent, { prompt: "go" })
      const failed = result.steps[0]?.content.find((part) => part.type === "tool-error")
      assert.instanceOf(failed?.error, ToolNotAllowedError)
      assert.strictEqual(yield* applied, 0)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("binds the tools that a prepareCall passes on, and no others", () =>
    Effect.gen(function*() {
      const own = { label: yield* label }
      const passing = new ToolLoopAgent({
        model: labelling(),
        tools: own,
        prepareCall: ({ options: _, ...rest }) => ({ ...rest, instructions: "Be brief." })
      })
      yield* runAgent(passing, { prompt: "go" })
      assert.strictEqual(yield* applied, 1)
      const adding = new ToolLoopAgent({
        model: scripted(calls(["label", { label: "new" }]), says("Labelled.")),
        tools: own,
        prepareCall: (call) => ({ ...call, tools: own })
      })
      const result = yield* runAgent(adding, { prompt: "go" })
      const failed = result.steps[0]?.content.find((part) => part.type === "tool-error")
      assert.match(String(failed?.error), /wrapToolsForRun/)
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("runs subclasses, their overrides, and what they remember", () =>
    Effect.gen(function*() {
      class Polite<TOOLS extends ToolSet> extends ToolLoopAgent<never, TOOLS> {
        greeted = 0
        override generate(options: Parameters<ToolLoopAgent<never, TOOLS>["generate"]>[0]) {
          this.greeted++
          return super.generate(options)
        }
      }
      const agent = new Polite({ model: labelling(), tools: { label: yield* label } })
      const result = yield* runAgent(agent, { prompt: "go" })
      assert.strictEqual(result.text, "Labelled.")
      assert.deepStrictEqual([agent.greeted, yield* applied], [1, 1])
    }).pipe(Effect.provide(layers)))

  it.effect("takes an agent of another make, whose effect tools refuse unless they are wrapped", () =>
    Effect.gen(function*() {
      const agentOf = <TOOLS extends ToolSet>(tools: TOOLS): Agent<never, TOOLS> => ({
        version: "agent-v1",
        id: "own",
        tools,
        generate: ({ abortSignal, prompt }) =>
          sdkGenerateText<TOOLS>({
            model: labelling(),
            prompt: prompt ?? "",
            tools,
            ...abortSignal === undefined ? {} : { abortSignal }
          } as never) as never,
        stream: () => Promise.reject(new Error("not here"))
      })
      const bare = { label: yield* label }
      const failed = (yield* runAgent(agentOf(bare), { prompt: "go" })).content.find(({ type }) =>
        type === "tool-error"
      )
      assert.match(String((failed as { readonly error: unknown }).error), /wrapToolsForRun/)
      assert.strictEqual(yield* applied, 0)
      const wrapped = yield* wrapToolsForRun(bare, yield* ToolContext, yield* EffectStore)
      yield* runAgent(agentOf(wrapped), { prompt: "go" })
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("aborts the agent when it is interrupted, and waits for the finalizers of its tools", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("interrupted"))))
          )
      })
      const agent = new ToolLoopAgent({ model: scripted(calls(["slow", {}])), tools: { slow } })
      const fiber = yield* Effect.forkChild(runAgent(agent, { prompt: "go" }))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.deepStrictEqual(log, ["interrupted"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("does not wait for a model that ignores the interrupt", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<AbortSignal | undefined>()
      const agent = new ToolLoopAgent({
        model: scripted(({ abortSignal }) => {
          Deferred.doneUnsafe(asked, Exit.succeed(abortSignal))
          return new Promise(() => undefined)
        })
      })
      const fiber = yield* Effect.forkChild(runAgent(agent, { prompt: "go" }))
      const signal = yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails as Aborted when a signal of the caller's own aborts", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const agent = new ToolLoopAgent({
        model: scripted(({ abortSignal }) =>
          new Promise((_, reject) => {
            abortSignal?.addEventListener("abort", () => reject(abortSignal.reason))
            controller.abort("enough")
          })
        )
      })
      const error = yield* Effect.flip(runAgent(agent, { prompt: "go", abortSignal: controller.signal }))
      assert.deepStrictEqual([error.reason, error.cause], ["Aborted", "enough"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails with AiError, after as many attempts as its Ai says where the agent does not", () =>
    Effect.gen(function*() {
      let asked = 0
      const busy = () => {
        asked++
        return Promise.reject(
          new APICallError({
            message: "busy",
            url: "https://api.example.com",
            requestBodyValues: {},
            responseHeaders: { "retry-after-ms": "0" },
            statusCode: 503
          })
        )
      }
      const error = yield* Effect.flip(runAgent(new ToolLoopAgent({ model: scripted(busy) }), { prompt: "go" }))
      assert.deepStrictEqual([error._tag, error.reason, error.attempts, asked], ["AiError", "APICallError", 2, 2])
      yield* Effect.flip(runAgent(new ToolLoopAgent({ model: scripted(busy), maxRetries: 0 }), { prompt: "go" }))
      assert.strictEqual(asked, 3)
    }).pipe(Effect.provide(Ai.layerDefaults({ maxRetries: 1 }))))

  it.effect("shows callbacks of the call and of the agent the identical failure of a tool, and the model what happened", () => {
    class Closed extends Data.TaggedError("Closed")<{ readonly issue: number }> {}
    class Seen extends Context.Service<Seen, { readonly errors: Array<unknown> }>()("app/Seen") {}
    const failure = new Closed({ issue: 7 })
    return Effect.gen(function*() {
      const { errors } = yield* Seen
      const close = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail(failure) })
      const keep = (part: { readonly type: string }) => {
        if (part.type === "tool-error") errors.push((part as unknown as { readonly error: unknown }).error)
      }
      const model = scripted(calls(["close", {}]), says("It was closed."))
      const agent = new ToolLoopAgent({
        model,
        tools: { close },
        onToolExecutionEnd: ({ toolOutput }) => keep(toolOutput),
        onStepEnd: ({ content }) => content.forEach(keep)
      })
      yield* runAgent(agent, {
        prompt: "go",
        onToolExecutionEnd: ({ toolOutput }) => Effect.map(Seen, () => keep(toolOutput)),
        onStepEnd: ({ content }) => Effect.map(Seen, () => content.forEach(keep))
      })
      assert.deepStrictEqual(errors.map((error) => error === failure), [true, true, true, true])
      assert.include(String(readBy(model)[0]), `Closed {"issue":7}`)
    }).pipe(Effect.provide([Ai.layer, Layer.succeed(Seen, { errors: [] })]))
  })

  it.effect("tells the listener of each effect tool's call", () => {
    const seen: Array<string> = []
    return Effect.gen(function*() {
      const agent = new ToolLoopAgent({ model: labelling(), tools: { label: yield* label } })
      yield* runAgent(agent, { prompt: "go" })
      assert.deepStrictEqual(seen, ["executed"])
    }).pipe(Effect.provide([layers, EffectEvent.layer(({ outcome }) => Effect.sync(() => void seen.push(outcome)))]))
  })
})

describe("streamAgent", () => {
  it.effect("answers the result of our streamText, with the agent's effect tools reconciled", () =>
    Effect.gen(function*() {
      const turns = [
        streamsCalls(["label", { label: "bug" }], ["label", { label: "bug" }]),
        streamsText("Label", "led.")
      ]
      const agent = new ToolLoopAgent({ model: streaming(...turns, ...turns), tools: { label: yield* label } })
      for (const _ of ["first", "second"]) {
        const result = yield* streamAgent(agent, { prompt: "go" })
        const [pieces, steps] = yield* Effect.all([Stream.runCollect(result.textStream), result.steps], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(pieces, ["Label", "led."])
        assert.deepStrictEqual(steps[0]?.toolResults.map(({ output }) => output), [
          { id: 1, text: "bug" },
          { id: 1, text: "bug" }
        ])
      }
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("parses the agent's output", () =>
    Effect.gen(function*() {
      const output = Output.object({ schema: z.object({ n: z.number() }) })
      const agent = new ToolLoopAgent({ model: streaming(streamsText(`{"n":`, "7}")), output })
      const result = yield* streamAgent(agent, { prompt: "go" })
      const answer = yield* result.output
      expectTypeOf(answer).toEqualTypeOf<{ n: number }>()
      assert.deepStrictEqual(answer, { n: 7 })
    }).pipe(Effect.scoped, Effect.provide(Ai.layer)))

  it.effect("tells callbacks of the call and of the agent, which may answer Effects", () => {
    const seen: Array<string> = []
    return Effect.gen(function*() {
      const agent = new ToolLoopAgent({
        model: streaming(streamsText("Hi.")),
        onEnd: () => {
          seen.push("agent ended")
        }
      })
      const result = yield* streamAgent(agent, {
        prompt: "go",
        onStepEnd: ({ text }) => Effect.sync(() => seen.push(`step: ${text}`)),
        onEnd: () => Effect.sync(() => seen.push("ended"))
      })
      yield* result.consumeStream
      assert.deepStrictEqual(seen, ["step: Hi.", "agent ended", "ended"])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer))
  })

  it.effect("fails its readers with AiError, and tells the agent's onError", () => {
    const errors: Array<unknown> = []
    const broken = new Error("no connection")
    return Effect.gen(function*() {
      const agent = new ToolLoopAgent({
        model: streaming(() => Promise.reject(broken)),
        onError: ({ error }) => {
          errors.push(error)
        }
      })
      const result = yield* streamAgent(agent, { prompt: "go" })
      const error = yield* Effect.flip(result.text)
      assert.deepStrictEqual([error._tag, error.reason], ["AiError", "Unknown"])
      assert.strictEqual(error.cause, broken)
      assert.deepStrictEqual(errors, [broken])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer))
  })

  it.effect("ends when its last reader leaves: the tool is interrupted, and waited for", () => {
    const log: Array<string> = []
    return Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("interrupted"))))
          )
      })
      const agent = new ToolLoopAgent({
        model: streaming(streamsCalls(["slow", {}])),
        tools: { slow },
        onAbort: () => {
          log.push("aborted")
        }
      })
      const result = yield* streamAgent(agent, { prompt: "go" })
      const fiber = yield* Effect.forkChild(result.text, { startImmediately: true })
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.includeMembers(log, ["interrupted", "aborted"])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer))
  })
})
