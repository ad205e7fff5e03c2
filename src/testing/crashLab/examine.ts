/**
 * Runs all points of a tool, each in a world of its own.
 */
import { Effect } from "effect"
import { explain, type Finding } from "./explain.ts"
import { crashesAt, notExamined, noTrouble, type Point, pointsFor } from "./points.ts"
import { CrashLabError, type CrashReport, type CrashVerdict, faultOf, shownCall } from "./report.ts"
import { type CallEnd, inWorld, isInDoubt, killed, type Plan, type World } from "./World.ts"

export const verdictOf = (applied: number, ends: ReadonlyArray<CallEnd>): CrashVerdict =>
  applied > 1 ? "twice" : isInDoubt(ends.at(-1)) ? "inDoubt" : applied === 1 ? "once" : "lost"

/** A count that knows nothing of keys counts something for a key that nobody has used, too. */
const unused = "chamvi-effect crash lab: a key that nobody has used"

/** How many effects the remote holds, of the keys that were used. */
export const countAll = (world: World, keys: ReadonlyArray<string>): Effect.Effect<number, CrashLabError> => {
  const count = (key: string) => world.given("count", world.plan.count(key))
  return Effect.flatMap(count(unused), (ofAll) =>
    ofAll > 0
      ? Effect.succeed(ofAll)
      : Effect.map(Effect.forEach(keys, count), (counts) => counts.reduce((sum, some) => sum + some, 0)))
}

export const failure = (plan: Plan, problem: string, cause?: unknown) =>
  new CrashLabError({ tool: plan.subject.name, problem, ...(cause === undefined ? {} : { cause }) })

/** Runs one point; `key` is the tool's key, once it is known. */
const tryPoint = (
  plan: Plan,
  { blames, group, name, story }: Point,
  key?: string
): Effect.Effect<Finding, CrashLabError> =>
  inWorld(
    plan,
    Effect.fnUntraced(function*(world) {
      const before = yield* countAll(world, key === undefined ? [] : [key])
      if (before > 0) return yield* failure(plan, notEmpty)
      yield* Effect.mapError(
        story(world),
        (cause) => cause._tag === "CrashLabError" ? cause : failure(plan, `the ledger failed at "${name}"`, cause)
      )
      const applied = yield* countAll(world, Array.from(world.keys))
      const { ends, keys } = world
      return { name, group, verdict: verdictOf(applied, ends), applied, ends, keys: Array.from(keys), blames }
    })
  )

export const notEmpty =
  "the remote holds effects before the tool is called. Put the remote into the layer world, which is built "
  + "anew for each point, or give reset"

/** All crashes: one after the other, as many in a row as asked for. */
const crashes = Effect.fnUntraced(function*(
  plan: Plan,
  key: string,
  first: ReadonlyArray<string>,
  most: number
): Effect.fn.Return<ReadonlyArray<Finding>, CrashLabError> {
  const findings: Array<Finding> = []
  let due: ReadonlyArray<ReadonlyArray<string>> = first.map((border) => [border])
  for (let deep = 1; deep <= most; deep++) {
    const next: Array<ReadonlyArray<string>> = []
    for (const borders of due) {
      let seen: ReadonlyArray<string> = []
      const point = crashesAt(borders, ({ trace }) => {
        seen = trace
      })
      const wanted = plan.only(point.name)
      // what is not wanted for itself may lead to what is
      if (!wanted && deep === most) continue
      const finding = yield* tryPoint(plan, point, key)
      if (wanted) findings.push(finding)
      new Set(seen).forEach((border) => next.push([...borders, border]))
    }
    due = next
  }
  return findings
})

export const examine = Effect.fnUntraced(function*(
  plan: Plan,
  mostCrashes: number
): Effect.fn.Return<CrashReport, CrashLabError> {
  const { subject } = plan
  let borders: ReadonlyArray<string> = []
  const calm = yield* tryPoint(
    plan,
    noTrouble(({ trace }) => {
      borders = Array.from(new Set(trace))
    })
  )
  const [key] = calm.keys
  const [end = killed] = calm.ends
  if (key === undefined || !end.done) {
    return yield* failure(plan, `its call fails where there is no trouble: ${shownCall(end)}`, end.cause)
  }
  if (!borders.includes("before execute") && calm.applied > 0) return yield* failure(plan, notEmpty)
  const findings = [calm]
  if (calm.verdict === "once") {
    findings.push(...yield* crashes(plan, key, borders, mostCrashes))
    const points = pointsFor(plan, key).filter(({ name }) => plan.only(name))
    for (const point of points) findings.push(yield* tryPoint(plan, point, key))
  }
  const points = yield* explain(plan, findings)
  const faults = new Set(points.flatMap(({ fault }) => fault === undefined ? [] : [fault]))
  return {
    tool: subject.name,
    key,
    points,
    faults: Array.from(faults, faultOf),
    notExamined: notExamined(plan, borders)
  }
})
