/**
 * `transcribe` of the AI SDK as an Effect.
 *
 * @since 0.1.0
 */
import * as ai from "ai"
import type { Effect } from "effect"
import type { Ai } from "./Ai.ts"
import { modelCall } from "./ai/modelCall.ts"
import type { AiError } from "./AiError.ts"

/**
 * The options of the AI SDK's `transcribe`.
 *
 * @category models
 * @since 0.1.0
 */
export type TranscribeOptions = Omit<Parameters<typeof ai.transcribe>[0], "_internal">

/**
 * Writes down what is spoken: the AI SDK's `transcribe`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, and does not wait for a model that ignores that. An `abortSignal` of your own
 * works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. `maxRetries` and `telemetry` are
 * those of `Ai` where the call does not name its own. An answer without a text fails with reason
 * `"NoTranscriptGeneratedError"`.
 *
 * **Example** (A transcript)
 *
 * ```ts
 * import { Ai, transcribe } from "chamvi-effect"
 * import type { TranscriptionModel } from "ai"
 * import { Effect } from "effect"
 *
 * const model: TranscriptionModel = {
 *   specificationVersion: "v4",
 *   provider: "mock",
 *   modelId: "mock",
 *   doGenerate: async () => ({
 *     text: "Hello.",
 *     segments: [],
 *     language: "en",
 *     durationInSeconds: 1,
 *     warnings: [],
 *     response: { timestamp: new Date(0), modelId: "mock" }
 *   })
 * }
 * const program = Effect.map(transcribe({ model, audio: new Uint8Array([1, 2, 3]) }), (result) => result.text)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => "Hello."
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const transcribe = (
  options: TranscribeOptions
): Effect.Effect<ai.TranscriptionResult, AiError, Ai> =>
  modelCall({ name: "transcribe", operation: "transcribe" }, options, ai.transcribe)
