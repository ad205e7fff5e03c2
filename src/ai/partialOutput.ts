/**
 * What an `Output` makes of a text that is still being written.
 */
import type { OutputInterface } from "ai"
import type { Part } from "./PartLog.ts"

/** As far as the AI SDK's transforms of elements look at a part. */
export interface Partial {
  readonly part: Part
  readonly partialOutput: unknown
}

/**
 * The partial outputs of a call, each that differs from the one before. The SDK's rules: of each step the first text counts,
 * and a provider's stream that was begun anew (`isRestart`) starts over.
 */
export const partialOutputs = (
  output: OutputInterface,
  isRestart: (part: Part) => boolean
): TransformStream<Part, Partial> => {
  let id: string | undefined
  let text = ""
  let published: string | undefined
  return new TransformStream({
    transform: async (part, controller) => {
      if (part.type === "start-step" || isRestart(part)) {
        id = undefined
        text = ""
        published = undefined
      }
      if (part.type === "text-start") id ??= part.id
      if (part.type !== "text-delta" || part.text === "") return
      id ??= part.id
      if (part.id !== id) return
      text += part.text
      const parsed = await output.parsePartialOutput({ text })
      if (parsed === undefined) return
      const partialOutput: unknown = parsed.partial
      // two that are written alike are one; a text is never taken for the JSON of something else
      const written = typeof partialOutput === "string" ? `"${partialOutput}` : JSON.stringify(partialOutput)
      if (written === published) return
      published = written
      controller.enqueue({ part, partialOutput })
    }
  })
}

/** The outputs alone. */
export const outputsOnly = (): TransformStream<Partial, unknown> =>
  new TransformStream({ transform: ({ partialOutput }, controller) => controller.enqueue(partialOutput) })

/**
 * A transform of the SDK's kind that changes nothing. The SDK makes one for each attempt to read a provider's stream: so
 * the first part of an attempt can be told.
 */
export const restartMarker = (mark: (part: Part) => void) => (): TransformStream<Part, Part> => {
  let isFirst = true
  return new TransformStream({
    transform: (part, controller) => {
      if (isFirst) mark(part)
      isFirst = false
      controller.enqueue(part)
    }
  })
}
