/**
 * How a failure stands in a span: by its name, and by its message where that tells nothing of what was said.
 *
 * Tracers print an error with the chain of its causes, and an error of the AI SDK has the whole request in it. So a span
 * ends with an error of its own, without causes and fields.
 */
import { AISDKError } from "ai"
import { Cause, Exit, Predicate } from "effect"
import { AiError } from "../../AiError.ts"
import { originalOf } from "../ToolFailure.ts"

/** Errors whose messages quote the value that they are about. */
const quoting: ReadonlySet<string> = new Set(["SchemaError", "ToolResultError", "EffectRecordError"])

/** The tag or the name of an error: the value of `error.type`. */
export const errorType = (failure: unknown): string => {
  const error = originalOf(failure)
  if (error instanceof AiError) return error.reason
  if (Predicate.hasProperty(error, "_tag") && typeof error._tag === "string") return error._tag
  if (Predicate.hasProperty(error, "name") && typeof error.name === "string") return error.name.replace(/^AI_/, "")
  return typeof error
}

/** An error for a span. With `quotes`, its message may tell the value that it is about. */
const spanError = (failure: unknown, quotes: boolean): Error => {
  const original = originalOf(failure)
  const error = AISDKError.isInstance(original) ? AiError.from(original) : original
  const type = errorType(error)
  const told = quotes || !quoting.has(type)
  const shown = new Error(told ? messageOf(error) : "")
  shown.name = type
  const stack = told && error instanceof Error ? error.stack : undefined
  shown.stack = stack ?? `${type}: ${shown.message}`
  return shown
}

const messageOf = (error: unknown): string =>
  Predicate.hasProperty(error, "message") && typeof error.message === "string"
    ? error.message
    : typeof error === "string"
    ? error
    : ""

/** A failure as the end of a span. */
export const failed = (failure: unknown, quotes = false): Exit.Exit<never, Error> =>
  Exit.fail(spanError(failure, quotes))

/** The end of a call as the end of its span. One that was aborted, by whatever signal, is no failure. */
export const spanExit = (exit: Exit.Exit<unknown, unknown>): Exit.Exit<void, Error> => {
  if (Exit.isSuccess(exit)) return Exit.void
  const failure = Cause.squash(exit.cause)
  const aborted = Cause.hasInterruptsOnly(exit.cause) || failure instanceof AiError && failure.reason === "Aborted"
  return aborted ? interrupted : failed(failure)
}

export const interrupted: Exit.Exit<never> = Exit.interrupt()

/** Whether a failure only says that the call was aborted. */
export const isAbort = (failure: unknown): boolean => {
  const error = originalOf(failure)
  return error instanceof DOMException && error.name === "AbortError"
}
