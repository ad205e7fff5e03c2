/**
 * A run's journal: each model call and each tool call is an activity of its execution, and answers from storage once it is done.
 */
import { Data, Duration, Effect, Option, Predicate, Schedule } from "effect"
import { type CallPlace, EndsLoop, type Journal, type ToolOutcome, type Verdict } from "../ai/journal.ts"
import { AiError } from "../AiError.ts"
import type { EffectInProgressError, EffectStoreError } from "../errors.ts"
import type { Execution } from "./port.ts"
import { RunRowTooLargeError } from "./errors.ts"
import type { Values } from "./values.ts"

export interface JournalOptions {
  readonly execution: Execution
  readonly values: Values
  /** How often the run was retried. */
  readonly generation: number
  /** For each retry, the step whose answer until then was no good. */
  readonly redo: ReadonlyArray<number | null>
  /** How often a model call is repeated after a retryable failure. */
  readonly maxRetries: number
  /** Told when a call waits for a person. */
  readonly requested: (id: string, place: CallPlace, input: unknown) => Effect.Effect<void>
  /** Told when a person's answer was read. */
  readonly answered: (id: string) => Effect.Effect<void>
}

/** An activity's answer, as it is stored. */
type Stored =
  | { readonly _tag: "Done"; readonly generation: number; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly generation: number; readonly name: string; readonly message: string }
  | { readonly _tag: "TooLarge"; readonly generation: number; readonly size: number; readonly limit: number }

/** What was stored of a failure, for who reads it later: it has the name of what failed. */
export class StoredFailure extends Data.TaggedError("StoredFailure")<{ readonly message: string }> {
  constructor(name: string, message: string) {
    super({ message })
    this.name = name
  }
}

const answerId = (place: Pick<CallPlace, "step" | "toolCallId" | "occurrence">): string =>
  `${place.step}/${place.occurrence}/${place.toolCallId}`

/** What `Engine.approve` and `Engine.deny` call a tool call. */
export const approvalId = (place: {
  readonly step: number
  readonly toolCallId: string
  readonly occurrence?: number | undefined
}): string => answerId({ occurrence: 0, ...place } as CallPlace)

/** The signal that a person's answer is sent to. */
export const approvalSignal = (id: string): string => `approval/${id}`

/** The signal that a failed run waits for. */
export const retrySignal = (generation: number): string => `retry/${generation}`

export const make = (options: JournalOptions): Journal => {
  const { execution, generation, maxRetries, redo, values } = options

  /** Stores how `call` ends, failures too; those of earlier generations are tried again. */
  const stored = (
    name: string,
    call: Effect.Effect<unknown, unknown>,
    isGood: (generation: number) => boolean
  ): Effect.Effect<unknown, unknown> => {
    const body = call.pipe(
      Effect.map((value): Stored => ({ _tag: "Done", generation, value })),
      Effect.catch((error) => Effect.succeed(failed(generation, error))),
      Effect.flatMap((answer) => kept(name, answer))
    )
    const from = (attempt: number): Effect.Effect<unknown, unknown> =>
      Effect.flatMap(execution.activity(name, attempt, body), (text) =>
        Effect.flatMap(values.read(text), (value) => {
          const answer = value as Stored
          if (answer.generation < generation && !(answer._tag === "Done" && isGood(answer.generation))) {
            return from(attempt + 1)
          }
          return opened(name, answer)
        }))
    return from(1)
  }

  const kept = (name: string, answer: Stored): Effect.Effect<string> =>
    Effect.catch(values.write(name, answer), (error) =>
      error._tag === "RunRowTooLargeError"
        ? small({ _tag: "TooLarge", generation, size: error.size, limit: error.limit })
        : small(failed(generation, error)))
  // what is small is never refused
  const small = (answer: Stored) => Effect.orDie(values.write("", answer))

  const opened = (name: string, answer: Stored): Effect.Effect<unknown, unknown> => {
    switch (answer._tag) {
      case "Done":
        return Effect.succeed(answer.value)
      case "Failed":
        return Effect.fail(new StoredFailure(answer.name, answer.message))
      case "TooLarge":
        return Effect.fail(
          new EndsLoop(new RunRowTooLargeError({ name, size: answer.size, limit: answer.limit }))
        )
    }
  }

  return {
    model: (step, call) =>
      stored(
        `step-${step}/model`,
        repeated(call, maxRetries),
        (generation) => !redo.slice(generation).includes(step)
      ),
    tool: (place, call) =>
      Effect.mapError(
        stored(`step-${place.step}/tool/${place.toolCallId}/${place.occurrence}`, patient(call), () => true),
        (error) => error instanceof EndsLoop ? error : new EndsLoop(error)
      ) as Effect.Effect<ToolOutcome, EndsLoop>,
    isOurs: isStoreTrouble,
    approval: (place, input, rules) => {
      const id = answerId(place)
      return Effect.flatMap(
        stored(`step-${place.step}/rules/${place.toolCallId}/${place.occurrence}`, rules, () => true),
        (verdict) =>
          (verdict as Verdict).type !== "user-approval"
            ? Effect.succeed(verdict as Verdict)
            : Effect.flatMap(execution.received(approvalSignal(id)), (answer) =>
              Option.isSome(answer)
                ? Effect.as(options.answered(id), JSON.parse(answer.value) as Verdict)
                : Effect.as(options.requested(id, place, input), verdict as Verdict))
      )
    }
  }
}

const failed = (generation: number, error: unknown): Stored => ({
  _tag: "Failed",
  generation,
  ...inWords(error)
})

/** What is kept of a failure. */
export const inWords = (error: unknown): { readonly name: string; readonly message: string } => ({
  name: String(
    Predicate.hasProperty(error, "_tag") && !(error instanceof StoredFailure)
      ? error._tag
      : Predicate.hasProperty(error, "name")
      ? error.name
      : "Unknown"
  ),
  message: String(Predicate.hasProperty(error, "message") ? error.message : error)
})

const backoff = Schedule.exponential("2 seconds").pipe(
  Schedule.setInputType<AiError>(),
  Schedule.modifyDelay(({ duration, input }) =>
    Effect.succeed(input.retryAfter === undefined ? duration : Duration.max(input.retryAfter, duration))
  )
)

/** Repeats a model call as the AI SDK would. */
const repeated = (call: Effect.Effect<unknown, unknown>, maxRetries: number): Effect.Effect<unknown, unknown> => {
  const classified: Effect.Effect<unknown, AiError> = Effect.mapError(call, (cause) => AiError.from(cause))
  const tried = Effect.retry(classified, {
    times: maxRetries,
    while: (error) => error.isRetryable && error.reason !== "Timeout",
    schedule: backoff
  })
  return Effect.mapError(tried, (error) => error.cause ?? error)
}

const isStoreTrouble = (failure: unknown): failure is EffectStoreError | EffectInProgressError =>
  Predicate.isTagged(failure, "EffectStoreError") || Predicate.isTagged(failure, "EffectInProgressError")

/** Tries again for as long as the ledger cannot be reached, or somebody else holds the key: the model never hears of it. */
const patient = (call: Effect.Effect<ToolOutcome, unknown>): Effect.Effect<ToolOutcome, unknown> =>
  Effect.retry(call, {
    while: (error) => isStoreTrouble(error) && !(error._tag === "EffectStoreError" && error.permanent === true),
    schedule: Schedule.min([Schedule.exponential("100 millis", 2), Schedule.spaced("10 seconds")])
  })
