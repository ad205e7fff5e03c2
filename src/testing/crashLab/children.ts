/**
 * The lab with processes of the operating system: each is killed by SIGKILL, at a border that it has said it has come to.
 */
import { Effect, Fiber, Option, type Scope, Stream } from "effect"
import { ChildProcessSpawner } from "effect/process"
import type { StandardCommand } from "effect/process/ChildProcess"
import { countAll, failure, notEmpty, verdictOf } from "./examine.ts"
import { instruct, type Instruction, readLine, type Told } from "./instruction.ts"
import { crashName } from "./points.ts"
import {
  type CrashFaultName,
  type CrashGroup,
  type CrashLabError,
  type CrashPoint,
  type CrashReport,
  faultOf,
  isBad,
  shownCall
} from "./report.ts"
import { type CallEnd, callOf, inWorld, killed, type Plan, type World } from "./World.ts"

export interface ChildrenPlan extends Plan {
  readonly command: Effect.Effect<StandardCommand, unknown>
  /** The lease of what is killed, in milliseconds: the next process waits for it, unless the ledger sees a death. */
  readonly lease: number
}

type Seen = Extract<typeof Told.Type, { readonly _tag: "Seen" }>

/** What became of a child. */
interface Life {
  readonly ends: ReadonlyArray<CallEnd>
  readonly seen: Seen | undefined
}

/** How much of what a child complains of is shown. */
const mostComplaint = 2_000

const live = Effect.fnUntraced(function*(
  plan: ChildrenPlan,
  world: World,
  instruction: typeof Instruction.Type
): Effect.fn.Return<Life, CrashLabError, ChildProcessSpawner.ChildProcessSpawner | Scope.Scope> {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const command = instruct(yield* world.given("command", plan.command), instruction)
  const handle = yield* Effect.mapError(
    spawner.spawn(command),
    (cause) => failure(plan, "its process cannot be started", cause)
  )
  let complaint = ""
  const heard = yield* Effect.forkScoped(
    Effect.ignore(Stream.runForEach(Stream.decodeText(handle.stderr), (text) =>
      Effect.sync(() => {
        complaint = (complaint + text).slice(-mostComplaint)
      })))
  )
  const told = yield* Stream.splitLines(Stream.decodeText(handle.stdout)).pipe(
    Stream.map(readLine),
    Stream.filter(Option.isSome),
    Stream.map(({ value }) => value),
    Stream.takeUntil(({ _tag }) => _tag === "At"),
    Stream.runCollect,
    Effect.mapError((cause) => failure(plan, "its process cannot be listened to", cause))
  )
  const ends = told.flatMap((one): ReadonlyArray<CallEnd> => one._tag === "End" ? [one] : [])
  if (told.at(-1)?._tag === "At") {
    yield* Effect.mapError(
      handle.kill({ killSignal: "SIGKILL" }),
      (cause) => failure(plan, "its process does not die", cause)
    )
    return { ends: [...ends, killed], seen: undefined }
  }
  const seen = told.find((one): one is Seen => one._tag === "Seen")
  if (seen !== undefined) return { ends, seen }
  yield* Fiber.await(heard)
  return yield* failure(
    plan,
    `its process ended without a call of CrashLab.child: ${complaint.trim() || "it said nothing"}`
  )
})

interface Point {
  readonly name: string
  readonly group: CrashGroup
  /** Instructions of processes that run at once; each list after the one before. */
  readonly turns: ReadonlyArray<ReadonlyArray<typeof Instruction.Type>>
}

const afterwards: typeof Instruction.Type = { afterwards: true, again: true }

const crashesAt = (borders: ReadonlyArray<string>, lease: number): ReadonlyArray<Point> =>
  borders.map((at) => ({
    name: crashName(at),
    group: "crash",
    turns: [[{ at, afterwards: false, again: false, lease }], [afterwards]]
  }))

const doubleCalls: ReadonlyArray<Point> = [
  {
    name: "two calls at once in two processes",
    group: "double call",
    turns: [[{ afterwards: false, again: false }, { afterwards: false, again: true }], [afterwards]]
  },
  {
    name: "two calls after each other in two processes",
    group: "double call",
    turns: [[{ afterwards: false, again: false }], [afterwards]]
  }
]

const faultAt = (seen: Seen, keys: ReadonlySet<string>): CrashFaultName =>
  keys.size > 1 ? "KeyChanges" : seen.checks ? "Unexplained" : "NoCheck"

const tryPoint = (plan: ChildrenPlan, point: Point, key?: string) =>
  inWorld(
    plan,
    Effect.fnUntraced(function*(world) {
      if ((yield* countAll(world, key === undefined ? [] : [key])) > 0) return yield* failure(plan, notEmpty)
      const lives: Array<Life> = []
      for (const instructions of point.turns) {
        lives.push(
          ...yield* Effect.forEach(instructions, (instruction) => Effect.scoped(live(plan, world, instruction)), {
            concurrency: "unbounded"
          })
        )
      }
      const ends = lives.flatMap(({ ends }) => ends)
      const keys = new Set(lives.flatMap(({ seen }) => seen?.keys ?? []))
      const applied = yield* countAll(world, Array.from(keys))
      const seen = lives.findLast(({ seen }) => seen !== undefined)!.seen!
      const verdict = verdictOf(applied, ends)
      const found: CrashPoint = {
        name: point.name,
        group: point.group,
        verdict,
        applied,
        calls: ends.map(callOf),
        fault: isBad({ verdict }) ? faultAt(seen, keys) : undefined
      }
      return { found, seen, ends }
    })
  )

export const examineChildren = Effect.fnUntraced(function*(
  plan: ChildrenPlan
): Effect.fn.Return<CrashReport, CrashLabError, ChildProcessSpawner.ChildProcessSpawner> {
  const calm = yield* tryPoint(plan, {
    name: "no trouble",
    group: "no trouble",
    turns: [[{ afterwards: false, again: false }]]
  })
  const { borders, keys, tool } = calm.seen
  const [key] = keys
  const end = calm.ends[0] ?? killed
  if (key === undefined || !end.done) {
    return yield* failure(plan, `its call fails where there is no trouble: ${shownCall(end)}`)
  }
  const points = [calm.found]
  if (calm.found.verdict === "once") {
    const due = [...crashesAt(Array.from(new Set(borders)), plan.lease), ...doubleCalls]
    for (const point of due.filter(({ name }) => plan.only(name))) {
      points.push((yield* tryPoint(plan, point, key)).found)
    }
  }
  const faults = new Set(points.flatMap(({ fault }) => fault === undefined ? [] : [fault]))
  return { tool, key, points, faults: Array.from(faults, faultOf), notExamined: [] }
})
