/**
 * The spans of one call, as an integration of the AI SDK's own telemetry: it tells of steps, model calls and tools, and lets
 * model calls and tools run inside of something, which here is a fiber whose span is theirs.
 */
import type { Telemetry, TelemetryOptions } from "ai"
import { Clock, Context, Effect, Exit, type Tracer } from "effect"
import {
  asText,
  type Attributes,
  modelAttributes,
  requestAttributes,
  setAttributes,
  usageAttributes
} from "./attributes.ts"
import { endSpan, runIn } from "./callSpan.ts"
import { errorType, failed, interrupted, isAbort } from "./spanExit.ts"

type Event<K extends keyof Telemetry> = NonNullable<Telemetry[K]> extends (event: infer E) => unknown ? E : never

export class CallSpans implements Telemetry {
  readonly root: Tracer.Span
  readonly #context: Context.Context<never>
  readonly #inputs: boolean
  readonly #outputs: boolean
  #step: Tracer.Span | undefined
  #model: Tracer.Span | undefined
  /** What the last attempt of the model call failed with. */
  #attempt: unknown
  readonly #embeddings = new Map<string, Tracer.Span>()
  /** Executions that have ended, and wait for their results; an id may come more than once. */
  readonly #awaiting = new Map<string, Array<Tracer.Span>>()
  readonly #tools = new Set<Tracer.Span>()
  /** Of a call that was aborted, the SDK may begin something yet. */
  #ended = false

  constructor(context: Context.Context<never>, root: Tracer.Span, telemetry: TelemetryOptions | undefined) {
    this.root = root
    this.#context = context
    this.#inputs = telemetry?.recordInputs === true
    this.#outputs = telemetry?.recordOutputs === true
    setAttributes(root, { "gen_ai.agent.name": telemetry?.functionId })
  }

