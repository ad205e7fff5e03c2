/**
 * `generateSpeech` of the AI SDK as an Effect.
 *
 * @since 0.1.0
 */
import * as ai from "ai"
import type { Effect } from "effect"
import type { Ai } from "./Ai.ts"
import { modelCall } from "./ai/modelCall.ts"
import type { AiError } from "./AiError.ts"

/**
 * The options of the AI SDK's `generateSpeech`.
 *
 * @category models
 * @since 0.1.0
 */
export type GenerateSpeechOptions = Omit<Parameters<typeof ai.generateSpeech>[0], "_internal">

/**
 * Speaks a text: the AI SDK's `generateSpeech`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, and does not wait for a model that ignores that. An `abortSignal` of your own
 * works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. `maxRetries` and `telemetry` are
 * those of `Ai` where the call does not name its own. An answer without audio fails with reason `"NoSpeechGeneratedError"`.
 *
 * **Example** (A spoken sentence)
 *
 * ```ts
 * import { Ai, generateSpeech } from "chamvi-effect"
 * import { MockSpeechModelV4 } from "ai/test"
 * import { Effect } from "effect"
 *
 * const model = new MockSpeechModelV4({
 *   doGenerate: async () => ({
 *     audio: new Uint8Array([1, 2, 3]),
 *     warnings: [],
 *     response: { timestamp: new Date(0), modelId: "mock" }
 *   })
 * })
 * const program = Effect.map(generateSpeech({ model, text: "Hello." }), (result) => result.audio.uint8Array.length)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => 3
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const generateSpeech = (
  options: GenerateSpeechOptions
): Effect.Effect<ai.SpeechResult, AiError, Ai> =>
  modelCall({ name: "generateSpeech", operation: "generate_speech" }, options, ai.generateSpeech)
