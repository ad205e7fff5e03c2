/**
 * A run's journal: each model call and each tool call is an activity of its execution, and answers from storage once it is done.
 */
import { Cause, Data, Effect, Option, Predicate, Result } from "effect"
import {
  type CallPlace,
  EndsLoop,
  type Journal,
  type ModelAnswer,
  ParksLoop,
  type ToolOutcome,
  type Verdict
} from "../ai/journal.ts"
import { fingerprint } from "../EffectKey.ts"
import { sha256 } from "../internal/sha256.ts"
import * as StoredValue from "../internal/storedValue.ts"
import { ApprovedInputChangedError, ProviderCallApprovalError } from "./approvalErrors.ts"
import { RunCallGoneError, RunRowTooLargeError } from "./errors.ts"
import { isOurs, isPassing, patient, repeated, sleepAfter } from "./patience.ts"
import type { Execution, Timer } from "./port.ts"
import { type ActivityKind, countActivity, countRetry } from "./telemetry.ts"
import type { Values } from "./values.ts"

export interface JournalOptions {
  readonly agent: string
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
  /** From which attempt on there is something to find of an activity that was in trouble. */
  readonly attempts: Readonly<Record<string, number>>
  /** Milliseconds for which a call is tried again in this process before the run is put to sleep. */
  readonly patience: number
  /** Told when a call has to sleep, before the loop is parked. */
  readonly troubled: (trouble: Trouble) => Effect.Effect<void>
  /** Told when a call that had slept has an answer. */
  readonly recovered: (place: CallPlace) => Effect.Effect<void>
  /** Whether the run was told to be cancelled; then nothing of it begins any more. */
  readonly cancelling: Effect.Effect<boolean>
}

/** Why a tool call sleeps, and until when. */
export interface Trouble {
  readonly activity: string
  readonly attempt: number
  readonly place: CallPlace
  readonly timer: Timer
  /** What it met. */
  readonly name: string
  readonly message: string
}

/** An activity's answer, as it is stored. */
type Stored =
  | { readonly _tag: "Done"; readonly generation: number; readonly value: unknown }
  | { readonly _tag: "Failed"; readonly generation: number; readonly name: string; readonly message: string }
  | { readonly _tag: "TooLarge"; readonly generation: number; readonly size: number; readonly limit: number }
  /** It was not begun: the run is cancelled, which is never taken back. */
  | { readonly _tag: "Cancelled"; readonly generation: number }
  | {
    readonly _tag: "Trouble"
    readonly generation: number
    /** How many attempts were in trouble before this one, one after the other. */
    readonly before: number
    readonly name: string
    readonly message: string
  }

/** What was stored of a failure, for who reads it later: it has the name of what failed. */
export class StoredFailure extends Data.TaggedError("StoredFailure")<{ readonly message: string }> {
  constructor(name: string, message: string) {
    super({ message })
    this.name = name
  }
}

/** A provider may give any id; one that storages cannot keep as it is, or would take for another's, is kept as JSON. */
const keptId = (toolCallId: string): string =>
  toolCallId.isWellFormed() && !toolCallId.includes("\0") && !toolCallId.startsWith("\"")
    ? toolCallId
    : JSON.stringify(toolCallId)

const answerId = (place: Pick<CallPlace, "step" | "toolCallId" | "occurrence">): string =>
  `${place.step}/${place.occurrence}/${keptId(place.toolCallId)}`

/** What `Engine.approve` and `Engine.deny` call a tool call. */
export const approvalId = (place: {
  readonly step: number
  readonly toolCallId: string
  readonly occurrence?: number | undefined
}): string => answerId({ occurrence: 0, ...place } as CallPlace)

/** Whether `approvalId` can have made it. */
export const isApprovalId = (id: string): boolean => /^-?\d+\/\d+\//.test(id)

/** The signal that a person's answer is sent to. */
export const approvalSignal = (id: string): string => `approval/${id}`

/** The signal that a failed run waits for. */
export const retrySignal = (generation: number): string => `retry/${generation}`

