/**
 * The failure of a call of the AI SDK.
 *
 * @since 0.1.0
 */
import { RetryError, TypeValidationError } from "ai"
import { Data, Predicate } from "effect"
import { abbreviate } from "./internal/abbreviate.ts"

/**
 * What went wrong: the AI SDK's error class, or one of four that it has none for.
 *
 * - `Aborted`: an `abortSignal` that was passed to the call aborted (`cause` is its reason), or a stream was left, or its
 *   scope closed, before its end.
 * - `Timeout`: the call's `timeout` ran out.
 * - `Gateway`: the AI Gateway refused or failed.
 * - `Unknown`: anything else, such as an exception of a function that was passed to the call.
 *
 * @category models
 * @since 0.1.0
 */
export type AiErrorReason =
  | "Aborted"
  | "Timeout"
  | "Gateway"
  | "Unknown"
  | "APICallError"
  | "DownloadError"
  | "EmptyResponseBodyError"
  | "InvalidArgumentError"
  | "InvalidDataContentError"
  | "InvalidMessageRoleError"
  | "InvalidPromptError"
  | "InvalidResponseDataError"
  | "InvalidToolApprovalError"
  | "InvalidToolApprovalSignatureError"
  | "InvalidToolInputError"
  | "JSONParseError"
  | "LoadAPIKeyError"
  | "LoadSettingError"
  | "MessageConversionError"
  | "MissingToolResultsError"
  | "NoContentGeneratedError"
  | "NoImageGeneratedError"
  | "NoObjectGeneratedError"
  | "NoOutputGeneratedError"
  | "NoSpeechGeneratedError"
  | "NoSuchModelError"
  | "NoSuchProviderError"
  | "NoSuchProviderReferenceError"
  | "NoSuchToolError"
  | "NoTranscriptGeneratedError"
  | "SerializationError"
  | "StreamProviderError"
  | "ToolCallNotFoundForApprovalError"
  | "ToolCallRepairError"
  | "ToolChoiceViolationError"
  | "TypeValidationError"
  | "UnsupportedFunctionalityError"

const reasons: ReadonlySet<string> = new Set<Exclude<AiErrorReason, "Aborted" | "Timeout" | "Gateway" | "Unknown">>([
  "APICallError",
  "DownloadError",
  "EmptyResponseBodyError",
  "InvalidArgumentError",
  "InvalidDataContentError",
  "InvalidMessageRoleError",
  "InvalidPromptError",
  "InvalidResponseDataError",
  "InvalidToolApprovalError",
  "InvalidToolApprovalSignatureError",
  "InvalidToolInputError",
  "JSONParseError",
  "LoadAPIKeyError",
  "LoadSettingError",
  "MessageConversionError",
  "MissingToolResultsError",
  "NoContentGeneratedError",
  "NoImageGeneratedError",
  "NoObjectGeneratedError",
  "NoOutputGeneratedError",
  "NoSpeechGeneratedError",
  "NoSuchModelError",
  "NoSuchProviderError",
  "NoSuchProviderReferenceError",
  "NoSuchToolError",
  "NoTranscriptGeneratedError",
  "SerializationError",
  "StreamProviderError",
  "ToolCallNotFoundForApprovalError",
  "ToolCallRepairError",
  "ToolChoiceViolationError",
  "TypeValidationError",
  "UnsupportedFunctionalityError"
])

// The messages of these hold the value that they are about: a prompt, a context, a response.
const talkative: ReadonlySet<string> = new Set<AiErrorReason>([
  "TypeValidationError",
  "JSONParseError",
  "InvalidResponseDataError",
  "InvalidToolInputError"
])

/**
 * A call of the AI SDK failed. `cause` is the SDK's own error, identical.
 *
 * **Details**
 *
 * After several attempts, `reason`, `isRetryable` and `statusCode` are those of the last one, `attempts` says how many
 * there were, and `cause` is the SDK's `RetryError` with all of them.
 *
 * **Gotchas**
 *
 * An `APICallError` holds the whole request, with the prompt in it. The message of an `AiError` never does, and `cause` is
 * not an own property, so that loggers and serializers do not reach it. Take care where you log `cause` yourself.
 *
 * **Example** (Reacting to a refused key)
 *
 * ```ts
 * import { AiError } from "chamvi-effect"
 * import { APICallError } from "ai"
 *
 * const refused = new APICallError({
 *   message: "invalid key",
 *   url: "https://api.example.com",
 *   requestBodyValues: {},
 *   statusCode: 401
 * })
 * const error = AiError.from(refused)
 * const seen = [error.reason, error.statusCode, error.isRetryable]
 * seen // => ["APICallError", 401, false]
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class AiError extends Data.TaggedError("AiError")<{
  readonly reason: AiErrorReason
  readonly message: string
  /** Whether the same call may succeed later. */
  readonly isRetryable: boolean
  /** The HTTP status that a provider answered, if one did. */
  readonly statusCode: number | undefined
  /** How many attempts were made. */
  readonly attempts: number
}> {
  #cause: unknown = undefined

  /** The error of the AI SDK, or what else was thrown: the identical value. */
  override get cause(): unknown {
    return this.#cause
  }

  /** Classifies what a call of the AI SDK rejected with. */
  static from(cause: unknown): AiError {
    const last = RetryError.isInstance(cause) ? cause.lastError : cause
    const reason = reasonOf(last)
    const error = new AiError({
      reason,
      message: messageOf(reason, last),
      isRetryable: reason === "Timeout" || Predicate.hasProperty(last, "isRetryable") && last.isRetryable === true,
      statusCode: Predicate.hasProperty(last, "statusCode") && typeof last.statusCode === "number"
        ? last.statusCode
        : undefined,
      attempts: RetryError.isInstance(cause) ? cause.errors.length : 1
    })
    error.#cause = cause
    return error
  }

  /** The call was aborted before its end: by an `abortSignal` of the caller's own, unless `message` says otherwise. */
  static aborted(reason: unknown, message = "The call was aborted by its abortSignal."): AiError {
    const error = new AiError({
      reason: "Aborted",
      message,
      isRetryable: false,
      statusCode: undefined,
      attempts: 1
    })
    error.#cause = reason
    return error
  }
}

const reasonOf = (error: unknown): AiErrorReason => {
  const name = Predicate.hasProperty(error, "name") && typeof error.name === "string" ? error.name : ""
  if (name === "TimeoutError") return "Timeout"
  if (name.startsWith("Gateway")) return "Gateway"
  const known = name.replace(/^AI_/, "")
  return reasons.has(known) ? known as AiErrorReason : "Unknown"
}

const messageOf = (reason: AiErrorReason, error: unknown): string => {
  if (reason === "Timeout") return "The call did not finish within its timeout."
  if (talkative.has(reason)) return `${reason}: the value${placeOf(error)} did not have the expected form (see cause).`
  const text = error instanceof Error ? error.message : typeof error === "string" ? error : ""
  return text === "" ? `The call failed (${reason}).` : `${reason}: ${abbreviate(text, 1000)}`
}

/** Which value it was: the name of a tool, say, which the SDK keeps beside the value. */
const placeOf = (error: unknown): string => {
  if (!TypeValidationError.isInstance(error) || error.context === undefined) return ""
  const { entityName, field } = error.context
  return [field === undefined ? "" : ` of ${field}`, entityName === undefined ? "" : ` (${entityName})`]
    .map((part) => abbreviate(part))
    .join("")
}
