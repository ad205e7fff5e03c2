/**
 * The service behind the AI SDK's calls.
 *
 * @since 0.1.0
 */
import type { LanguageModel, TelemetryOptions } from "ai"
import { Context, Deferred, Effect, Fiber, Layer, type Scope } from "effect"

/**
 * What calls use where they do not say otherwise.
 *
 * @category models
 * @since 0.1.0
 */
export interface AiDefaults {
  readonly model?: LanguageModel | undefined
  /** How often a model call is repeated after a retryable failure; the AI SDK's own default is 2. */
  readonly maxRetries?: number | undefined
  readonly telemetry?: TelemetryOptions | undefined
}

/**
 * Owns the fibers of lifecycle callbacks, and carries defaults for calls.
 *
 * **Details**
 *
 * Callbacks (`onInputStart` of a tool, for example) run in fibers of this service: they stop when its scope closes, and
 * one that comes later is logged and dropped. Calls themselves run in the fiber that makes them.
 *
 * **Example** (A default model for a whole program)
 *
 * ```ts
 * import { Ai, generateText } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "text", text: "Hello!" }],
 *     finishReason: { unified: "stop", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 1, text: 1, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 *
 * const program = Effect.map(generateText({ prompt: "Say hello." }), (result) => result.text)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layerDefaults({ model }))) // => "Hello!"
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Ai extends Context.Service<Ai, {
  readonly defaults: AiDefaults
  /** Runs a callback in a fiber that this service owns, with the services of the caller, and waits for it. */
  readonly runCallback: <A, E, R>(callback: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}>()("chamvi-effect/Ai") {
  /** Without defaults: each call names its model. */
  static readonly layer: Layer.Layer<Ai> = Layer.suspend(() => Ai.layerDefaults({}))

  /** With defaults for all calls below. */
  static layerDefaults(defaults: AiDefaults): Layer.Layer<Ai> {
    return Layer.effect(
      Ai,
      Effect.map(
        Effect.scope,
        (scope: Scope.Scope) => Ai.of({ defaults, runCallback: (callback) => runIn(scope, callback) })
      )
    )
  }
}

/**
 * The fiber belongs to the scope before the callback begins: whatever closes the scope, the callback itself too, waits for
 * its finalizers. It begins without a turn of the event loop, and in a closed scope it never does.
 */
const runIn = <A, E, R>(scope: Scope.Scope, callback: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const begin = Deferred.makeUnsafe<void>()
    return Effect.flatMap(
      Effect.forkIn(Effect.andThen(Deferred.await(begin), callback), scope, { startImmediately: true }),
      (fiber) => {
        Deferred.doneUnsafe(begin, Effect.void)
        return Fiber.join(fiber)
      }
    )
  })
