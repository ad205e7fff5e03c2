/**
 * Tools that stream, under the AI SDK's own calls.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ai from "ai"
import { Ai, defineEffectTool, EffectStore, generateText, streamText, tool, ToolContext } from "chamvi-effect"
import { Data, Effect, Exit, Fiber, Latch, Layer, Schema, Stream } from "effect"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { wrap } from "../support/wrapped.ts"
import { fork, settled, streams } from "./support.ts"

const empty = Schema.Struct({})
const layers = Layer.mergeAll(Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))

class Refused extends Data.TaggedError("Refused")<{ readonly by: string }> {}

/** What a stream shows of tools: each result, marked where it is preliminary. */
const resultsOf = (result: { readonly stream: AsyncIterable<unknown> }) =>
  Effect.promise(async () => {
    const shown: Array<unknown> = []
    for await (const part of result.stream as AsyncIterable<ai.TextStreamPart<ai.ToolSet>>) {
      if (part.type === "tool-result")
        shown.push(part.preliminary === true ? ["preliminary", part.output] : part.output)
      if (part.type === "tool-error")
        shown.push({ error: part.error })
    }
    return shown
  })

const streamed = (tools: ai.ToolSet, abortSignal?: AbortSignal) =>
  ai.streamText({
    model: streams(calls(["made", {}]), says("done")),
    prompt: "go",
    stopWhen: ai.isStepCount(2),
    tools,
    onError: () => {},
    ...abortSignal === undefined ? {} : { abortSignal }
  })

