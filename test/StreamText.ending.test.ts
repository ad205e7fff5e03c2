/** `streamText`: how a call ends that nobody reads on. */
import { assert, describe, it } from "@effect/vitest"
import * as ai from "ai"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { Ai } from "../src/Ai.ts"
import { EffectStore } from "../src/EffectStore.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { streamText } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { ToolContext } from "../src/ToolContext.ts"
import { begins, calls, provided, says, streaming, type StreamPart } from "./support/streamModel.ts"

/** Whatever the AI SDK would still do without being asked is done after a few turns of the event loop. */
const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
})

/** A provider that goes on for ever, and what it was told. */
const endless = (parts: ReadonlyArray<StreamPart> = begins("a", "b", "c")) => {
  const { cancelled, stream } = provided(parts, "wait")
  let signal: AbortSignal | undefined
  const model = streaming((options) => {
    signal = options.abortSignal
    return stream
  })
  return { model, cancelled, aborted: () => signal?.aborted === true }
}

/** A tool that waits for ever, and says how it ended. */
const waiting = Effect.gen(function*() {
  const started = yield* Deferred.make<void>()
  const log: Array<string> = []
  const slow = yield* tool({
    inputSchema: Schema.Struct({}),
    execute: () =>
      Effect.gen(function*() {
        yield* Effect.addFinalizer(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("scope closed"))))
        yield* Deferred.succeed(started, undefined)
        return yield* Effect.never
      }).pipe(Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("interrupted")))))
  })
  return { slow, started: Deferred.await(started), log }
})

const ended = ["interrupted", "scope closed"]