export const make = (options: JournalOptions): Journal => {
  const { execution, generation, maxRetries, redo, values } = options

  const activity = (
    kind: ActivityKind,
    name: string,
    attempt: number,
    body: Effect.Effect<Stored>
  ): Effect.Effect<Stored> => {
    let from: "execution" | "storage" = "storage"
    const executed = Effect.suspend(() => {
      from = "execution"
      return Effect.flatMap(
        options.cancelling,
        (cancelling) =>
          cancelling
            ? small({ _tag: "Cancelled", generation })
            : Effect.flatMap(body, (answer) => kept(name, answer))
      )
    })
    return Effect.flatMap(execution.activity(name, attempt, executed), (text) =>
      Effect.andThen(
        countActivity(options.agent, kind, from),
        values.read(text) as Effect.Effect<Stored>
      ))
  }

  /** How `call` ends, failures too. What it dies of must not be stored as it is: no retry would get past it. */
  const ended = (call: Effect.Effect<unknown, unknown>): Effect.Effect<Stored> =>
    call.pipe(
      Effect.map((value): Stored => ({ _tag: "Done", generation, value })),
      dyingFails,
      Effect.catch((error) => Effect.succeed(failed(generation, error)))
    )

  /** The stored answer of what `body` is about; where an earlier one is no good, that of its next attempt. */
  const stored = (
    kind: ActivityKind,
    name: string,
    body: (before: number) => Effect.Effect<Stored>,
    isGood: (generation: number, value: unknown) => boolean,
    /** Of a call that may meet trouble. */
    place?: CallPlace
  ): Effect.Effect<unknown, unknown> => {
    const from = (attempt: number, before: number): Effect.Effect<unknown, unknown> =>
      Effect.flatMap(activity(kind, name, attempt, body(before)), (answer) => {
        if (answer._tag === "Cancelled") return Effect.fail(new ParksLoop())
        if (answer.generation < generation && !(answer._tag === "Done" && isGood(answer.generation, answer.value))) {
          return from(attempt + 1, 0)
        }
        if (answer._tag !== "Trouble") {
          return Effect.andThen(
            attempt === 1 || place === undefined ? Effect.void : options.recovered(place),
            opened(name, answer)
          )
        }
        const timer = { name: `${name}/${attempt}`, delay: sleepAfter(answer.before) }
        return Effect.flatMap(execution.wentOff(timer.name), (wentOff) =>
          wentOff
            ? Effect.andThen(countRetry(options.agent, "tool"), from(attempt + 1, answer.before + 1))
            : Effect.andThen(
              options.troubled({
                activity: name,
                attempt,
                place: place!,
                timer,
                name: answer.name,
                message: answer.message
              }),
              Effect.fail(new ParksLoop())
            ))
      })
    // a journal that is broken says nothing about the call: nobody shall take that for its answer
    return Effect.catchDefect(from(options.attempts[name] ?? 1, 0), (defect) => Effect.fail(new EndsLoop(defect)))
  }

  /** As `ended`; but what is over one day by itself is no end. */
  const endedOrInTrouble = (call: Effect.Effect<unknown, unknown>) => (before: number): Effect.Effect<Stored> =>
    Effect.flatMap(
      Effect.result(dyingFails(patient(call, options.patience))),
      (result) =>
        Result.isFailure(result) && isPassing(result.failure)
          ? Effect.succeed<Stored>({ _tag: "Trouble", generation, before, ...inWords(result.failure) })
          : ended(Effect.fromResult(result))
    )

  const kept = (name: string, answer: Stored): Effect.Effect<string> =>
    Effect.catch(values.write(name, answer), (error) =>
      error._tag === "RunRowTooLargeError"
        ? small({ _tag: "TooLarge", generation, size: error.size, limit: error.limit })
        : small(failed(generation, error)))
  // what is small is never refused
  const small = (answer: Stored) => Effect.orDie(values.write("", answer))

  const opened = (
    name: string,
    answer: Exclude<Stored, { readonly _tag: "Trouble" | "Cancelled" }>
  ): Effect.Effect<unknown, unknown> => {
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
        "model",
        `step-${step}/model`,
        () => ended(repeated(call, maxRetries, countRetry(options.agent, "model"))),
        (generation, answer) => callsTools(answer) || !redo.slice(generation).includes(step)
      ),
    tool: (place, call) =>
      Effect.mapError(
        stored(
          "tool",
          `step-${place.step}/tool/${keptId(place.toolCallId)}/${place.occurrence}`,
          endedOrInTrouble(call),
          () => true,
          place
        ),
        (error) => error instanceof EndsLoop || error instanceof ParksLoop ? error : new EndsLoop(error)
      ) as Effect.Effect<ToolOutcome, EndsLoop | ParksLoop>,
    isOurs,
    gone: ({ step, toolCallId, toolName }) => new EndsLoop(new RunCallGoneError({ step, toolCallId, toolName })),
    input: (step, kind, about, decide) =>
      Effect.flatMap(
        typeof about === "string" ? Effect.succeed(keptId(about)) : printOf(about.toolName, about.input),
        (name) =>
          Effect.mapError(
            stored("rules", `step-${step}/${kind}/${name}`, () => ended(decide), () => true),
            // an answer that cannot be kept would be another one the next time
            (error) => error instanceof EndsLoop ? error : new EndsLoop(error)
          )
      ),
    approvalId: answerId,
    approval: Effect.fnUntraced(function*(place, input, rules) {
      const id = answerId(place)
      const print = yield* printOf(place.toolName, input)
      const ruled = (yield* stored(
        "rules",
        `step-${place.step}/rules/${keptId(place.toolCallId)}/${place.occurrence}`,
        () => ended(Effect.map(rules, (verdict): Ruled => ({ verdict, print }))),
        () => true
      )) as Ruled
      const answer = ruled.verdict.type === "user-approval"
        ? yield* execution.received(approvalSignal(id))
        : Option.none()
      const verdict = Option.isSome(answer) ? JSON.parse(answer.value) as Verdict : ruled.verdict
      const { step, toolCallId, toolName } = place
      // a call that is denied is not executed, whatever its input
      if (verdict.type !== "denied") {
        if (ruled.print !== print) {
          return yield* Effect.fail(new EndsLoop(new ApprovedInputChangedError({ step, toolCallId, toolName })))
        }
        if (verdict.type === "user-approval" && place.providerExecuted === true) {
          return yield* Effect.fail(new EndsLoop(new ProviderCallApprovalError({ step, toolCallId, toolName })))
        }
      }
      if (ruled.verdict.type !== "user-approval") return verdict
      yield* Option.isSome(answer) ? options.answered(id) : options.requested(id, place, input)
      return { ...verdict, asked: true }
    })
  }
}