describe("Tools that stream, under the AI SDK", () => {
  it.effect("show preliminary results in streamText, and the last value as the result", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.make({ status: "loading" }, { status: "done" })
      })
      assert.deepStrictEqual(yield* resultsOf(streamed({ made })), [
        ["preliminary", { status: "loading" }],
        ["preliminary", { status: "done" }],
        { status: "done" }
      ])
    }))

  it.effect("emit no preliminary results where they do not stream", () =>
    Effect.gen(function*() {
      const plain = yield* tool({ inputSchema: empty, execute: () => Effect.succeed(1) })
      assert.deepStrictEqual(yield* resultsOf(streamed({ made: plain })), [1])
      const tools = yield* wrap({
        made: yield* defineEffectTool({ inputSchema: empty, execute: () => Effect.succeed(2) })
      })
      assert.deepStrictEqual(yield* resultsOf(streamed(tools)), [2])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("keep their preliminary and last values when they are wrapped, and are consumed once", () =>
    Effect.gen(function*() {
      let runs = 0
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          streaming: true,
          inputSchema: empty,
          execute: () => {
            runs++
            return Stream.make({ n: 1 }, { n: 2 }, { n: 3 })
          }
        })
      })
      assert.deepStrictEqual(yield* resultsOf(streamed(tools)), [
        ["preliminary", { n: 1 }],
        ["preliminary", { n: 2 }],
        ["preliminary", { n: 3 }],
        { n: 3 }
      ])
      // the SDK takes its result from the values that it sees, so a replay shows the recorded one once
      const rewrapped = yield* wrap(tools)
      assert.deepStrictEqual(yield* resultsOf(streamed(rewrapped)), [["preliminary", { n: 3 }], { n: 3 }])
      assert.strictEqual(runs, 1)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("share one run between two calls of one step: one shows its values, the other the last", () =>
    Effect.gen(function*() {
      let runs = 0
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          streaming: true,
          inputSchema: empty,
          execute: () => {
            runs++
            return Stream.tap(Stream.fromIterable(["a", "b"], { chunkSize: 1 }), () => Effect.yieldNow)
          }
        })
      })
      const result = ai.streamText({
        model: streams(calls(["made", {}], ["made", {}]), says("done")),
        prompt: "go",
        tools
      })
      const shown = yield* resultsOf(result)
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(shown.filter((output) => output === "b"), ["b", "b"])
      assert.deepStrictEqual(shown.filter((output) => Array.isArray(output) && output[1] === "a"), [[
        "preliminary",
        "a"
      ]])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("give generateText the last value, decoded for toModelOutput, which is asked once", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const outputSchema = Schema.Struct({ at: Schema.Date })
      const toModelOutput = ({ output }: { readonly output: { readonly at: Date } }) => {
        seen.push(output.at)
        return { type: "text" as const, value: output.at.toISOString() }
      }
      const execute = () => Stream.make({ at: new Date(0) }, { at: new Date(1) })
      const tools = {
        plain: yield* tool({ streaming: true, inputSchema: empty, outputSchema, execute, toModelOutput }),
        effect: yield* defineEffectTool({ streaming: true, inputSchema: empty, outputSchema, execute, toModelOutput })
      }
      const model = scripted(calls(["plain", {}], ["effect", {}]), says("done"))
      const result = yield* generateText({ model, prompt: "go", stopWhen: ai.isStepCount(2), tools })
      const last = { at: "1970-01-01T00:00:00.001Z" }
      assert.deepStrictEqual(result.steps[0]!.toolResults.map(({ output }) => output), [last, last])
      assert.deepStrictEqual(seen, [new Date(1), new Date(1)])
      assert.deepStrictEqual(readBy(model), [last.at, last.at])
    }).pipe(Effect.provide(layers)))

  it.effect("fail as every tool does: the identical value in the part, a description for the model", () =>
    Effect.gen(function*() {
      const refused = new Refused({ by: "remote" })
      const execute = () => Stream.concat(Stream.make(1), Stream.fail(refused))
      const tools = {
        plain: yield* tool({ streaming: true, inputSchema: empty, execute }),
        effect: yield* defineEffectTool({ streaming: true, inputSchema: empty, execute })
      }
      const model = scripted(calls(["plain", {}], ["effect", {}]), says("done"))
      const result = yield* generateText({ model, prompt: "go", stopWhen: ai.isStepCount(2), tools })
      const errors = result.steps[0]!.content.flatMap((part) => part.type === "tool-error" ? [part.error] : [])
      assert.strictEqual(errors[0], refused)
      assert.strictEqual(errors[1], refused)
      readBy(model).forEach((text) => assert.include(String(text), "remote"))
      assert.deepStrictEqual(yield* resultsOf(streamed({ made: tools.plain })), [["preliminary", 1], {
        error: refused
      }])
    }).pipe(Effect.provide(layers)))

  it.effect("are interrupted with generateText, which waits for their finalizers", () =>
    Effect.gen(function*() {
      const running = yield* Latch.make()
      const log: Array<string> = []
      const execute = (name: string) => () =>
        Stream.concat(Stream.succeed(name), Stream.fromEffect(Effect.andThen(running.open, Effect.never))).pipe(
          Stream.ensuring(Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push(name))))
        )
      for (
        const made of [
          yield* tool({ streaming: true, inputSchema: empty, execute: execute("plain") }),
          yield* defineEffectTool({ streaming: true, inputSchema: empty, execute: execute("effect") })
        ]
      ) {
        yield* running.close
        const call = yield* fork(generateText({ model: scripted(calls(["made", {}])), prompt: "go", tools: { made } }))
        yield* running.await
        yield* Fiber.interrupt(call)
      }
      assert.deepStrictEqual(log, ["plain", "effect"])
    }).pipe(Effect.provide(layers)))

  it.effect("are interrupted by the abort of a streamText, whether it pulls or not", () =>
    Effect.gen(function*() {
      const [running, closed] = [yield* Latch.make(), yield* Latch.make()]
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () =>
          Stream.concat(Stream.succeed(1), Stream.fromEffect(Effect.andThen(running.open, Effect.never))).pipe(
            Stream.ensuring(closed.open)
          )
      })
      const controller = new AbortController()
      const shown = yield* fork(resultsOf(streamed({ made }, controller.signal)))
      yield* running.await
      controller.abort(new Error("enough"))
      yield* closed.await
      assert.deepStrictEqual((yield* Fiber.join(shown))[0], ["preliminary", 1])
    }))

  it.effect("end by a timeout of their own with its reason, and leave the call as it is", () =>
    Effect.gen(function*() {
      let closed = 0
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.ensuring(Stream.never, Effect.sync(() => closed++))
      })
      const result = yield* generateText({
        model: scripted(calls(["made", {}]), says("done")),
        prompt: "go",
        stopWhen: ai.isStepCount(2),
        tools: { made },
        timeout: { toolMs: 1 }
      })
      assert.strictEqual(result.text, "done")
      assert.strictEqual(closed, 1)
      const [error] = result.steps[0]!.content.flatMap((part) => part.type === "tool-error" ? [part.error] : [])
      assert.strictEqual((error as DOMException).name, "TimeoutError")
    }).pipe(Effect.provide(layers)))

  it.effect("refuse without a store, where the types could not see it", () =>
    Effect.gen(function*() {
      const made = yield* defineEffectTool({ streaming: true, inputSchema: empty, execute: () => Stream.make(1) })
      const tools: ai.ToolSet = { made }
      const result = yield* generateText({ model: scripted(calls(["made", {}])), prompt: "go", tools })
      const [error] = result.content.flatMap((part) => part.type === "tool-error" ? [part.error] : [])
      assert.include(String(error), "without EffectStore")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("are consumed to the last value by a ToolLoopAgent", () =>
    Effect.gen(function*() {
      const made = yield* tool({ streaming: true, inputSchema: empty, execute: () => Stream.make(1, 2) })
      const agent = new ai.ToolLoopAgent({ model: scripted(calls(["made", {}]), says("done")), tools: { made } })
      const exit = yield* settled(() => agent.generate({ prompt: "go" }))
      assert.isTrue(Exit.isSuccess(exit))
      if (Exit.isSuccess(exit)) assert.strictEqual(exit.value.steps[0]!.toolResults[0]!.output, 2)
    }))

  it.effect("show preliminary results in streamText of this library, and fail there with the identical value", () =>
    Effect.gen(function*() {
      const refused = new Refused({ by: "remote" })
      let fails = false
      const tools = {
        plain: yield* tool({
          streaming: true,
          inputSchema: empty,
          execute: () =>
            Stream.concat(Stream.succeed("a"), Stream.suspend(() => fails ? Stream.fail(refused) : Stream.empty))
        }),
        effect: yield* defineEffectTool({ streaming: true, inputSchema: empty, execute: () => Stream.make("b", "c") })
      }
      const shown = (name: "plain" | "effect") =>
        Effect.gen(function*() {
          const { stream } = yield* streamText({
            model: streams(calls([name, {}]), says("done")),
            prompt: "go",
            stopWhen: ai.isStepCount(2),
            tools
          })
          const parts = yield* Stream.runCollect(stream)
          return parts.flatMap((part): ReadonlyArray<unknown> =>
            part.type === "tool-result"
              ? [part.preliminary === true ? ["preliminary", part.output] : part.output]
              : part.type === "tool-error"
              ? [part.error]
              : []
          )
        }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* shown("plain"), [["preliminary", "a"], "a"])
      assert.deepStrictEqual(yield* shown("effect"), [["preliminary", "b"], ["preliminary", "c"], "c"])
      assert.deepStrictEqual(yield* shown("effect"), [["preliminary", "c"], "c"])
      fails = true
      assert.strictEqual((yield* shown("plain")).at(-1), refused)
    }).pipe(Effect.provide(layers)))

  it.effect("are interrupted when the scope of that streamText closes, which waits for their finalizers", () =>
    Effect.gen(function*() {
      const running = yield* Latch.make()
      let closed = 0
      const execute = () =>
        Stream.concat(Stream.succeed(1), Stream.fromEffect(Effect.andThen(running.open, Effect.never))).pipe(
          Stream.ensuring(Effect.andThen(Effect.yieldNow, Effect.sync(() => closed++)))
        )
      for (
        const made of [
          yield* tool({ streaming: true, inputSchema: empty, execute }),
          yield* defineEffectTool({ streaming: true, inputSchema: empty, execute })
        ]
      ) {
        yield* running.close
        const before = closed
        yield* Effect.scoped(Effect.gen(function*() {
          const { stream } = yield* streamText({ model: streams(calls(["made", {}])), prompt: "go", tools: { made } })
          yield* fork(Stream.runDrain(stream))
          yield* running.await
        }))
        assert.strictEqual(closed, before + 1)
      }
    }).pipe(Effect.provide(layers)))
})