describe("a stream that is left", () => {
  it.effect("by its last reader ends the call: the provider's signal fires, and its stream is cancelled", () =>
    Effect.gen(function*() {
      const { aborted, cancelled, model } = endless()
      const aborts: Array<unknown> = []
      const result = yield* streamText({
        model,
        prompt: "go",
        onAbort: ({ reason }) => Effect.sync(() => aborts.push(reason))
      })
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(result.textStream, 2)), ["a", "b"])
      assert.isTrue(aborted())
      assert.isTrue(cancelled())
      assert.strictEqual(aborts.length, 1)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("has no text: who comes later gets a failure that says why", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: endless().model, prompt: "go" })
      yield* Stream.runDrain(Stream.take(result.textStream, 1))
      for (const read of [result.text, result.steps, Stream.runCollect(result.textStream), result.consumeStream]) {
        const error = yield* Effect.flip(read as typeof result.text)
        assert.strictEqual(error.reason, "Aborted")
        assert.include(error.message, "last reader left")
      }
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("by one of its readers goes on for the others", () =>
    Effect.gen(function*() {
      const model = streaming(says("a", "b", "c", "d"))
      const result = yield* streamText({ model, prompt: "go" })
      const text = yield* Effect.forkChild(result.text, { startImmediately: true })
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(result.textStream, 1)), ["a"])
      assert.strictEqual(yield* Fiber.join(text), "abcd")
      assert.isFalse(model.doStreamCalls[0]?.abortSignal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  const leavers = {
    "stream": "stream",
    "textStream": "textStream",
    "partialOutputStream": "partialOutputStream",
    "elementStream": "elementStream",
    "text": "text",
    "output": "output",
    "consumeStream": "consumeStream",
    "a UI stream": "toUIMessageStream"
  } as const

  for (const [name, member] of Object.entries(leavers)) {
    it.effect(`by the interruption of ${name} waits for the finalizers of its tools`, () =>
      Effect.gen(function*() {
        const { log, slow, started } = yield* waiting
        const result = yield* streamText({
          model: streaming(calls(["slow", {}])),
          prompt: "go",
          tools: { slow },
          output: ai.Output.array({ element: ai.jsonSchema<string>({ type: "string" }) })
        })
        const made: unknown = result[member]
        const reader = typeof made === "function" ? made() : made
        const read = Stream.isStream(reader)
          ? Stream.runDrain(reader as unknown as Stream.Stream<unknown, unknown>)
          : reader as Effect.Effect<unknown, unknown>
        const fiber = yield* Effect.forkChild(read, { startImmediately: true })
        yield* started
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(log, ended)
        const exit = yield* Fiber.await(fiber)
        assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      }).pipe(Effect.provide(Ai.layer)))
  }

  it.effect("after its finish part has not been left: the call comes to its end", () =>
    Effect.gen(function*() {
      const told = yield* Deferred.make<string>()
      const model = streaming(says("a"))
      const result = yield* streamText({ model, prompt: "go", onEnd: ({ text }) => Deferred.succeed(told, text) })
      yield* Stream.runDrain(Stream.takeUntil(result.stream, ({ type }) => type === "finish"))
      assert.strictEqual(yield* Deferred.await(told), "a")
      assert.strictEqual(yield* result.text, "a")
      assert.isFalse(model.doStreamCalls[0]?.abortSignal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("does not wait for a notification that goes on, nor for a provider that ignores its signal", () =>
    Effect.gen(function*() {
      const told = yield* Deferred.make<void>()
      const result = yield* streamText({
        model: endless().model,
        prompt: "go",
        onChunk: () => Effect.andThen(Deferred.succeed(told, undefined), Effect.never)
      })
      const fiber = yield* Effect.forkChild(result.text, { startImmediately: true })
      yield* Deferred.await(told)
      yield* Fiber.interrupt(fiber)
      const silent = yield* streamText({ model: streaming(() => new Promise(() => {})), prompt: "go" })
      const other = yield* Effect.forkChild(silent.text, { startImmediately: true })
      yield* Fiber.interrupt(other)
    }).pipe(Effect.provide(Ai.layer)))
})

describe("a transform that stalls", () => {
  it.effect("holds up its readers, and nobody who ends the call: tools are waited for even so", () =>
    Effect.gen(function*() {
      const { log, slow, started } = yield* waiting
      const model = streaming([...begins("a"), ...calls(["slow", {}]).slice(1)])
      const result = yield* streamText({
        model,
        prompt: "go",
        tools: { slow },
        experimental_transform: () =>
          new TransformStream({
            transform: (part, controller) =>
              part.type === "tool-call" ? new Promise(() => {}) : controller.enqueue(part)
          })
      })
      const fiber = yield* Effect.forkChild(result.text, { startImmediately: true })
      yield* started
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(log, ended)
      assert.isTrue(model.doStreamCalls[0]?.abortSignal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))
})

describe("the scope of a stream", () => {
  it.effect("ends the call when it closes, and waits for the finalizers of its tools", () =>
    Effect.gen(function*() {
      const { log, slow, started } = yield* waiting
      const scope = yield* Scope.make()
      const model = streaming(calls(["slow", {}]))
      const result = yield* streamText({ model, prompt: "go", tools: { slow } }).pipe(Scope.provide(scope))
      const fiber = yield* Effect.forkChild(Effect.flip(result.text))
      yield* started
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(log, ended)
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.reason, "Aborted")
      assert.include(error.message, "scope closed")
      assert.isTrue(model.doStreamCalls[0]?.abortSignal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("ends a call that nobody reads", () =>
    Effect.gen(function*() {
      const { aborted, cancelled, model } = endless()
      yield* Effect.scoped(Effect.andThen(streamText({ model, prompt: "go" }), settled))
      assert.isTrue(aborted())
      assert.isTrue(cancelled())
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("closed after the end takes nothing from what was read", () =>
    Effect.gen(function*() {
      const model = streaming(says("a"))
      const result = yield* Effect.scoped(
        Effect.tap(streamText({ model, prompt: "go" }), (result) => result.consumeStream)
      )
      assert.strictEqual(yield* result.text, "a")
      assert.deepStrictEqual(yield* Stream.runCollect(result.textStream), ["a"])
      assert.isFalse(model.doStreamCalls[0]?.abortSignal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is that of the fiber: interrupting it ends the call", () =>
    Effect.gen(function*() {
      const { log, slow, started } = yield* waiting
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const result = yield* streamText({ model: streaming(calls(["slow", {}])), prompt: "go", tools: { slow } })
        yield* Stream.runDrain(result.stream)
      })))
      yield* started
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(log, ended)
    }).pipe(Effect.provide(Ai.layer)))
})

describe("an abortSignal of the caller's own", () => {
  it.effect("fails all readers as Aborted, with its reason, when the tools have ended", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const reason = new Error("enough")
      const { log, slow, started } = yield* waiting
      const result = yield* streamText({
        model: streaming(calls(["slow", {}])),
        prompt: "go",
        tools: { slow },
        abortSignal: controller.signal
      })
      const readers = yield* Effect.forEach(
        [result.text, Stream.runDrain(result.stream), Stream.runDrain(result.textStream)],
        (read) => Effect.forkChild(Effect.flip(read as typeof result.text), { startImmediately: true })
      )
      yield* started
      controller.abort(reason)
      for (const reader of readers) {
        const error = yield* Fiber.join(reader)
        assert.deepStrictEqual(log, ended)
        assert.strictEqual(error.reason, "Aborted")
        assert.strictEqual(error.cause, reason)
      }
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("that is aborted already fails the call itself, and nothing is called", () =>
    Effect.gen(function*() {
      const model = streaming(says("a"))
      const error = yield* Effect.flip(streamText({ model, prompt: "go", abortSignal: AbortSignal.abort("no") }))
      assert.strictEqual(error.reason, "Aborted")
      assert.strictEqual(error.cause, "no")
      assert.strictEqual(model.doStreamCalls.length, 0)
    }).pipe(Effect.provide(Ai.layer)))
})

describe("an effect tool in a stream", () => {
  const ledger = Layer.mergeAll(Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))

  const pay = Effect.gen(function*() {
    const started = yield* Deferred.make<void>()
    let applied = 0
    const tool = yield* defineEffectTool({
      inputSchema: Schema.Struct({ order: Schema.Int }),
      effectKey: ({ order }) => `pay:${order}`,
      execute: () =>
        Effect.gen(function*() {
          if (applied++ === 0) {
            yield* Deferred.succeed(started, undefined)
            return yield* Effect.never
          }
          return applied
        })
    })
    return { pay: tool, started: Deferred.await(started), applied: () => applied }
  })

  it.effect("is reconciled: two streams of a run apply it once", () =>
    Effect.gen(function*() {
      let charged = 0
      const charge = yield* defineEffectTool({
        inputSchema: Schema.Struct({ order: Schema.Int }),
        execute: () => Effect.sync(() => ++charged)
      })
      const call = Effect.scoped(Effect.flatMap(
        Effect.suspend(() =>
          streamText({
            model: streaming(calls(["charge", { order: 7 }], ["charge", { order: 7 }]), says("ok")),
            prompt: "go",
            tools: { charge },
            stopWhen: ai.isStepCount(2)
          })
        ),
        (result) => result.toolResults
      ))
      const outputs = [...yield* call, ...yield* call].map(({ output }) => output)
      assert.deepStrictEqual(outputs, [1, 1, 1, 1])
      assert.strictEqual(charged, 1)
    }).pipe(Effect.provide(ledger)))

  it.effect("that is left is interrupted, and its key is in doubt", () =>
    Effect.gen(function*() {
      const { applied, pay: tool, started } = yield* pay
      const result = yield* streamText({
        model: streaming(calls(["pay", { order: 7 }])),
        prompt: "go",
        tools: { pay: tool }
      })
      const fiber = yield* Effect.forkChild(result.text, { startImmediately: true })
      yield* started
      yield* Fiber.interrupt(fiber)
      const store = yield* EffectStore
      assert.strictEqual((yield* store.get("pay:7"))?.doubt, "inDoubt")
      assert.strictEqual(applied(), 1)
    }).pipe(Effect.provide(ledger)))

  it.effect("goes on for another stream that waits for it", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const started = yield* Deferred.make<void>()
      let applied = 0
      const charge = yield* defineEffectTool({
        inputSchema: Schema.Struct({ order: Schema.Int }),
        execute: () =>
          Effect.gen(function*() {
            yield* Deferred.succeed(started, undefined)
            yield* Deferred.await(gate)
            return ++applied
          })
      })
      const call = Effect.suspend(() =>
        streamText({ model: streaming(calls(["charge", { order: 7 }])), prompt: "go", tools: { charge } })
      )
      const left = yield* call
      const stayed = yield* call
      const leaver = yield* Effect.forkChild(left.text, { startImmediately: true })
      const stayer = yield* Effect.forkChild(stayed.toolResults, { startImmediately: true })
      yield* Deferred.await(started)
      yield* settled
      yield* Fiber.interrupt(leaver)
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual((yield* Fiber.join(stayer)).map(({ output }) => output), [1])
      assert.strictEqual(applied, 1)
    }).pipe(Effect.provide(ledger)))
})
