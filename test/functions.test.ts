/** The functions of the AI SDK beside tools: one error type, interruption, defaults and callbacks, for all of them. */
import { assert, describe, it } from "@effect/vitest"
import { APICallError, type TelemetryOptions } from "ai"
import type { ImageModelV4, TranscriptionModelV4 } from "@ai-sdk/provider"
import { MockEmbeddingModelV4, MockRerankingModelV4, MockSpeechModelV4 } from "ai/test"
import { Ai, type AiError, embed, embedMany, generateImage, generateSpeech, rerank, transcribe } from "chamvi-effect"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"

const response = { timestamp: new Date(0), modelId: "mock" }
const mock = { specificationVersion: "v4", provider: "mock", modelId: "mock" } as const

// the mocks of "ai/test" for these two do not fit their own interfaces under exactOptionalPropertyTypes
const imageModel = (doGenerate: ImageModelV4["doGenerate"]): ImageModelV4 => ({
  ...mock,
  maxImagesPerCall: 1,
  doGenerate
})
const transcriber = (doGenerate: TranscriptionModelV4["doGenerate"]): TranscriptionModelV4 => ({ ...mock, doGenerate })

/** What a model was called with, as far as it concerns these tests. */
interface Called {
  readonly abortSignal?: AbortSignal | undefined
}
type Answer = (called: Called) => PromiseLike<void>

interface Options {
  readonly abortSignal?: AbortSignal
  readonly maxRetries?: number
}

/** Each function over a model that first does what `answer` says. */
const functions: {
  readonly [name: string]: (answer: Answer, options?: Options) => Effect.Effect<unknown, AiError, Ai>
} = {
  embed: (answer, options) =>
    Effect.map(
      embed({
        model: new MockEmbeddingModelV4({
          doEmbed: async (called) => {
            await answer(called)
            return { embeddings: [[1, 2]], warnings: [] }
          }
        }),
        value: "sun",
        ...options
      }),
      (result) => result.embedding
    ),
  embedMany: (answer, options) =>
    Effect.map(
      embedMany({
        model: new MockEmbeddingModelV4({
          maxEmbeddingsPerCall: 2,
          doEmbed: async (called) => {
            await answer(called)
            return { embeddings: called.values.map((value) => [value.length]), warnings: [] }
          }
        }),
        values: ["sun", "rain"],
        ...options
      }),
      (result) => result.embeddings
    ),
  rerank: (answer, options) =>
    Effect.map(
      rerank({
        model: new MockRerankingModelV4({
          doRerank: async (called) => {
            await answer(called)
            return { ranking: [{ index: 1, relevanceScore: 0.9 }] }
          }
        }),
        query: "rain",
        documents: ["dry", "wet"],
        ...options
      }),
      (result) => result.rerankedDocuments
    ),
  generateImage: (answer, options) =>
    Effect.map(
      generateImage({
        model: imageModel(async (called) => {
          await answer(called)
          return { images: ["iVBORw0KGgo="], warnings: [], response: { ...response, headers: undefined } }
        }),
        prompt: "a circle",
        ...options
      }),
      (result) => result.image.mediaType
    ),
  generateSpeech: (answer, options) =>
    Effect.map(
      generateSpeech({
        model: new MockSpeechModelV4({
          doGenerate: async (called) => {
            await answer(called)
            return { audio: new Uint8Array([1, 2, 3]), warnings: [], response }
          }
        }),
        text: "Hello.",
        ...options
      }),
      (result) => result.audio.uint8Array.length
    ),
  transcribe: (answer, options) =>
    Effect.map(
      transcribe({
        model: transcriber(async (called) => {
          await answer(called)
          return { text: "Hello.", segments: [], language: "en", durationInSeconds: 1, warnings: [], response }
        }),
        audio: new Uint8Array([1]),
        ...options
      }),
      (result) => result.text
    )
}

const results: { readonly [name: string]: unknown } = {
  embed: [1, 2],
  embedMany: [[3], [4]],
  rerank: ["wet"],
  generateImage: "image/png",
  generateSpeech: 3,
  transcribe: "Hello."
}

const refused = (statusCode: number) =>
  new APICallError({
    message: "the provider's answer",
    url: "https://api.example.com",
    requestBodyValues: { text: "a secret" },
    responseHeaders: { "retry-after-ms": "0" },
    statusCode
  })

/** A model that never answers, and says when it was asked. */
const deaf = (asked: Deferred.Deferred<AbortSignal | undefined>): Answer => ({ abortSignal }) => {
  Deferred.doneUnsafe(asked, Exit.succeed(abortSignal))
  return new Promise(() => undefined)
}

