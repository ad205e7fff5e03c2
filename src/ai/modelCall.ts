/**
 * One call of a function of the AI SDK that has no tools (`embed`, `rerank`, `generateImage`, ...) as an Effect: defaults
 * of `Ai`, callbacks as Effects, interruption, and `AiError`.
 */
import { type Context, Effect, type Scope } from "effect"
import { Ai } from "../Ai.ts"
import { AiError } from "../AiError.ts"
import { bindCall, type CallOptions } from "./bindCall.ts"
import { observed, type Observer, telemetryOf } from "./telemetry/observe.ts"

/** A callback that is told what happens: it answers nothing, a Promise, or an Effect that cannot fail. */
export type Notified<Event, R> = (event: Event) => void | PromiseLike<void> | Effect.Effect<unknown, never, R>

/** What callbacks need of the call that they belong to. Each run of a callback has a Scope of its own. */
export type NotifiedServices<R> = Exclude<R, Scope.Scope>

/** The SDK's callbacks, which our own options replace, and what is not for users. */
export type Replaced =
  | "onStart"
  | "onEnd"
  | "experimental_onStart"
  | "experimental_onEnd"
  | "experimental_telemetry"
  | "_internal"

/** How a function stands in spans and metrics. */
export interface ModelFunction {
  readonly name: string
  /** `gen_ai.operation.name`. */
  readonly operation: string
  /** Whether the SDK tells of each request of the model, so that each has a span of its own. */
  readonly splits?: boolean
}

/**
 * Calls `make` with the options, completed by the defaults of `Ai`.
 *
 * A model that ignores the call's signal is not waited for: neither when the Effect is interrupted, nor when the caller's
 * own `abortSignal` aborts. Where that one is aborted already, nothing is called.
 */
export const modelCall = <A>(
  { name, operation, splits = false }: ModelFunction,
  options: object,
  make: (options: never) => PromiseLike<A>
): Effect.Effect<A, AiError, Ai> =>
  observed(
    (defaults) => ({
      name,
      operation,
      kind: splits ? "internal" : "client",
      model: (options as { readonly model?: unknown }).model,
      telemetry: telemetryOf(options, defaults)
    }),
    (observer) =>
      Effect.contextWith((context: Context.Context<Ai>) =>
        run(options, make, context, observer) as Effect.Effect<A, AiError, Ai>
      ),
    "result"
  )

const run = Effect.fnUntraced(function*<A>(
  options: CallOptions,
  make: (options: never) => PromiseLike<A>,
  context: Context.Context<Ai>,
  observer: Observer
) {
  const { abortSignal } = options
  if (abortSignal?.aborted === true) return yield* AiError.aborted(abortSignal.reason)
  const { defaults } = yield* Ai
  return yield* bindCall(options, context, ({ callbacks, signal }) =>
    unlessAborted(
      abortSignal,
      observer.run(() =>
        make({
          ...defaults.maxRetries === undefined ? {} : { maxRetries: defaults.maxRetries },
          ...defaults.telemetry === undefined ? {} : { telemetry: defaults.telemetry },
          ...options,
          ...callbacks,
          ...observer.telemetry,
          abortSignal: signal
        } as never)
      )
    ))
})

/** `promise`, or the reason of `signal` as soon as it aborts. */
const unlessAborted = <A>(signal: AbortSignal | undefined, promise: PromiseLike<A>): PromiseLike<A> =>
  signal === undefined ? promise : new Promise<A>((resolve, reject) => {
    const stop = () => reject(signal.reason)
    const ended = () => signal.removeEventListener("abort", stop)
    signal.addEventListener("abort", stop)
    promise.then((value) => {
      ended()
      resolve(value)
    }, (error: unknown) => {
      ended()
      reject(error)
    })
  })
