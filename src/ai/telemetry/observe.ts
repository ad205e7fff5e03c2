/**
 * Watches one call of the AI SDK: counts it always, and makes its spans where somebody wants them.
 */
import { asArray } from "@ai-sdk/provider-utils"
import type { Telemetry, TelemetryOptions } from "ai"
import { Clock, Context, Effect, Exit, type Fiber, type Scope, Tracer } from "effect"
import { Ai, type AiDefaults } from "../../Ai.ts"
import { type Attributes, modelAttributes, namesOf, setAttributes, type Tokens, usageAttributes } from "./attributes.ts"
import { CallSpans } from "./CallSpans.ts"
import { countCall, countTokens, countTool } from "./count.ts"
import { spanExit } from "./spanExit.ts"

/** What a call says of itself. */
export interface CallDescription {
  /** The name of the function, and of the span unless that has its own. */
  readonly name: string
  readonly spanName?: string | undefined
  /** `gen_ai.operation.name`. */
  readonly operation: string
  /** `"client"` for a function that is one request, `"internal"` for one that has its model calls below it. */
  readonly kind: Tracer.SpanKind
  readonly model: unknown
  readonly telemetry: TelemetryOptions | undefined
  readonly attributes?: Attributes | undefined
}

/** The options that all calls have in common, as they arrive at run time. */
interface AnyOptions {
  readonly model?: unknown
  readonly telemetry?: TelemetryOptions | undefined
  readonly experimental_telemetry?: TelemetryOptions | undefined
}

/** The telemetry of a call: its own, else that of its `Ai`. */
export const telemetryOf = (options: object, defaults: AiDefaults): TelemetryOptions | undefined => {
  const { experimental_telemetry, telemetry } = options as AnyOptions
  return telemetry ?? experimental_telemetry ?? defaults.telemetry
}

/** The functions that call a language model, step by step. */
export const languageCall = (name: string, options: object, defaults: AiDefaults): CallDescription => ({
  name,
  operation: "invoke_agent",
  kind: "internal",
  model: (options as AnyOptions).model ?? defaults.model,
  telemetry: telemetryOf(options, defaults)
})

type Callbacks = Readonly<Record<string, unknown>>
type Callback = (event: never) => unknown

/**
 * Whether somebody sees spans of this fiber. Effect's default tracer shows its spans to nobody, but to a program that asks for
 * its current one: that is no reason to make more of them, however many are open.
 */
export const isTraced = ({ cache }: Fiber.Fiber<unknown, unknown>): boolean =>
  cache.tracerEnabled && cache.tracer !== undefined && cache.tracer !== Tracer.nativeTracer

export class Observer {
  readonly #description: CallDescription
  readonly #context: Context.Context<never>
  readonly #model: string
  readonly #started: bigint
  readonly #spans: CallSpans | undefined
  #tokens: Tokens = {}
  #ended = false

  constructor(fiber: Fiber.Fiber<unknown, unknown>, description: CallDescription) {
    const { context } = fiber
    this.#description = description
    this.#context = context
    this.#started = Context.get(context, Clock.Clock).currentTimeNanosUnsafe()
    const names = namesOf(description.model)
    this.#model = names.model ?? "unknown"
    if (description.telemetry?.isEnabled === false || !isTraced(fiber)) return
    const { attributes, kind, name, operation, spanName = name, telemetry } = description
    const root = Effect.runSyncWith(context)(Effect.makeSpan(spanName, { kind }))
    setAttributes(root, { "gen_ai.operation.name": operation, ...modelAttributes(names), ...attributes })
    this.#spans = new CallSpans(context, root, telemetry)
  }

  /** The span of the call, if there is one. */
  get span(): Tracer.Span | undefined {
    return this.#spans?.root
  }

  /** Starts the call. */
  run<A>(start: () => A): A {
    return this.#spans === undefined ? start() : this.#spans.run(start)
  }

  /** The options that make the SDK tell of the call; to be spread behind all others, `callbacks` included. */
  watching(callbacks: Callbacks, replayed?: Replayed): Callbacks {
    const { experimental_onLanguageModelCallEnd, onLanguageModelCallEnd, onStepEnd, onToolExecutionEnd } =
      callbacks as Readonly<Record<string, Callback | undefined>>
    return {
      ...callbacks,
      ...replayed === undefined
        ? {
          onStepEnd: (event: StepEnd) => {
            this.#used(event.model?.modelId ?? this.#model, event.usage)
            return onStepEnd?.(event as never)
          }
        }
        // a step may end in another pass than the one that its model was called in
        : {
          onLanguageModelCallEnd: (event: ModelEnd) => {
            if (!replayed.model) this.#used(event.modelId, event.usage)
            return (onLanguageModelCallEnd ?? experimental_onLanguageModelCallEnd)?.(event as never)
          }
        },
      onToolExecutionEnd: (event: ToolEnd) => {
        if (replayed?.calls.has(event.toolCall.toolCallId) !== true) {
          countTool(
            this.#context,
            event.toolCall.toolName,
            event.toolOutput.type === "tool-result",
            event.toolExecutionMs
          )
        }
        return onToolExecutionEnd?.(event as never)
      },
      ...this.telemetry
    }
  }

