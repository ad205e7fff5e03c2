/**
 * `generateImage` of the AI SDK as an Effect.
 *
 * @since 0.1.0
 */
import * as ai from "ai"
import type { Effect } from "effect"
import type { Ai } from "./Ai.ts"
import { modelCall } from "./ai/modelCall.ts"
import type { AiError } from "./AiError.ts"

/**
 * The options of the AI SDK's `generateImage`.
 *
 * @category models
 * @since 0.1.0
 */
export type GenerateImageOptions = Parameters<typeof ai.generateImage>[0]

/**
 * Generates images: the AI SDK's `generateImage`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, and does not wait for a model that ignores that. An `abortSignal` of your own
 * works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. `maxRetries` is that of `Ai`
 * where the call does not name its own. An answer without an image fails with reason `"NoImageGeneratedError"`.
 *
 * **Example** (One image)
 *
 * ```ts
 * import { Ai, generateImage } from "chamvi-effect"
 * import type { ImageModel } from "ai"
 * import { Effect } from "effect"
 *
 * const model: ImageModel = {
 *   specificationVersion: "v4",
 *   provider: "mock",
 *   modelId: "mock",
 *   maxImagesPerCall: 1,
 *   doGenerate: async () => ({
 *     images: ["iVBORw0KGgo="],
 *     warnings: [],
 *     response: { timestamp: new Date(0), modelId: "mock", headers: undefined }
 *   })
 * }
 * const program = Effect.map(generateImage({ model, prompt: "a red circle" }), (result) => result.image.mediaType)
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => "image/png"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const generateImage = (
  options: GenerateImageOptions
): Effect.Effect<ai.GenerateImageResult, AiError, Ai> =>
  modelCall({ name: "generateImage", operation: "generate_image" }, options, ai.generateImage)
