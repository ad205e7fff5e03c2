/**
 * Step 6 of a reconciliation: asking the remote whether the effect is there.
 */
import { Clock, Duration, Effect, Option } from "effect"
import type { Claimed } from "../EffectRecord.ts"
import { EffectResolution } from "../EffectResolution.ts"
import * as RecordedResult from "../RecordedResult.ts"
import type { Application } from "./Application.ts"
import { monotonicMillis } from "./bounded.ts"
import type { Call } from "./Call.ts"
import { runHook } from "./hook.ts"
import { toRecord } from "./resultCodec.ts"

/**
 * `Applied` carries the text of `RecordedResult`. `NotApplied` is a "no" that is believed: it clears the doubt of earlier
 * attempts.
 */
export type CheckAnswer =
  | { readonly _tag: "Applied"; readonly text: string }
  | { readonly _tag: "NotApplied" }
  | { readonly _tag: "Unknown" }

const notApplied: CheckAnswer = { _tag: "NotApplied" }
const unknown: CheckAnswer = { _tag: "Unknown" }

/** The first pause before a "no" is asked again, in milliseconds; it doubles each time. */
const firstPause = 100

const wrongAnswer = (call: Call, problem: string) =>
  new TypeError(
    `alreadyApplied of tool "${call.tool}" answered ${problem}. Nothing was recorded and nothing was executed. Answer `
      + `what execute would have returned, undefined for "not applied", or an EffectResolution.`
  )

const textOf = (call: Call, value: unknown): Effect.Effect<CheckAnswer> =>
  Effect.matchEffect(call.encode(value), {
    onFailure: (problem) => Effect.die(wrongAnswer(call, `something that cannot be recorded (${problem})`)),
    onSuccess: (json) =>
      Effect.succeed<CheckAnswer>({ _tag: "Applied", text: toRecord(json, call.settings.largestResult) })
  })

const interpret = (call: Call, answer: unknown): Effect.Effect<CheckAnswer> => {
  if (answer === undefined) return Effect.succeed(notApplied)
  // `Option.none()` for "no" would be a yes: any value but undefined says that the effect is there. Where the result itself
  // is an Option, `applied(option)` says so.
  if (Option.isOption(answer)) return Effect.die(wrongAnswer(call, "an Option"))
  if (!EffectResolution.is(answer)) return textOf(call, answer)
  switch (answer._tag) {
    case "NotApplied":
      return Effect.succeed(notApplied)
    case "Unknown":
      return Effect.succeed(unknown)
    case "Applied":
      return answer.result === undefined
        ? Effect.succeed({
          _tag: "Applied",
          text: RecordedResult.unavailable("the remote check knows that the effect was applied, but not its result")
        })
        : textOf(call, answer.result.value)
  }
}

/**
 * Asks once.
 */
export const askRemote = (application: Application, call: Call): Effect.Effect<CheckAnswer, unknown> =>
  Effect.flatMap(runHook(application, call.alreadyApplied!), (answer) => interpret(call, answer))

/**
 * Asks, and asks a "no" again until `settle` has passed since the attempt that it is about can last have been
 * alive.
 */
export const checkRemote = (
  application: Application,
  call: Call,
  claimed: Claimed
): Effect.Effect<CheckAnswer, unknown> => {
  const ask = askRemote(application, call)
  const { settle } = call
  if (settle === undefined || claimed.doubt === "none") return ask
  return Effect.flatMap(Clock.Clock, (clock) => {
    // The age is as of the grant, which was made when the reply came at the latest: counted from the request, a slow claim
    // would end the wait too early.
    const settledAt = monotonicMillis(clock) - (claimed.earlier?.age ?? 0) + settle
    const again = (pause: number): Effect.Effect<CheckAnswer, unknown> =>
      Effect.suspend(() => {
        const askedAt = monotonicMillis(clock)
        return Effect.flatMap(ask, (answer) => {
          if (answer._tag !== "NotApplied" || askedAt >= settledAt) return Effect.succeed(answer)
          const wait = Math.min(pause, Math.max(1, settledAt - monotonicMillis(clock)))
          return Effect.andThen(Effect.interruptible(clock.sleep(Duration.millis(wait))), again(pause * 2))
        })
      })
    return again(firstPause)
  })
}
