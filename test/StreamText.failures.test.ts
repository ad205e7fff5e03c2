/** `streamText`: a call that fails is a failure in every stream and every Effect, with its cause. */
import { assert, describe, it, vi } from "@effect/vitest"
import { APICallError, isStepCount, NoOutputGeneratedError } from "ai"
import { Cause, Data, Effect, Exit, Schema, Stream } from "effect"
import { Ai } from "../src/Ai.ts"
import { AiError } from "../src/AiError.ts"
import * as Output from "../src/Output.ts"
import { streamText, type StreamTextResult } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { begins, calls, type MakeTurn, says, streaming, type StreamPart, type Turn } from "./support/streamModel.ts"

type Any = Effect.Effect<unknown, unknown>

/** Every reader that a result has, by name. */
const readersOf = <E>(result: StreamTextResult<any, any, any, E>): ReadonlyArray<readonly [name: string, Any]> =>
  Object.entries(result as object).flatMap(([name, member]) =>
    Stream.isStream(member)
      ? [[name, Stream.runCollect(member as unknown as Stream.Stream<unknown, unknown>)] as const]
      : Effect.isEffect(member)
      ? [[name, member as Any] as const]
      : []
  )

const lost = new Error("connection lost")
const refused = new APICallError({
  message: "invalid key",
  url: "https://api.example.com",
  requestBodyValues: { prompt: "secret" },
  statusCode: 401
})
const error = (error: unknown): StreamPart => ({ type: "error", error })

const breaking = (parts: ReadonlyArray<StreamPart>, cause: unknown) => {
  const left = [...parts]
  return new ReadableStream<StreamPart>({
    pull: (controller) => left.length > 0 ? controller.enqueue(left.shift()!) : controller.error(cause)
  })
}

interface Case {
  readonly turn: Turn | MakeTurn
  readonly reason: string
  readonly cause?: unknown
}

const cases: Record<string, Case> = {
  "that refuses the call": { turn: () => Promise.reject(refused), reason: "APICallError", cause: refused },
  "that throws": {
    turn: () => {
      throw lost
    },
    reason: "Unknown",
    cause: lost
  },
  "that fails in the middle of a text": { turn: [...begins("a", "b"), error(lost)], reason: "Unknown", cause: lost },
  "that fails, and then says that it has finished": {
    turn: [...begins("a"), error(refused), ...says().slice(-2)],
    reason: "APICallError",
    cause: refused
  },
  "that fails with what is no error": { turn: [...begins("a"), error("quota")], reason: "Unknown", cause: "quota" },
  "whose stream breaks": { turn: () => breaking(begins("a"), lost), reason: "Unknown", cause: lost },
  "whose stream ends without a word": { turn: [], reason: "NoOutputGeneratedError" },
  "whose stream ends in the middle of a text": { turn: begins("a", "b"), reason: "NoOutputGeneratedError" },
  "that mixes up its texts": {
    turn: [...begins("a"), { type: "text-delta", id: "other", delta: "b" }, ...says().slice(-2)],
    reason: "Unknown",
    cause: "text part other not found"
  }
}

const call = (turn: Turn | MakeTurn) => streamText({ model: streaming(turn), prompt: "go", maxRetries: 0 })

