/** `streamText`: how far a provider is read, which depends on who reads its stream. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue, Schema, Stream } from "effect"
import { Ai } from "../src/Ai.ts"
import { streamText } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { begins, calls, provided, says, streaming, type StreamPart } from "./support/streamModel.ts"

/** Whatever the AI SDK would still do without being asked is done after a few turns of the event loop. */
const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
})

function* words(count: number): Generator<StreamPart> {
  yield* begins()
  for (let index = 0; index < count; index++) yield { type: "text-delta", id: "t", delta: `${index} ` }
  yield* says().slice(2)
}

describe("backpressure", () => {
  it.effect("reaches the provider: it is read as far as its reader, and a small buffer", () =>
    Effect.gen(function*() {
      const { pulled, stream } = provided(words(10_000))
      const result = yield* streamText({ model: streaming(stream), prompt: "go" })
      const taken = yield* Queue.unbounded<string>()
      const go = yield* Queue.unbounded<void>()
      yield* Effect.forkChild(
        Stream.runForEach(result.textStream, (text) => Effect.andThen(Queue.offer(taken, text), Queue.take(go)))
      )
      for (let index = 0; index < 100; index++) {
        yield* Queue.take(taken)
        yield* settled
        assert.isBelow(pulled(), index + 25)
        yield* Queue.offer(go, undefined)
      }
      assert.isAtLeast(pulled(), 100)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("holds where nobody reads", () =>
    Effect.gen(function*() {
      const { pulled, stream } = provided(words(10_000))
      yield* streamText({ model: streaming(stream), prompt: "go" })
      yield* settled
      assert.isBelow(pulled(), 25)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("holds for the body of a response", () =>
    Effect.gen(function*() {
      for (const kind of ["toUIMessageStreamResponse", "toTextStreamResponse"] as const) {
        const { pulled, stream } = provided(words(10_000))
        const result = yield* streamText({ model: streaming(stream), prompt: "go" })
        const response = yield* result[kind]()
        const reader = response.body!.getReader()
        for (let index = 0; index < 20; index++) {
          yield* Effect.promise(() => reader.read())
          yield* settled
          assert.isBelow(pulled(), index + 45)
        }
        yield* Effect.promise(() => reader.cancel())
      }
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is that of the fastest reader: the slower ones find all that came", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: streaming([...words(500)]), prompt: "go" })
      const go = yield* Deferred.make<void>()
      const slow = yield* Effect.forkChild(
        Stream.runCollect(Stream.tap(result.textStream, () => Deferred.await(go))),
        { startImmediately: true }
      )
      const text = yield* result.text
      yield* Deferred.succeed(go, undefined)
      const texts = yield* Fiber.join(slow)
      assert.strictEqual(texts.length, 500)
      assert.strictEqual(texts.join(""), text)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("keeps of what tools stream only the newest of each, for readers to come", () =>
    Effect.gen(function*() {
      const count = (name: string) =>
        tool({
          streaming: true,
          inputSchema: Schema.Struct({}),
          execute: () => Stream.map(Stream.range(1, 100), (index) => `${name} ${index}`)
        })
      const result = yield* streamText({
        model: streaming(calls(["left", {}], ["right", {}])),
        prompt: "go",
        tools: { left: yield* count("left"), right: yield* count("right") }
      })
      const outputs = Effect.map(Stream.runCollect(result.stream), (parts) =>
        parts.flatMap((part) =>
          part.type === "tool-result" ? [`${String(part.output)} ${part.preliminary ?? "final"}`] : []
        ))
      assert.strictEqual((yield* outputs).length, 202)
      assert.deepStrictEqual((yield* outputs).sort(), [
        "left 100 final",
        "left 100 true",
        "right 100 final",
        "right 100 true"
      ])
    }).pipe(Effect.provide(Ai.layer)))
})
