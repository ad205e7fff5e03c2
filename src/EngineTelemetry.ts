/**
 * What can be seen of runs of agents from outside: spans and metrics.
 *
 * @since 0.1.0
 */
import { metrics } from "./engine/telemetry.ts"

/**
 * The metrics of runs.
 *
 * **Details**
 *
 * Where a tracer other than Effect's default is set, each time that a process works on a run is a span `run <agent>`, with the run's id in
 * `chamvi.run.id` and how it ended in `chamvi.run.status` (`completed`, `failed`, or `parked`: it waits or sleeps). It is below the
 * span in which the run was started, also in another process and after a crash. Below it are the spans of the agent's call
 * (`invoke_agent`, `step 0`, `chat gpt-5`, `execute_tool weather`); those whose answer came from storage have `chamvi.replayed`.
 *
 * Metrics are counted always, each in the process where it happens. Tokens and executions of tools that come from storage are not
 * counted again in those of `AiTelemetry`.
 *
 * **Example** (Counting runs)
 *
 * ```ts
 * import { defineAgent, Engine, EngineTelemetry } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Layer, Metric } from "effect"
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
 * const counted = defineAgent({ name: "counted", model })
 * const completed = Metric.withAttributes(EngineTelemetry.ended, { agent: "counted", status: "completed" })
 *
 * const program = Effect.gen(function*() {
 *   const before = yield* Metric.value(completed)
 *   yield* Engine.run(counted, { runId: "1", prompt: "Say hello." })
 *   const after = yield* Metric.value(completed)
 *   return after.count - before.count
 * })
 * const Live = counted.layer.pipe(Layer.provideMerge(Engine.layerMemory()))
 *
 * await Effect.runPromise(Effect.provide(program, Live)) // => 1
 * ```
 *
 * @category telemetry
 * @since 0.1.0
 */
export const EngineTelemetry = metrics