describe("streamText's failure", () => {
  for (const [name, { cause, reason, turn }] of Object.entries(cases)) {
    it.effect(`of a provider (${name}) is the failure of every stream and every Effect`, () =>
      Effect.gen(function*() {
        const names = readersOf(yield* call(turn)).map(([name]) => name)
        assert.isAbove(names.length, 25)
        for (const name of names) {
          if (name === "elementStream") continue
          // each is the first, and then the last reader of a call
          const result = yield* call(turn)
          const [, read] = readersOf(result).find(([other]) => other === name)!
          for (const exit of [yield* Effect.exit(read), yield* Effect.exit(read)]) {
            const failure = Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit.value
            assert.instanceOf(failure, AiError, name)
            assert.strictEqual(failure.reason, reason, name)
            if (cause !== undefined) assert.strictEqual(failure.cause, cause, name)
          }
        }
      }).pipe(Effect.provide(Ai.layer)))
  }

  it.effect("comes after all that was said before it", () =>
    Effect.gen(function*() {
      const result = yield* call([...begins("a", "b"), error(lost)])
      const texts: Array<string> = []
      const exit = yield* Effect.exit(
        Stream.runForEach(result.textStream, (text) => Effect.sync(() => texts.push(text)))
      )
      assert.deepStrictEqual(texts, ["a", "b"])
      assert.isTrue(Exit.isFailure(exit))
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is one and the same value for all readers", () =>
    Effect.gen(function*() {
      const result = yield* call([...begins("a"), error(lost)])
      const failures = yield* Effect.all([
        Effect.flip(result.text),
        Effect.flip(Stream.runCollect(result.stream)),
        Effect.flip(result.consumeStream)
      ], { concurrency: "unbounded" })
      assert.isTrue(failures.every((failure) => failure === failures[0]))
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is told to onError, and printed by nobody", () =>
    Effect.gen(function*() {
      const print = vi.spyOn(console, "error").mockImplementation(() => {})
      yield* Effect.addFinalizer(() => Effect.sync(() => print.mockRestore()))
      const told: Array<unknown> = []
      const result = yield* streamText({
        model: streaming([...begins("a"), error(lost)]),
        prompt: "go",
        onError: ({ error }) => Effect.sync(() => told.push(error))
      })
      yield* Effect.flip(result.text)
      assert.deepStrictEqual(told, [lost])
      yield* Effect.flip(Effect.flatMap(call([...begins("a"), error(lost)]), (result) => result.text))
      assert.strictEqual(print.mock.calls.length, 0)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is told to onError where the provider's stream just ends, and has what came before it", () =>
    Effect.gen(function*() {
      const told: Array<unknown> = []
      const result = yield* streamText({
        model: streaming(begins("a", "b")),
        prompt: "go",
        onError: ({ error }) => Effect.sync(() => told.push(error))
      })
      const texts: Array<string> = []
      const failure = yield* Effect.flip(
        Stream.runForEach(result.textStream, (text) => Effect.sync(() => texts.push(text)))
      )
      assert.deepStrictEqual(texts, ["a", "b"])
      assert.include(failure.message, "without a finish chunk")
      assert.deepStrictEqual(told, [failure.cause])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is none where a model ends with a reason of its own, or says nothing", () =>
    Effect.gen(function*() {
      const finish = (unified: "other" | "length"): StreamPart => ({
        ...says().at(-1) as StreamPart & { readonly type: "finish" },
        finishReason: { unified, raw: undefined }
      })
      for (const turn of [[...begins("a"), finish("other")], [...begins("a"), finish("length")], [finish("other")]]) {
        assert.strictEqual(yield* (yield* call(turn)).text, turn.length > 1 ? "a" : "")
      }
      const { text } = yield* streamText({
        model: streaming(says("a")),
        prompt: "go",
        // a clock that stands still
        _internal: { now: () => 0 }
      })
      assert.strictEqual(yield* text, "a")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of elements that do not fit their schema comes after all that do", () =>
    Effect.gen(function*() {
      for (const [rest, fitting] of [[`"b"]}`, [1]], [`2,`, [1]], [`"b",2]}`, [1, 2]]] as const) {
        const result = yield* streamText({
          model: streaming(says(`{"elements":[1,`, rest)),
          prompt: "go",
          output: Output.array({ element: Schema.Int })
        })
        const elements: Array<number> = []
        const error = yield* Effect.flip(
          Stream.runForEach(result.elementStream, (element) => Effect.sync(() => elements.push(element)))
        )
        assert.strictEqual(error.reason, "NoObjectGeneratedError")
        assert.deepStrictEqual(elements, [...fitting])
        assert.strictEqual((yield* Effect.flip(result.output)).reason, "NoObjectGeneratedError")
      }
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("leaves no rejected promise behind", () =>
    Effect.gen(function*() {
      const rejected: Array<unknown> = []
      const keep = (reason: unknown) => void rejected.push(reason)
      process.on("unhandledRejection", keep)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.off("unhandledRejection", keep)))
      for (const { turn } of Object.values(cases)) {
        yield* Effect.scoped(Effect.exit(Effect.flatMap(call(turn), (result) => Stream.runCollect(result.stream))))
        yield* Effect.scoped(call(turn))
      }
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
      assert.deepStrictEqual(rejected, [])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a setting that is none is the failure of the call itself, and nothing is called", () =>
    Effect.gen(function*() {
      const model = streaming(says("a"))
      const failure = yield* Effect.flip(streamText({ model, prompt: "go", toolCallConcurrency: 0 }))
      assert.strictEqual(failure.reason, "InvalidArgumentError")
      assert.strictEqual(model.doStreamCalls.length, 0)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a stream that a transform cuts before anything came is no empty text", () =>
    Effect.gen(function*() {
      const result = yield* streamText({
        model: streaming(says("a")),
        prompt: "go",
        experimental_transform: ({ stopStream }) =>
          new TransformStream({
            transform(part, controller) {
              if (part.type === "text-delta") stopStream()
              else controller.enqueue(part)
            }
          })
      })
      const failure = yield* Effect.flip(result.text)
      assert.strictEqual(failure.reason, "NoOutputGeneratedError")
      assert.isTrue(NoOutputGeneratedError.isInstance(failure.cause))
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a later step is a failure too, and tools are not run again", () =>
    Effect.gen(function*() {
      let runs = 0
      const add = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++runs) })
      const result = yield* streamText({
        model: streaming(calls(["add", {}]), () => Promise.reject(refused)),
        prompt: "go",
        tools: { add },
        stopWhen: isStepCount(2),
        maxRetries: 0
      })
      const failure = yield* Effect.flip(result.text)
      assert.strictEqual(failure.cause, refused)
      assert.strictEqual((yield* Effect.flip(result.steps)).cause, refused)
      assert.strictEqual(runs, 1)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a timeout is a Timeout", () =>
    Effect.gen(function*() {
      const result = yield* streamText({
        model: streaming(() => new Promise(() => {})),
        prompt: "go",
        timeout: { totalMs: 1 }
      })
      const failure = yield* Effect.flip(Stream.runCollect(result.textStream))
      assert.strictEqual(failure.reason, "Timeout")
      assert.strictEqual((failure.cause as Error).name, "TimeoutError")
      assert.strictEqual((yield* Effect.flip(result.text)).reason, "Timeout")
    }).pipe(Effect.provide(Ai.layer)))

  class TooMuch extends Data.TaggedError("TooMuch")<{ readonly spent: number }> {}

  it.effect("of a decision is the identical failure, in every stream and every Effect", () =>
    Effect.gen(function*() {
      const tooMuch = new TooMuch({ spent: 3 })
      const decisions = {
        prepareStep: { prepareStep: () => Effect.fail(tooMuch) },
        stopWhen: { stopWhen: () => Effect.fail(tooMuch) },
        toolApproval: { toolApproval: () => Effect.fail(tooMuch) }
      }
      const add = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed(1) })
      for (const [name, decision] of Object.entries(decisions)) {
        const told: Array<unknown> = []
        const make = Effect.suspend(() =>
          streamText({
            model: streaming(calls(["add", {}]), says("a")),
            prompt: "go",
            tools: { add },
            onError: ({ error }) => Effect.sync(() => told.push(error)),
            onAbort: () => Effect.sync(() => told.push("aborted")),
            ...decision as { readonly prepareStep: () => Effect.Effect<never, TooMuch> }
          })
        )
        const result = yield* make
        assert.strictEqual(yield* Effect.flip(Stream.runCollect(result.stream)), tooMuch, name)
        for (const [reader, read] of readersOf(result)) {
          if (reader !== "elementStream") assert.strictEqual(yield* Effect.flip(read), tooMuch, `${name}: ${reader}`)
        }
        assert.deepStrictEqual(told, [tooMuch], name)
        const response = yield* (yield* make).toUIMessageStreamResponse()
        const body = yield* Effect.promise(() => response.text())
        assert.include(body, `{"type":"error","errorText":"An error occurred."}`)
        assert.notInclude(body, "TooMuch")
      }
    }).pipe(Effect.provide(Ai.layer)))
})