  /**
   * The telemetry of the call with our integration among the others. One that a call names itself takes the place of the
   * global ones, so those are named too.
   */
  get telemetry(): { readonly telemetry?: TelemetryOptions } {
    if (this.#spans === undefined) return {}
    const { telemetry } = this.#description
    const others: ReadonlyArray<Telemetry> = telemetry?.integrations === undefined
      ? globalThis.AI_SDK_TELEMETRY_INTEGRATIONS ?? []
      : asArray(telemetry.integrations)
    // the first one is the innermost: tools and models start in our fiber
    return { telemetry: { ...telemetry, integrations: [this.#spans, ...others] } }
  }

  /** Counts the call and ends its spans. `result` is that of a function which tells its usage there and nowhere else. */
  end(exit: Exit.Exit<unknown, unknown>, result?: unknown): void {
    if (this.#ended) return
    this.#ended = true
    const usage = usageOf(result)
    if (usage !== undefined) this.#used(this.#model, usage)
    const end = spanExit(exit)
    const outcome = Exit.isSuccess(exit) ? "success" : Exit.hasInterrupts(end) ? "interrupted" : "failure"
    const nanos = Context.get(this.#context, Clock.Clock).currentTimeNanosUnsafe() - this.#started
    countCall(this.#context, this.#description.name, this.#model, outcome, Number(nanos) / 1e9)
    if (this.#spans === undefined) return
    setAttributes(this.#spans.root, usageAttributes(this.#tokens))
    this.#spans.end(end)
  }

  #used(model: string, { inputTokens, outputTokens }: Tokens): void {
    countTokens(this.#context, model, inputTokens, outputTokens)
    this.#tokens = {
      inputTokens: add(this.#tokens.inputTokens, inputTokens),
      outputTokens: add(this.#tokens.outputTokens, outputTokens)
    }
  }
}

/** What was answered from storage in the step under way, and is counted already: its model call, and tool calls by their ids. */
export interface Replayed {
  readonly model: boolean
  readonly calls: ReadonlySet<string>
}

interface ModelEnd {
  readonly modelId: string
  readonly usage: Tokens
}

interface StepEnd {
  readonly model?: { readonly modelId: string } | undefined
  readonly usage: Tokens
}

interface ToolEnd {
  readonly toolCall: { readonly toolName: string; readonly toolCallId: string }
  readonly toolOutput: { readonly type: string }
  readonly toolExecutionMs: number
}

const add = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : a + b

/** The usage of a call without steps: tokens of an embedding, of an image. */
const usageOf = (result: unknown): Tokens | undefined => {
  const { usage } = (result ?? {}) as {
    readonly usage?: { readonly tokens?: number; readonly inputTokens?: number; readonly outputTokens?: number }
  }
  if (usage === undefined) return undefined
  const { inputTokens = usage.tokens, outputTokens } = usage
  return { inputTokens: Number.isNaN(inputTokens) ? undefined : inputTokens, outputTokens }
}

/** Observes a call that outlives the Effect which starts it, until its scope closes at the latest. */
export const observedInScope = (description: CallDescription): Effect.Effect<Observer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => Effect.succeed(new Observer(fiber, description))),
    (observer, exit) => Effect.sync(() => observer.end(Exit.isSuccess(exit) ? Exit.interrupt() : exit))
  )

/** Observes an Effect that is one call, from its beginning to its end. Spans inside of it are below that of the call. */
export const observed = <A, E, R>(
  describe: (defaults: AiDefaults) => CallDescription,
  call: (observer: Observer) => Effect.Effect<A, E, R>,
  usageIn?: "result"
): Effect.Effect<A, E, R | Ai> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
      const { defaults } = Context.get(fiber.context as Context.Context<Ai>, Ai)
      const observer = new Observer(fiber, describe(defaults))
      const called = Effect.onExit(restore(call(observer)), (exit) =>
        Effect.sync(() => {
          observer.end(exit, usageIn === "result" && Exit.isSuccess(exit) ? exit.value : undefined)
        }))
      return observer.span === undefined
        ? called
        : Effect.withParentSpan(called, observer.span) as Effect.Effect<A, E, R>
    })
  )
