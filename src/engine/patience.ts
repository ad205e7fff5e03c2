/**
 * How often and how long the calls of a run are tried again.
 */
import { Duration, Effect, Predicate, Schedule } from "effect"
import { AiError } from "../AiError.ts"
import type { EffectInProgressError, EffectStoreError } from "../errors.ts"

const backoff = Schedule.exponential("2 seconds").pipe(
  Schedule.setInputType<AiError>(),
  Schedule.modifyDelay(({ duration, input }) =>
    Effect.succeed(input.retryAfter === undefined ? duration : Duration.max(input.retryAfter, duration))
  )
)

/** Repeats a model call as the AI SDK would. */
export const repeated = (
  call: Effect.Effect<unknown, unknown>,
  maxRetries: number,
  /** Told before each repetition. */
  repeating: Effect.Effect<void>
): Effect.Effect<unknown, unknown> => {
  let isFirst = true
  const told = Effect.suspend(() => {
    if (!isFirst) return repeating
    isFirst = false
    return Effect.void
  })
  const classified: Effect.Effect<unknown, AiError> = Effect.mapError(
    Effect.andThen(told, call),
    (cause) => AiError.from(cause)
  )
  const tried = Effect.retry(classified, {
    times: maxRetries,
    while: (error) => error.isRetryable && error.reason !== "Timeout",
    schedule: backoff
  })
  return Effect.mapError(tried, (error) => error.cause ?? error)
}

const isStoreTrouble = (failure: unknown): failure is EffectStoreError | EffectInProgressError =>
  Predicate.isTagged(failure, "EffectStoreError") || Predicate.isTagged(failure, "EffectInProgressError")

/** What the model never hears of: the ledger is in trouble, or has a record that cannot be read. */
export const isOurs = (failure: unknown): boolean =>
  isStoreTrouble(failure) || Predicate.isTagged(failure, "EffectRecordError")

/** Trouble that is over one day by itself. */
export const isPassing = (failure: unknown): failure is EffectStoreError | EffectInProgressError =>
  isStoreTrouble(failure) && !(failure._tag === "EffectStoreError" && failure.permanent === true)

/** Tries again while the ledger cannot be reached. Who waited for somebody else's key has waited in this process already. */
export const patient = (call: Effect.Effect<unknown, unknown>, patience: number): Effect.Effect<unknown, unknown> =>
  Effect.retry(call, {
    while: (error) => isPassing(error) && error._tag === "EffectStoreError",
    schedule: Schedule.upTo(Schedule.exponential("100 millis"), { duration: patience })
  })

/** Milliseconds that a call sleeps which was in trouble so often before: a second, twice as long each time, at most a minute. */
export const sleepAfter = (before: number): number => Math.min(1000 * 2 ** before, 60_000)