/** What the agent's rules said to a call, and to which. */
interface Ruled {
  readonly verdict: Verdict
  /** The fingerprint of its input. */
  readonly print: string
}

const printOf = (toolName: string, input: unknown): Effect.Effect<string, EndsLoop> =>
  Effect.map(
    Effect.try({ try: () => StoredValue.encode(input).text, catch: (error) => new EndsLoop(error) }),
    // what has no canonical JSON, such as half a character, is told apart by the text itself
    (text) => Result.getOrElse(fingerprint(toolName, JSON.parse(text)), () => sha256(JSON.stringify([toolName, text])))
  )

/**
 * Whether a model's answer calls tools here. Such an answer stands whatever a retry asks for: calls of another one might have the
 * ids of its calls, and would be taken for them, as made or as approved.
 */
const callsTools = (answer: unknown): boolean =>
  (answer as ModelAnswer).result.content.some((part) => part.type === "tool-call" && part.providerExecuted !== true)

/** What it dies of, as a failure; an interruption says nothing, and is none. */
const dyingFails = <A>(call: Effect.Effect<A, unknown>): Effect.Effect<A, unknown> =>
  Effect.catchCause(call, (cause) =>
    Cause.hasDies(cause) && !Cause.hasInterrupts(cause)
      ? Effect.fail(Cause.squash(cause))
      : Effect.failCause(cause))

const failed = (generation: number, error: unknown): Stored => ({
  _tag: "Failed",
  generation,
  ...inWords(error)
})

/** Characters of a failure's message that are kept: it is for people, and some errors quote all that they were given. */
const longestMessage = 8 * 1024

/** What is kept of a failure. */
export const inWords = (error: unknown): { readonly name: string; readonly message: string } => ({
  name: String(
    Predicate.hasProperty(error, "_tag") && !(error instanceof StoredFailure)
      ? error._tag
      : Predicate.hasProperty(error, "name")
      ? error.name
      : "Unknown"
  ),
  message: String(Predicate.hasProperty(error, "message") ? error.message : error).slice(0, longestMessage)
})
