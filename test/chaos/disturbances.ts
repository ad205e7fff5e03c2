/**
 * What is done to the workers and the database of a scenario, for as long as there are runs.
 */
import { Deferred, Effect, Option } from "effect"
import type { Fleet, Worker } from "./Fleet.ts"
import type { Remote } from "./Remote.ts"

/** Where a cluster lives: an empty schema, on a server that can be away for a while. */
export interface Database {
  readonly url: string
  readonly schema: string
  /** Stops the server without waiting for its clients, and starts it again after `millis`. */
  readonly restart: (millis: number) => Effect.Effect<void>
}

export interface Stage {
  readonly fleet: Fleet
  readonly remote: Remote
  readonly database: Database | undefined
  readonly dice: () => number
  /** How many times slower than usual the machine is. */
  readonly pace: number
  /** Counts a blow. */
  readonly struck: () => void
}

export type Disturbance = (stage: Stage) => Effect.Effect<never>

const oneOf = <A>(dice: () => number, all: ReadonlyArray<A>): A | undefined => all[Math.floor(dice() * all.length)]

/** So many effects are applied between two blows: whoever is struck faster than anything can happen never comes to an end. */
const least = 5

/** Strikes again and again, `period` milliseconds apart; on a slow machine it waits longer, for something to happen in between. */
const every = (period: number, strike: (stage: Stage) => Effect.Effect<unknown>): Disturbance => (stage) => {
  const { remote, struck } = stage
  const progress = (before: number): Effect.Effect<void> =>
    Effect.suspend(() =>
      remote.applications.length >= before + least ? Effect.void : Effect.delay(progress(before), "20 millis")
    )
  return Effect.forever(Effect.suspend(() => {
    const before = remote.applications.length
    return Effect.sleep(period).pipe(
      Effect.andThen(progress(before)),
      Effect.andThen(Effect.sync(struck)),
      Effect.andThen(strike(stage))
    )
  }))
}

/** Does something to a worker: to any one now, or to the one that is the next at a moment of its effect. */
const toSomebody = ({ dice, fleet, remote }: Stage, act: (worker: Worker) => void, roll = dice()): void => {
  const toOneOf = (pid: number) => {
    const worker = fleet.find(pid)
    if (worker !== undefined) act(worker)
  }
  if (roll < 0.3) return remote.arm("prepared", toOneOf)
  if (roll < 0.5) return remote.arm("before", toOneOf)
  if (roll < 0.8) return remote.arm("after", toOneOf)
  const worker = oneOf(dice, fleet.alive())
  if (worker !== undefined) act(worker)
}

/** Kills the worker of the first effect, once, between the effect and its reply. */
export const killAfterEffect: Disturbance = ({ fleet, remote, struck }) => {
  remote.arm("after", (pid) => {
    const worker = fleet.find(pid)
    if (worker === undefined) return
    struck()
    fleet.end(worker, "SIGKILL")
  })
  return Effect.never
}

/** Kills a worker, and now and then all of them at once. */
export const kill = (period: number): Disturbance =>
  every(period, (stage) =>
    Effect.sync(() => {
      const { dice, fleet } = stage
      if (dice() < 0.1) return fleet.alive().forEach((worker) => fleet.end(worker, "SIGKILL"))
      return toSomebody(stage, (worker) => fleet.end(worker, "SIGKILL"))
    }))

/** Asks workers to leave, and lets others join: two to four of them. */
export const joinAndLeave = (period: number): Disturbance =>
  every(period, ({ dice, fleet }) =>
    Effect.suspend(() => {
      const ready = fleet.ready()
      const worker = oneOf(dice, ready)
      if (worker === undefined || ready.length < 2 || ready.length < 4 && dice() < 0.4) return fleet.join
      return Effect.sync(() => fleet.end(worker, "SIGTERM", true))
    }))

/** Takes the database away for up to three seconds. */
export const restart = (period: number): Disturbance =>
  every(
    period,
    ({ database, dice }) => Effect.suspend(() => database?.restart(Math.floor(dice() * 3000)) ?? Effect.void)
  )

/** Freezes a worker for `millis`, or longer where the machine is slow and all leases are, and thaws it. */
export const freeze = (period: number, millis: number): Disturbance =>
  every(period, (stage) =>
    Effect.suspend(() => {
      const { dice, fleet, pace, remote } = stage
      const frozen = Deferred.makeUnsafe<Worker>()
      const freezes = (worker: Worker) => {
        fleet.freeze(worker)
        Deferred.doneUnsafe(frozen, Effect.succeed(worker))
      }
      // whoever is frozen before its request has left is the one that may apply an effect once more
      toSomebody(stage, freezes, dice() < 0.5 ? 0 : dice())
      const thaw = Effect.flatMap(
        Deferred.poll(frozen),
        Option.match({
          onNone: () => Effect.void,
          onSome: Effect.map(fleet.thaw)
        })
      )
      // where no request comes that it waits for, nobody is frozen
      return Effect.timeoutOption(Deferred.await(frozen), millis).pipe(
        Effect.flatMap((worker) => Option.isSome(worker) ? Effect.sleep(millis * pace) : Effect.void),
        Effect.ensuring(Effect.andThen(remote.disarm, thaw))
      )
    }))
