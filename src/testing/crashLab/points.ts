/**
 * The points: each is a little story of processes that call, die, wait and come back, in a world of its own.
 */
import { Effect } from "effect"
import { effectMarker } from "../../EffectMarker.ts"
import { EffectOutcomeUnknownError, type EffectStoreError } from "../../errors.ts"
import { type Freeze, kill, type LabProcess } from "./LabProcess.ts"
import type { CrashFaultName, CrashGroup, CrashLabError } from "./report.ts"
import { type Call, type CallEnd, isInDoubt, type Plan, type World } from "./World.ts"

export type Story = (world: World) => Effect.Effect<unknown, CrashLabError | EffectStoreError>

export interface Point {
  readonly name: string
  readonly group: CrashGroup
  readonly story: Story
  /** The fault that it is there for, where it is one. */
  readonly blames?: CrashFaultName
}

/** More attempts than that nobody makes who is told each time that it did not work. */
export const mostAttempts = 3

/**
 * What comes after the trouble: the call is made again by processes that have just been started, until it succeeds or stops
 * in doubt, and then once more.
 */
const afterwards = Effect.fnUntraced(function*(world: World, seen?: (first: LabProcess) => void) {
  let last: CallEnd | undefined
  for (let attempt = 0; attempt < mostAttempts && last?.done !== true && !isInDoubt(last); attempt++) {
    const process = world.process()
    last = yield* world.call(process)
    if (attempt === 0) seen?.(process)
  }
  if (last?.done === true) yield* world.call(world.process())
})

/** The name of the border, as a point. */
export const crashName = (border: string): string => `killed ${border}`

/** Processes that are killed at one border each, one after the other. */
export const crashesAt = (borders: ReadonlyArray<string>, seen: (next: LabProcess) => void): Point => ({
  name: borders.map(crashName).join(", next one "),
  group: "crash",
  story: Effect.fnUntraced(function*(world) {
    for (const border of borders) {
      const process = world.process()
      process.at(border, kill)
      yield* world.call(process)
    }
    yield* afterwards(world, seen)
  })
})

export const noTrouble = (seen: (process: LabProcess) => void): Point => ({
  name: "no trouble",
  group: "no trouble",
  story: Effect.fnUntraced(function*(world) {
    const process = world.process()
    yield* world.call(process)
    seen(process)
  })
})

/** Waits until a held process is at its border, or its call has ended without coming there. */
const reached = (world: World, held: Effect.Effect<void>, ...ends: ReadonlyArray<Effect.Effect<unknown>>) =>
  world.during(Effect.raceAllFirst([held, ...ends]))

const doubleCalls: ReadonlyArray<Point> = [
  {
    name: "two calls at once in one process",
    group: "double call",
    story: Effect.fnUntraced(function*(world) {
      const process = world.process()
      const gate = process.freezeAt("before execute")
      const calls = [world.start(process), world.start(process)]
      yield* reached(world, gate.reached, ...calls.map(({ ended }) => ended))
      yield* gate.goOn
      for (const call of calls) yield* world.end(call)
      yield* afterwards(world)
    })
  },
  {
    name: "two calls at once in two processes",
    group: "double call",
    story: Effect.fnUntraced(function*(world) {
      const [first, second] = [world.process(), world.process()]
      const gate = first.freezeAt("before execute")
      // where there is one connection, a transaction does not come so far as to claim
      const asks = second.freezeAt(world.plan.subject.facts.transactional ? "before begin" : "before claim")
      const calls = [world.start(first)]
      yield* reached(world, gate.reached, calls[0]!.ended)
      calls.push(world.start(second))
      yield* reached(world, asks.reached, calls[1]!.ended)
      yield* asks.goOn
      yield* gate.goOn
      for (const call of calls) yield* world.end(call)
      yield* afterwards(world)
    })
  },
  {
    name: "two calls after each other in one process",
    group: "double call",
    story: Effect.fnUntraced(function*(world) {
      const process = world.process()
      yield* world.call(process)
      yield* world.call(process)
    })
  },
  { name: "two calls after each other in two processes", group: "double call", story: (world) => afterwards(world) }
]

/** A call whose `execute` ends otherwise than it did, and then the same process tries again. */
const executeEndsWith = (name: string, end: Effect.Effect<never, unknown>, dies?: string): Point => ({
  name,
  group: "lost reply",
  story: Effect.fnUntraced(function*(world) {
    const process = world.process()
    process.executeEndsWith = end
    if (dies !== undefined) process.at(dies, kill)
    const { outcome } = yield* world.call(process)
    if (outcome !== "killed") yield* world.call(process)
    yield* afterwards(world)
  })
})

const unknown = Effect.suspend(() => Effect.fail(new EffectOutcomeUnknownError({})))

/** A transaction that ends without its record has nothing to release. */
const releases: ReadonlyArray<Point> = [
  executeEndsWith("execute does not know, killed before release", unknown, "before release"),
  executeEndsWith("execute does not know, killed after release", unknown, "after release")
]

