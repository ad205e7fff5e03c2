/**
 * What a test knows of the store's time while a sequence runs.
 *
 * A clock that stands still is known exactly. Of one that runs by itself a lower bound is known, and the time of each step
 * from what the step left behind; what it left must then lie between that bound and a little later.
 */
import { Effect } from "effect"
import { sleepReally } from "../law.ts"

/** Longer than a sequence can take. */
const slack = 60_000

/** A little more than a millisecond, so that a clock of whole milliseconds surely moves. */
const pause = 3

export interface Time {
  /** Milliseconds of a unit of the operations. */
  readonly unit: number
  /** The present time, or as late as it surely is. */
  readonly now: () => number
  /** The time at which an item of a call was treated that left this time behind, if it can be that one. */
  readonly of: (left: number | undefined) => number
  /** The call is over: what comes after it is later than all of it. Items of one call have times in no order. */
  readonly next: () => void
  /** Whether it is known to the millisecond. */
  readonly exact: boolean
  /** The latest that it can be. */
  readonly latest: () => number
  readonly wait: (units: number) => Effect.Effect<void>
}

/** A clock that the test moves. */
export const standing = (start: number, advance: (milliseconds: number) => Effect.Effect<void>): Time => {
  let now = start
  return {
    unit: 1,
    now: () => now,
    of: () => now,
    next: () => undefined,
    exact: true,
    latest: () => now,
    wait: (units) =>
      Effect.andThen(
        advance(units),
        Effect.sync(() => {
          now += units
        })
      )
  }
}

/** A clock that runs by itself. A unit is so long that what lasts for some of them does not end while a sequence runs. */
export const running = (start: number): Time => {
  let since = start
  let seen = start
  return {
    unit: 720_000,
    now: () => since,
    of: (left) => {
      if (left === undefined || left < since || left > since + slack) return since
      seen = Math.max(seen, left)
      return left
    },
    next: () => {
      since = seen
    },
    exact: false,
    latest: () => since + slack,
    wait: () =>
      Effect.andThen(
        sleepReally(pause),
        Effect.sync(() => {
          seen = ++since
        })
      )
  }
}
