/**
 * Which fault explains what went wrong at a point. Where the points alone do not tell, the check is asked again, in a
 * world in which the effect is there and nobody has recorded it.
 */
import { Effect } from "effect"
import { kill } from "./LabProcess.ts"
import { type CrashFaultName, type CrashLabError, type CrashPoint, isBad } from "./report.ts"
import { isYes } from "./subject.ts"
import { type CallEnd, callOf, inWorld, type Plan } from "./World.ts"

/** A point as it was found. */
export interface Finding extends Omit<CrashPoint, "fault" | "calls"> {
  readonly ends: ReadonlyArray<CallEnd>
  readonly keys: ReadonlyArray<string>
  /** The fault that the point is there for. */
  readonly blames: CrashFaultName | undefined
}

/** When a check that said "no" is asked again, in milliseconds of the lab: a remote may lag by that much. */
const later: ReadonlyArray<number> = [0, 1_000, 60_000, 3_600_000]

/** What the check says of an effect that is there. */
type Sight = "at once" | "later" | "never"

const sightOf = (plan: Plan): Effect.Effect<Sight, CrashLabError> =>
  inWorld(
    plan,
    Effect.fnUntraced(function*(world) {
      const process = world.process()
      process.at("after execute", kill)
      yield* Effect.ignore(world.call(process))
      const { recheck } = world
      if (recheck === undefined) return "never"
      const ask = Effect.map(
        Effect.exit(world.during(Effect.scoped(recheck))),
        (exit) => exit._tag === "Success" && isYes(exit.value)
      )
      if (yield* ask) return "at once"
      for (const millis of later) {
        world.clock.advance(millis)
        if (yield* ask) return "later"
      }
      return "never"
    })
  )

const isReconciled = ({ outcome }: CallEnd): boolean => outcome === "reconciled"

/** A call failed, and its key was not in doubt: by its own word nothing was applied. */
const failsPlainly = (ends: ReadonlyArray<CallEnd>): boolean =>
  ends.some(({ outcome }) => outcome === "failed") && !ends.some(({ flags }) => flags.includes("executedInDoubt"))

export const explain = Effect.fnUntraced(function*(
  plan: Plan,
  findings: ReadonlyArray<Finding>
): Effect.fn.Return<ReadonlyArray<CrashPoint>, CrashLabError> {
  const { checks } = plan.subject.facts
  const bad = findings.filter(isBad)
  const sight = checks && bad.length > 0 ? yield* sightOf(plan) : undefined

  const faultAt = (finding: Finding): CrashFaultName => {
    const { ends, keys, verdict } = finding
    const blames = finding.blames === "FailsAfterApplying" && !failsPlainly(ends) ? undefined : finding.blames
    if (keys.length > 1) return "KeyChanges"
    if (verdict === "lost") return ends.some(isReconciled) ? blames ?? "SaysYesToNothing" : "Unexplained"
    if (!checks) return blames ?? "NoCheck"
    return sight === "never" ? "MarkerNotEmbedded" : sight === "later" ? "AskedTooEarly" : blames ?? "Unexplained"
  }

  return findings.map((finding): CrashPoint => {
    const { applied, ends, group, name, verdict } = finding
    const calls = ends.map(callOf)
    return { name, group, verdict, applied, calls, fault: isBad(finding) ? faultAt(finding) : undefined }
  })
})