const lostReplies: ReadonlyArray<Point> = [
  executeEndsWith("execute does not know whether it applied", unknown),
  executeEndsWith("execute dies after it applied", Effect.die(new Error("a defect, in the lab"))),
  {
    name: "the caller leaves after it applied",
    group: "lost reply",
    story: Effect.fnUntraced(function*(world) {
      const process = world.process()
      const gate = process.freezeAt("after execute")
      const call = world.start(process)
      yield* reached(world, gate.reached, call.ended)
      yield* gate.wake
      call.interrupt()
      yield* world.end(call)
      yield* world.call(process)
      yield* afterwards(world)
    })
  }
]

/** What the tool itself makes of a reply that is lost, and then the same process tries again. */
const replyLost = (loseReply: Effect.Effect<unknown, unknown>): Point => ({
  name: "the remote has applied, and its reply is lost",
  group: "lost reply",
  blames: "FailsAfterApplying",
  story: Effect.fnUntraced(function*(world) {
    yield* world.given("loseReply", loseReply)
    const process = world.process()
    yield* world.call(process)
    yield* world.call(process)
    yield* afterwards(world)
  })
})

/** A process that freezes until its lease is over and another has taken the key, and then goes on. */
const freezes = (
  border: string,
  thaw: (world: World, process: LabProcess, call: Call, frozen: Freeze) => Effect.Effect<unknown>
): Point => ({
  name: `frozen past its lease ${border}`,
  group: "lost lease",
  story: Effect.fnUntraced(function*(world) {
    const process = world.process()
    const gate = process.freezeAt(border)
    const call = world.start(process)
    yield* reached(world, gate.reached, call.ended)
    yield* process.endLeases
    yield* world.call(world.process())
    yield* thaw(world, process, call, gate)
    yield* gate.goOn
    yield* world.end(call)
    yield* afterwards(world)
  })
})

const frozen: ReadonlyArray<Point> = [
  // its next heartbeat finds out, and keeps an effect back that has not left yet
  freezes(
    "before execute",
    Effect.fnUntraced(function*(world, process, { ended }, { wake }) {
      const renewed = process.signalAt("after renew")
      yield* wake
      world.clock.advance(process.heartbeat)
      yield* reached(world, Effect.andThen(renewed, world.clock.turns), ended)
    })
  ),
  freezes("after execute", () => Effect.void)
]

/** Entries that strangers add: more than any page of any remote. */
const crowdSize = 250

const afterTheEffect = Effect.fnUntraced(function*(world: World) {
  const process = world.process()
  process.at("after execute", kill)
  yield* world.call(process)
})

const crowded = (crowd: (entries: number) => Effect.Effect<unknown, unknown>): ReadonlyArray<Point> => {
  const come = (world: World) => world.given("crowd", crowd(crowdSize))
  return [
    {
      name: `killed after execute, ${crowdSize} older entries`,
      group: "remote",
      blames: "FirstPageOnly",
      story: (world) => Effect.andThen(Effect.andThen(come(world), afterTheEffect(world)), afterwards(world))
    },
    {
      name: `killed after execute, ${crowdSize} newer entries`,
      group: "remote",
      blames: "FirstPageOnly",
      story: (world) => Effect.andThen(Effect.andThen(afterTheEffect(world), come(world)), afterwards(world))
    }
  ]
}

const lagging: Point = {
  name: "killed after execute, the remote lags",
  group: "remote",
  blames: "AskedTooEarly",
  story: Effect.fnUntraced(function*(world) {
    world.lagging = true
    yield* afterTheEffect(world)
    yield* afterwards(world)
  })
}

const planted = (plant: (marker: string, key: string) => Effect.Effect<unknown, unknown>, key: string): Point => ({
  name: "a stranger has posted the marker",
  group: "remote",
  blames: "StrangerBelieved",
  story: (world) => Effect.andThen(world.given("plant", plant(effectMarker(key), key)), afterwards(world))
})

/** What to try beside crashes, for a tool whose key is known. */
export const pointsFor = ({ crowd, lag, loseReply, plant, subject }: Plan, key: string): ReadonlyArray<Point> => {
  const { checks, transactional } = subject.facts
  return [
    ...doubleCalls,
    ...lostReplies,
    ...(loseReply === undefined ? [] : [replyLost(loseReply)]),
    // nor has it a lease to lose
    ...(transactional ? [] : [...releases, ...frozen]),
    ...(checks && crowd !== undefined ? crowded(crowd) : []),
    ...(checks && lag !== undefined ? [lagging] : []),
    ...(checks && plant !== undefined ? [planted(plant, key)] : [])
  ]
}

/** What is left out, and what it would take. */
export const notExamined = (
  { crowd, lag, loseReply, plant, subject }: Plan,
  borders: ReadonlyArray<string>
): ReadonlyArray<string> => [
  ...(!subject.facts.checks || crowd !== undefined
    ? []
    : ["whether alreadyApplied reads beyond the first page: give crowd"]),
  ...(!subject.facts.checks || plant !== undefined ? [] : ["whether a stranger's marker is believed: give plant"]),
  ...(!subject.facts.checks || lag !== undefined ? [] : ["whether a remote that lags is asked too early: give lag"]),
  ...(subject.facts.checks || subject.facts.transactional || loseReply !== undefined
    ? []
    : ["whether execute fails plainly although the remote has applied: give loseReply"]),
  ...(borders.some((border) => border.startsWith("at ")) ? [] : [
    "crashes in the middle of execute: call CrashLab.point in the remote, where it matters"
  ])
]
