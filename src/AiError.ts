/**
 * The failure of a call of the AI SDK.
 *
 * @since 0.1.0
 */
import { RetryError } from "ai"
import { Data, Duration, Predicate } from "effect"
import { discreetCause, discreetMessage, nameOf } from "./ai/discreetCause.ts"
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
export type AiErrorReason = "Aborted" | "Timeout" | "Gateway" | "Unknown" | (typeof classes)[number]

const classes = [
  "APICallError",
  "DecisionRefusalError",
  "DecisionUnsupportedQuestionTypeError",
  "DownloadError",
  "EmptyResponseBodyError",
  "ExtractionRefusalError",
  "ExtractionUnsupportedFieldTypeError",
  "InvalidArgumentError",
  "InvalidDataContentError",
  "InvalidMessageRoleError",
  "InvalidPromptError",
  "InvalidResponseDataError",
  "InvalidStreamPartError",
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
  "NoTranslationGeneratedError",
  "NoVideoGeneratedError",
  "SerializationError",
  "StreamProviderError",
  "TooManyEmbeddingValuesForCallError",
  "ToolCallNotFoundForApprovalError",
  "ToolCallRepairError",
  "ToolChoiceViolationError",
  "TypeValidationError",
  "UIMessageStreamError",
  "UnsupportedFunctionalityError",
  "UnsupportedModelVersionError"
] as const

const reasons: ReadonlySet<string> = new Set(classes)

/**
 * A call of the AI SDK failed. `cause` is the SDK's own error, identical unless its words would tell too much.
 *
 * **Details**
 *
 * After several attempts, `reason`, `isRetryable` and `statusCode` are those of the last one, `attempts` says how many
 * there were, and `cause` is the SDK's `RetryError` with all of them.
 *
 * **Gotchas**
 *
 * Loggers print messages, and the chain of causes. So no message of an `AiError` repeats a prompt or what a model wrote, and
 * where the SDK's own message does (`TypeValidationError`, `JSONParseError`, and what they caused), `cause` is an object of
 * the same class, with the same fields, in other words. `cause` is not an own property: `JSON.stringify` and `inspect` do
 * not reach it. Its fields do hold what was sent and answered (`requestBodyValues`, `text`, `value`): take care where you
 * write them down yourself.
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
  /** How long the provider asked to wait before the next attempt, if it did. */
  readonly retryAfter: Duration.Duration | undefined
}> {
  #cause: unknown = undefined

  /** The error of the AI SDK, or what else was thrown. */
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
      attempts: RetryError.isInstance(cause) ? cause.errors.length : 1,
      retryAfter: retryAfterOf(last)
    })
    error.#cause = discreetCause(cause)
    return error
  }

  /** The call was aborted before its end: by an `abortSignal` of the caller's own, unless `message` says otherwise. */
  static aborted(reason: unknown, message = "The call was aborted by its abortSignal."): AiError {
    const error = new AiError({
      reason: "Aborted",
      message,
      isRetryable: false,
      statusCode: undefined,
      attempts: 1,
      retryAfter: undefined
    })
    error.#cause = reason
    return error
  }
}

const reasonOf = (error: unknown): AiErrorReason => {
  const name = nameOf(error)
  if (name === "TimeoutError") return "Timeout"
  if (name.startsWith("Gateway")) return "Gateway"
  return reasons.has(name) ? name as AiErrorReason : "Unknown"
}

const messageOf = (reason: AiErrorReason, error: unknown): string => {
  if (reason === "Timeout") return "The call did not finish within its timeout."
  const text = discreetMessage(error)
    ?? (error instanceof Error ? error.message : typeof error === "string" ? error : "")
  return text === "" ? `The call failed (${reason}).` : `${reason}: ${abbreviate(text, 1000)}`
}

/** The headers that the AI SDK's own retries follow. A date counts from the answer's own `date`. */
const retryAfterOf = (error: unknown): Duration.Duration | undefined => {
  if (!Predicate.hasProperty(error, "responseHeaders") || !Predicate.isObject(error.responseHeaders)) return undefined
  const headers = error.responseHeaders as Readonly<Record<string, string | undefined>>
  const millis = [
    Number.parseFloat(headers["retry-after-ms"] ?? ""),
    Number(headers["retry-after"] ?? Number.NaN) * 1000,
    Date.parse(headers["retry-after"] ?? "") - Date.parse(headers["date"] ?? "")
  ].find((value) => Number.isFinite(value) && value >= 0)
  return millis === undefined ? undefined : Duration.millis(millis)
}
