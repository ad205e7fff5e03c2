/**
 * How a failure travels through the AI SDK.
 *
 * The SDK makes the model's text from `String(error)`, or from `JSON.stringify(error)`: of a tagged error that leaves the
 * tag, and a BigInt or a cycle in it makes the whole call reject. So a tool throws this carrier, whose text is a full
 * description, and `generateText` puts the original value back into the parts as soon as the messages are made.
 */
import { describeFailure } from "../internal/describeFailure.ts"

export class ToolFailure extends Error {
  /** The value that `execute` failed with, identical. */
  readonly original: unknown

  constructor(original: unknown) {
    super(describeFailure(original))
    this.name = "ToolFailure"
    this.original = original
    // the original is for programs; logs and serializers get the description
    Object.defineProperty(this, "original", { enumerable: false })
  }

  override toString(): string {
    return this.message
  }

  toJSON(): unknown {
    return this.message
  }
}

/** The value that `execute` failed with, out of its carrier if it is in one. */
export const originalOf = (error: unknown): unknown => error instanceof ToolFailure ? error.original : error

/**
 * What a tool throws where nobody takes the carrier off again (plain `ai`): the identical value if the SDK can make a text
 * of it, else the carrier.
 */
export const carryable = (original: unknown): unknown => {
  if (original === null || typeof original === "string") return original
  try {
    const text: unknown = original instanceof Error ? original.toString() : JSON.stringify(original)
    return typeof text === "string" ? original : new ToolFailure(original)
  } catch {
    return new ToolFailure(original)
  }
}

/** Puts the original values back into a step's parts, in place: the SDK holds these very objects. */
export const restoreParts = (parts: ReadonlyArray<unknown>): void => {
  for (const part of parts) {
    const toolError = part as { readonly type?: string; error?: unknown }
    if (toolError.type === "tool-error" && toolError.error instanceof ToolFailure) {
      toolError.error = toolError.error.original
    }
  }
}
