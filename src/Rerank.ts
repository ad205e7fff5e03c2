/**
 * `rerank` of the AI SDK as an Effect.
 *
 * @since 0.1.0
 */
import type { JSONObject } from "@ai-sdk/provider"
import * as ai from "ai"
import type { Effect } from "effect"
import type { Ai } from "./Ai.ts"
import type { RunContext } from "./ai/callTypes.ts"
import { modelCall, type Notified, type NotifiedServices, type Replaced } from "./ai/modelCall.ts"
import type { AiError } from "./AiError.ts"

/**
 * The options of the AI SDK's `rerank`, with callbacks that may answer Effects.
 *
 * @category models
 * @since 0.1.0
 */
export type RerankOptions<
  V extends JSONObject | string = JSONObject | string,
  RC extends RunContext = RunContext,
  SR = never,
  ER = never
> = Omit<Parameters<typeof ai.rerank<V, RC>>[0], Replaced> & {
  /** Told before the model is called. */
  readonly onStart?: Notified<ai.RerankStartEvent<RC>, SR> | undefined
  /** Told after the model has answered. */
  readonly onEnd?: Notified<ai.RerankEndEvent<RC>, ER> | undefined
}

/**
 * Orders documents by how well they answer a query: the AI SDK's `rerank`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, and does not wait for a model that ignores that. An `abortSignal` of your own
 * works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. `maxRetries` and `telemetry` are
 * those of `Ai` where the call does not name its own. `onStart` and `onEnd` may answer Effects that cannot fail; one that
 * dies is logged.
 *
 * **Example** (The better of two documents)
 *
 * ```ts
 * import { Ai, rerank } from "chamvi-effect"
 * import { MockRerankingModelV4 } from "ai/test"
 * import { Effect } from "effect"
 *
 * const model = new MockRerankingModelV4({
 *   doRerank: async () => ({ ranking: [{ index: 1, relevanceScore: 0.9 }, { index: 0, relevanceScore: 0.2 }] })
 * })
 * const program = Effect.map(
 *   rerank({ model, query: "rain", documents: ["a sunny day", "a wet afternoon"] }),
 *   (result) => result.rerankedDocuments
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => ["a wet afternoon", "a sunny day"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const rerank = <
  V extends JSONObject | string,
  RC extends RunContext = RunContext,
  SR = never,
  ER = never
>(
  options: RerankOptions<V, RC, SR, ER>
): Effect.Effect<ai.RerankResult<V>, AiError, Ai | NotifiedServices<SR | ER>> =>
  modelCall({ name: "rerank", operation: "rerank", splits: true }, options, ai.rerank<V, RC>)
