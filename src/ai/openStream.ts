/**
 * Makes a call of the AI SDK's `streamText`: its tools and callbacks bound to the calling fiber, its life that of a scope.
 */
import * as ai from "ai"
import { Cause, Context, Effect, Exit, Tracer } from "effect"
import { Ai, type AiDefaults } from "../Ai.ts"
import { AiError } from "../AiError.ts"
import { boundTools, Executions } from "./bindCall.ts"
import { bindCallbacks, type CallbackCall } from "./callbacks.ts"
import { type End, LiveCall } from "./LiveCall.ts"
import { noModel } from "./noModel.ts"
import { withOriginals } from "./originals.ts"
import { restartMarker } from "./partialOutput.ts"
import type { Part } from "./PartLog.ts"
import { type CallDescription, languageCall, observedInScope, type Observer } from "./telemetry/observe.ts"
import { originalOf } from "./ToolFailure.ts"

export type RawOptions = Parameters<typeof ai.streamText>[0]
type Callback = (event: never) => unknown

/** What a call that begins is given, beside the user's options. */
export interface Opening {
  readonly defaults: AiDefaults
  readonly tools: ai.ToolSet | undefined
  /** To be spread behind the user's options. */
  readonly own: Readonly<Record<string, unknown>>
  readonly live: LiveCall
  readonly observer: Observer
}

type Options = Pick<RawOptions, "abortSignal"> & {
  readonly tools?: ai.ToolSet | undefined
  readonly experimental_transform?: unknown
}

/** Answers the call under way. What the SDK refuses at once, such as an option out of range, is a failure. */
export const openStream = (options: RawOptions, context: Context.Context<Ai>) =>
  openWith(options, context, (defaults) => languageCall("streamText", options, defaults), (opening) => {
    const { defaults, live, observer, own, tools } = opening
    const model = options.model ?? defaults.model
    return model === undefined ? noModel() : Effect.try({
      try: () =>
        observer.run(() =>
          start({
            ...defaults.maxRetries === undefined ? {} : { maxRetries: defaults.maxRetries },
            ...defaults.telemetry === undefined ? {} : { telemetry: defaults.telemetry },
            ...options,
            model,
            ...tools === undefined ? {} : { tools },
            ...own,
            ...markingRestarts(options, live)
          } as RawOptions)
        ).stream,
      catch: (error) => AiError.from(error)
    })
  })

/** Opens whatever answers the parts of a call: `begin` starts it. */
export const openWith = Effect.fnUntraced(function*(
  options: Options,
  given: Context.Context<Ai>,
  describe: (defaults: AiDefaults) => CallDescription,
  begin: (opening: Opening) => Effect.Effect<ReadableStream<Part>, AiError>
) {
  const service = yield* Ai
  const { defaults } = service
  const { abortSignal } = options
  const observer = yield* observedInScope(describe(defaults))
  const context = observer.span === undefined ? given : Context.add(given, Tracer.ParentSpan, observer.span)
  const open = Effect.gen(function*() {
    if (abortSignal?.aborted === true) return yield* AiError.aborted(abortSignal.reason)
    const executions = new Executions()
    const bindTools = yield* boundTools(options.tools, context, executions)
    const live = new LiveCall(service, executions, abortSignal, options.experimental_transform !== undefined)
    live.onOver = () => observer.end(live.failure === undefined ? Exit.void : Exit.failCause(live.failure))
    const call: CallbackCall = {
      context,
      signal: live.signal,
      track: executions.track,
      fail: (cause) => {
        if (live.failure === undefined) callbacks.onError?.({ error: Cause.squash(cause) } as never)
        live.fail(cause)
      }
    }
    const callbacks = bindCallbacks(options, call) as Record<string, Callback | undefined>
    live.onCutOff = (error) => void callbacks.onError?.({ error } as never)
    const tools = bindTools(call)
    yield* Effect.addFinalizer(() => Effect.promise(() => live.stop(scopeClosed())))
    const own = { abortSignal: live.signal, ...observer.watching(callbacksOf(callbacks, live)) }
    live.start(yield* begin({ defaults, tools, own, live, observer }))
    return live
  })
  return yield* Effect.tapCause(open, (cause) => Effect.sync(() => observer.end(Exit.failCause(cause))))
})

/**
 * The SDK's result with one reader, which keeps no copy of what was read. Releases that do not have it yet, or not any
 * more, work too, and keep one.
 */
const start = (options: RawOptions): { readonly stream: ReadableStream<Part> } =>
  ((ai as Partial<typeof ai>).experimental_streamTextLowMemory ?? ai.streamText)(options)

const scopeClosed = () => AiError.aborted(undefined, "The call was aborted: its scope closed before the end.")

/** The user's callbacks, and those that keep the call's state. */
const callbacksOf = (bound: Record<string, Callback | undefined>, live: LiveCall): Record<string, unknown> => {
  const { onAbort, onChunk, onError } = bound
  const onEnd = bound.onEnd ?? bound.onFinish
  const own: Record<string, Callback | undefined> = {
    ...bound,
    ...withOriginals(bound) as Record<string, Callback>,
    onChunk: onChunk && ((event: { readonly chunk: Part }) => onChunk({ chunk: restored(event.chunk) } as never)),
    // where there is none, the SDK prints
    onError: (event) => onError?.(event),
    onAbort: (event: { readonly reason?: unknown }) => {
      live.abortReason = event.reason
      // a call that has failed is aborted too; that is no news
      return live.failure === undefined ? onAbort?.(event as never) : undefined
    },
    onEnd: (event: End) => {
      live.end = event
      return onEnd?.(event as never)
    }
  }
  return Object.fromEntries(Object.entries(own).filter(([, callback]) => callback !== undefined))
}

/** Where a provider's stream may be begun anew, partial outputs have to know of it. */
const markingRestarts = (options: RawOptions, live: LiveCall): object =>
  options.streamRetries === undefined || options.output === undefined ? {} : {
    experimental_transform: [
      ...[options.experimental_transform ?? []].flat(),
      restartMarker((part) => live.markRestart(part))
    ]
  }

/** The part as readers see it: with the identical value that a tool failed with. */
export const restored = (part: Part): Part =>
  part.type === "tool-error" ? { ...part, error: originalOf(part.error) } : part
