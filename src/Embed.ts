/**
 * `embed` and `embedMany` of the AI SDK as Effects.
 *
 * @since 0.1.0
 */
import * as ai from "ai"
import type { Effect } from "effect"
import type { Ai } from "./Ai.ts"
import type { RunContext } from "./ai/callTypes.ts"
import { modelCall, type Notified, type NotifiedServices, type Replaced } from "./ai/modelCall.ts"
import type { AiError } from "./AiError.ts"

/** The two callbacks of an embedding call. */
interface Callbacks<RC extends RunContext, SR, ER> {
  /** Told before the model is called. */
  readonly onStart?: Notified<ai.EmbedStartEvent<RC>, SR> | undefined
  /** Told after the model has answered. */
  readonly onEnd?: Notified<ai.EmbedEndEvent<RC>, ER> | undefined
}

/**
 * The options of the AI SDK's `embed`, with callbacks that may answer Effects.
 *
 * @category models
 * @since 0.1.0
 */
export type EmbedOptions<RC extends RunContext = RunContext, SR = never, ER = never> =
  & Omit<Parameters<typeof ai.embed<RC>>[0], Replaced>
  & Callbacks<RC, SR, ER>

/**
 * The options of the AI SDK's `embedMany`, with callbacks that may answer Effects.
 *
 * @category models
 * @since 0.1.0
 */
export type EmbedManyOptions<RC extends RunContext = RunContext, SR = never, ER = never> =
  & Omit<Parameters<typeof ai.embedMany<RC>>[0], Replaced>
  & Callbacks<RC, SR, ER>

/**
 * Embeds one value: the AI SDK's `embed`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, and does not wait for a model that ignores that. An `abortSignal` of your own
 * works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. `maxRetries` and `telemetry` are
 * those of `Ai` where the call does not name its own. `onStart` and `onEnd` may answer Effects that cannot fail; one that
 * dies is logged.
 *
 * **Example** (One embedding)
 *
 * ```ts
 * import { Ai, embed } from "chamvi-effect"
 * import { MockEmbeddingModelV4 } from "ai/test"
 * import { Effect } from "effect"
 *
 * const model = new MockEmbeddingModelV4({ doEmbed: async () => ({ embeddings: [[0.1, 0.2]], warnings: [] }) })
 * const program = Effect.map(embed({ model, value: "sunny day" }), (result) => result.embedding)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => [0.1, 0.2]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const embed = <RC extends RunContext = RunContext, SR = never, ER = never>(
  options: EmbedOptions<RC, SR, ER>
): Effect.Effect<ai.EmbedResult, AiError, Ai | NotifiedServices<SR | ER>> =>
  modelCall({ name: "embed", operation: "embeddings", splits: true }, options, ai.embed)

/**
 * Embeds many values, in as few requests as the model allows: the AI SDK's `embedMany`, with its options and its result.
 *
 * **Details**
 *
 * Interruption, defaults and callbacks are as in `embed`. `maxParallelCalls` limits how many requests run at once, which is
 * without a limit by default.
 *
 * **Example** (Two values)
 *
 * ```ts
 * import { Ai, embedMany } from "chamvi-effect"
 * import { MockEmbeddingModelV4 } from "ai/test"
 * import { Effect } from "effect"
 *
 * const model = new MockEmbeddingModelV4({
 *   maxEmbeddingsPerCall: 10,
 *   doEmbed: async ({ values }) => ({ embeddings: values.map((value) => [value.length]), warnings: [] })
 * })
 * const program = Effect.map(embedMany({ model, values: ["sun", "rain"] }), (result) => result.embeddings)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => [[3], [4]]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const embedMany = <RC extends RunContext = RunContext, SR = never, ER = never>(
  options: EmbedManyOptions<RC, SR, ER>
): Effect.Effect<ai.EmbedManyResult, AiError, Ai | NotifiedServices<SR | ER>> =>
  modelCall({ name: "embedMany", operation: "embeddings", splits: true }, options, ai.embedMany)