  /** Runs what starts the call inside of its span. */
  run<A>(start: () => A): A {
    return runIn(this.#context, this.root, start)
  }

  /** Ends what is still open, the call's own span last. */
  end(exit: Exit.Exit<void, Error>): void {
    this.#ended = true
    const left = Exit.isSuccess(exit) ? failed("It did not end before its call.") : exit
    for (const span of [...this.#tools, ...this.#embeddings.values()]) this.#end(span, left)
    for (const span of [...this.#awaiting.values()].flat()) this.#end(span, Exit.void)
    this.#endModel(left)
    this.#endStep(left)
    this.#end(this.root, exit)
  }

  onStart(event: Event<"onStart">): void {
    setAttributes(this.root, modelAttributes({ model: event.modelId, provider: event.provider }))
  }

  onStepStart(event: Event<"onStepStart">): void {
    if (this.#ended) return
    this.#endStep(interrupted)
    this.#step = this.#start(`step ${event.stepNumber}`, this.root, "internal", { "chamvi.step": event.stepNumber })
  }

  onStepEnd(event: Event<"onStepEnd">): void {
    if (this.#step === undefined) return
    setAttributes(this.#step, {
      "gen_ai.response.finish_reasons": [event.finishReason],
      ...usageAttributes(event.usage)
    })
    this.#endStep(Exit.void)
  }

  onStepError({ error }: Event<"onStepError">): void {
    const exit = isAbort(error) ? interrupted : failed(error)
    this.#endModel(exit)
    this.#endStep(exit)
  }

  onLanguageModelCallStart(event: Event<"onLanguageModelCallStart">): void {
    if (this.#ended) return
    this.#endModel(failed(this.#attempt))
    this.#attempt = undefined
    this.#model = this.#start(`chat ${event.modelId}`, this.#step ?? this.root, "client", {
      "gen_ai.operation.name": "chat",
      ...modelAttributes({ model: event.modelId, provider: event.provider }),
      ...requestAttributes(event),
      ...this.#inputs
        ? {
          "gen_ai.system_instructions": event.instructions === undefined ? undefined : asText(event.instructions),
          "gen_ai.input.messages": asText(event.messages)
        }
        : {}
    })
  }

  executeLanguageModelCall<T>({ execute }: { readonly execute: () => PromiseLike<T> }): PromiseLike<T> {
    const span = this.#model ?? this.root
    return runIn(this.#context, span, execute).then(undefined, (error: unknown) => {
      // it may be repeated, and then this is all that is seen of it
      this.#attempt = error
      if (!isAbort(error)) this.#event(span, "gen_ai.attempt_failed", { "error.type": errorType(error) })
      throw error
    })
  }

  onLanguageModelCallEnd(event: Event<"onLanguageModelCallEnd">): void {
    if (this.#model === undefined) return
    setAttributes(this.#model, {
      "gen_ai.response.id": event.responseId,
      "gen_ai.response.model": event.modelId,
      "gen_ai.response.finish_reasons": [event.finishReason],
      ...usageAttributes(event.usage),
      ...this.#outputs ? { "gen_ai.output.messages": asText(this.#said(event.content)) } : {}
    })
    this.#endModel(Exit.void)
  }

  executeTool<T>(
    event: Omit<Event<"executeTool">, "execute"> & { readonly execute: () => PromiseLike<T> }
  ): PromiseLike<T> {
    const { execute, toolCall, toolCallId } = event
    if (this.#ended) return execute()
    const name = toolCall?.toolName ?? "unknown"
    const span = this.#start(`execute_tool ${name}`, this.#step ?? this.root, "internal", {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": name,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": toolCallId,
      ...this.#inputs ? { "gen_ai.tool.call.arguments": asText(toolCall?.input) } : {}
    })
    this.#tools.add(span)
    return runIn(this.#context, span, execute).then((value) => {
      this.#tools.delete(span)
      if (this.#outputs) this.#awaiting.set(toolCallId, [...this.#awaiting.get(toolCallId) ?? [], span])
      else this.#end(span, Exit.void)
      return value
    }, (error: unknown) => {
      this.#tools.delete(span)
      this.#end(span, isAbort(error) ? interrupted : failed(error, this.#outputs))
      throw error
    })
  }

  onToolExecutionEnd({ toolCall, toolOutput }: Event<"onToolExecutionEnd">): void {
    const span = this.#awaiting.get(toolCall.toolCallId)?.shift()
    if (span === undefined) return
    if (toolOutput.type === "tool-result") span.attribute("gen_ai.tool.call.result", asText(toolOutput.output))
    this.#end(span, Exit.void)
  }

  onEmbedStart(event: Event<"onEmbedStart">): void {
    if (this.#ended) return
    this.#embeddings.set(event.embedCallId, this.#modelCall("embeddings", event))
  }

  onEmbedEnd(event: Event<"onEmbedEnd">): void {
    const span = this.#embeddings.get(event.embedCallId)
    if (span === undefined) return
    this.#embeddings.delete(event.embedCallId)
    setAttributes(span, usageAttributes({ inputTokens: event.usage.tokens }))
    this.#end(span, Exit.void)
  }

  onRerankStart(event: Event<"onRerankStart">): void {
    if (this.#ended) return
    this.#endModel(failed("The attempt was repeated."))
    this.#model = this.#modelCall("rerank", event)
  }

  onRerankEnd(): void {
    this.#endModel(Exit.void)
  }

  /** What a model said; the inputs of tools are inputs, though it is the model that writes them. */
  #said(content: ReadonlyArray<object>): ReadonlyArray<object> {
    return this.#inputs ? content : content.map((part) => "input" in part ? { ...part, input: undefined } : part)
  }

  #modelCall(operation: string, event: { readonly modelId: string; readonly provider: string }): Tracer.Span {
    return this.#start(`${operation} ${event.modelId}`, this.root, "client", {
      "gen_ai.operation.name": operation,
      ...modelAttributes({ model: event.modelId, provider: event.provider })
    })
  }

  #start(name: string, parent: Tracer.Span, kind: Tracer.SpanKind, attributes: Attributes): Tracer.Span {
    const span = Effect.runSyncWith(this.#context)(Effect.makeSpan(name, { parent, kind }))
    setAttributes(span, attributes)
    return span
  }

  #event(span: Tracer.Span, name: string, attributes: Record<string, string>): void {
    span.event(name, Context.get(this.#context, Clock.Clock).currentTimeNanosUnsafe(), attributes)
  }

  #end(span: Tracer.Span, exit: Exit.Exit<void, Error>): void {
    if (exit._tag === "Failure") {
      const failure = exit.cause.reasons.find((reason) => reason._tag === "Fail")
      if (failure !== undefined) setAttributes(span, { "error.type": errorType(failure.error) })
    }
    endSpan(this.#context, span, exit)
  }

  #endModel(exit: Exit.Exit<void, Error>): void {
    if (this.#model !== undefined) this.#end(this.#model, exit)
    this.#model = undefined
  }

  #endStep(exit: Exit.Exit<void, Error>): void {
    if (this.#step !== undefined) this.#end(this.#step, exit)
    this.#step = undefined
  }
}