describe.each(Object.entries(functions))("%s", (name, call) => {
  it.effect("answers the AI SDK's result", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* call(async () => undefined), results[name])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("aborts its model when it is interrupted, and does not wait for one that ignores that", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<AbortSignal | undefined>()
      const fiber = yield* Effect.forkChild(call(deaf(asked)))
      const signal = yield* Deferred.await(asked)
      assert.isFalse(signal?.aborted)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal?.aborted)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("ends at a timeout of Effect", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<AbortSignal | undefined>()
      const fiber = yield* Effect.forkChild(Effect.timeoutOption(call(deaf(asked)), "1 second"))
      const signal = yield* Deferred.await(asked)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "None")
      assert.isTrue(signal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails as Aborted when a signal of the caller's own aborts, whatever the model does", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const reason = new Error("enough")
      const error = yield* Effect.flip(call(({ abortSignal }) => {
        queueMicrotask(() => controller.abort(reason))
        assert.isFalse(abortSignal?.aborted)
        return new Promise(() => undefined)
      }, { abortSignal: controller.signal }))
      assert.strictEqual(error.reason, "Aborted")
      assert.strictEqual(error.cause, reason)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("calls nothing where a signal of the caller's own is aborted already", () =>
    Effect.gen(function*() {
      let asked = 0
      const error = yield* Effect.flip(
        call(async () => void asked++, { abortSignal: AbortSignal.abort("enough") })
      )
      assert.deepStrictEqual([error.reason, error.cause, asked], ["Aborted", "enough", 0])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails with an AiError that has the provider's answer and not the request", () =>
    Effect.gen(function*() {
      const cause = refused(401)
      const error = yield* Effect.flip(call(() => Promise.reject(cause)))
      assert.strictEqual(error.cause, cause)
      assert.deepStrictEqual(
        [error._tag, error.reason, error.statusCode, error.isRetryable, error.attempts],
        ["AiError", "APICallError", 401, false, 1]
      )
      assert.notInclude(error.message, "secret")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("repeats a retryable failure as often as its Ai says, unless the call says otherwise", () =>
    Effect.gen(function*() {
      let asked = 0
      const failing: Answer = () => Promise.reject(refused(++asked > 0 ? 503 : 200))
      const error = yield* Effect.flip(call(failing))
      assert.deepStrictEqual([asked, error.attempts, error.isRetryable], [2, 2, true])
      yield* Effect.flip(call(failing, { maxRetries: 0 }))
      assert.strictEqual(asked, 3)
      assert.deepStrictEqual(yield* call(() => ++asked > 4 ? Promise.resolve() : failing({})), results[name])
    }).pipe(Effect.provide(Ai.layerDefaults({ maxRetries: 1 }))))

  it.effect("fails with an AiError for options that are none", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(call(async () => undefined, { maxRetries: -1 }))
      assert.strictEqual(error.reason, "InvalidArgumentError")
    }).pipe(Effect.provide(Ai.layer)))
})

describe("A call without a result", () => {
  it.effect("fails with the AI SDK's reason", () =>
    Effect.gen(function*() {
      const image = imageModel(async () => ({
        images: [],
        warnings: [],
        response: { ...response, headers: undefined }
      }))
      const speech = new MockSpeechModelV4({
        doGenerate: async () => ({ audio: new Uint8Array(), warnings: [], response })
      })
      const errors = [
        yield* Effect.flip(generateImage({ model: image, prompt: "a circle", maxRetries: 0 })),
        yield* Effect.flip(generateSpeech({ model: speech, text: "Hello." }))
      ]
      assert.deepStrictEqual(errors.map(({ reason }) => reason), ["NoImageGeneratedError", "NoSpeechGeneratedError"])
    }).pipe(Effect.provide(Ai.layer)))
})

class Audit extends Context.Service<Audit, { readonly lines: Array<string> }>()("app/Audit") {}

const note = (line: string) => Effect.map(Audit, ({ lines }) => lines.push(line))

describe("Callbacks of a call without tools", () => {
  const model = new MockEmbeddingModelV4({ doEmbed: async () => ({ embeddings: [[1]], warnings: [] }) })
  const ranking = new MockRerankingModelV4({ doRerank: async () => ({ ranking: [{ index: 0, relevanceScore: 1 }] }) })

  it.effect("may answer Effects, Promises, or nothing", () =>
    Effect.gen(function*() {
      const { lines } = yield* Audit
      yield* embed({
        model,
        value: "sun",
        onStart: ({ value }) => note(`embedding ${String(value)}`),
        onEnd: async () => void lines.push("embedded")
      })
      yield* embedMany({ model, values: ["sun"], onEnd: ({ operationId }) => note(operationId) })
      yield* rerank({
        model: ranking,
        query: "q",
        documents: ["d"],
        onStart: () => {
          lines.push("ranking")
        },
        onEnd: () => note("ranked")
      })
      assert.deepStrictEqual(lines, ["embedding sun", "embedded", "ai.embedMany", "ranking", "ranked"])
    }).pipe(Effect.provide([Ai.layer, Layer.succeed(Audit, { lines: [] })])))

  it.effect("are logged where they die or throw, and the call goes on", () => {
    const logged: Array<string> = []
    return Effect.gen(function*() {
      const result = yield* embed({
        model,
        value: "sun",
        onStart: () => Effect.die("no audit"),
        onEnd: () => {
          throw new Error("no end")
        }
      })
      assert.deepStrictEqual(result.embedding, [1])
      assert.lengthOf(logged, 2)
      assert.include(logged[0], "onStart")
      assert.include(logged[0], "no audit")
      assert.include(logged[1], "no end")
    }).pipe(
      Effect.provide([
        Ai.layer,
        Logger.layer([
          Logger.map(Logger.formatSimple, (line) => {
            logged.push(line)
          })
        ])
      ])
    )
  })

  it.effect("stand beside the telemetry of the Ai's defaults, which a call may replace", () => {
    const seen: Array<string> = []
    const telemetry = (name: string): TelemetryOptions => ({
      integrations: [{ onStart: () => void seen.push(`${name} started`) }]
    })
    return Effect.gen(function*() {
      yield* embed({ model, value: "sun" })
      yield* embed({ model, value: "sun", telemetry: telemetry("own") })
      assert.deepStrictEqual(seen, ["default started", "own started"])
    }).pipe(Effect.provide(Ai.layerDefaults({ telemetry: telemetry("default") })))
  })
})
