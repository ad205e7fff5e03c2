/**
 * What can be seen of calls of the AI SDK from outside: spans and metrics.
 *
 * @since 0.1.0
 */
import { Effect } from "effect"
import { callSpan } from "./ai/telemetry/callSpan.ts"
import { metrics } from "./ai/telemetry/metrics.ts"

/**
 * The metrics of all calls, and the span of the call under way.
 *
 * **Details**
 *
 * Spans are made where a tracer other than Effect's default is set, and cost nothing otherwise. Each call is one (`generateText`,
 * `streamText`, `embed`, `invoke_agent`, ...), with one below it for each step (`step 0`), for each call of the model
 * (`chat gpt-5`), and for each execution of a tool (`execute_tool weather`), which is the parent of the spans inside of
 * `execute`. Attributes have the names of OpenTelemetry's conventions for generative AI (`gen_ai.request.model`,
 * `gen_ai.usage.input_tokens`, `gen_ai.tool.name`). Prompts, answers, and the inputs and results of tools are in none of them,
 * unless `telemetry: { recordInputs: true, recordOutputs: true }` asks for them. `telemetry: { isEnabled: false }` makes no spans, here as
 * in the AI SDK.
 *
 * Metrics are counted always. They know the names of functions, models and tools, and nothing of what was said.
 *
 * **Gotchas**
 *
 * A tool that fails is no failure of its call, so only the span of the execution has the failure: its tag or name, and its
 * message as the tool's author wrote it. The execution of an effect tool has the effect key, too. Keep secrets out of both.
 *
 * Spans inside of a provider's own code need `withCallSpan`, or a tracer that is OpenTelemetry's. The AI SDK tells of single
 * requests for language models, embeddings and reranking only.
 *
 * **Example** (Counting tokens)
 *
 * ```ts
 * import { Ai, AiTelemetry, embed } from "chamvi-effect"
 * import { MockEmbeddingModelV4 } from "ai/test"
 * import { Effect, Metric } from "effect"
 *
 * const model = new MockEmbeddingModelV4({
 *   modelId: "tiny",
 *   doEmbed: async () => ({ embeddings: [[1]], usage: { tokens: 7 }, warnings: [] })
 * })
 * const program = Effect.gen(function*() {
 *   yield* embed({ model, value: "sunny day" })
 *   const tokens = Metric.withAttributes(AiTelemetry.tokens, { model: "tiny", type: "input" })
 *   return (yield* Metric.value(tokens)).count
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => 7
 * ```
 *
 * @category telemetry
 * @since 0.1.0
 */
export const AiTelemetry = {
  ...metrics,
  /**
   * Makes the spans of `effect` children of the call under way: of the model call where a model's own code runs it, of the
   * execution where a tool does.
   *
   * It is for code that the AI SDK calls outside of any fiber: a provider's `fetch` that is an Effect, middleware, an
   * `execute` that is a plain function. Inside of Effects that this library runs, spans have their parents without it.
   */
  withCallSpan: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const span = callSpan.getStore()
      return span === undefined ? effect : Effect.withParentSpan(effect, span) as Effect.Effect<A, E, R>
    })
} as const
