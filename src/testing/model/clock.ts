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
  /** The time of a step that left these times behind; the first that can be it, or else the present. */
  readonly of: (left: ReadonlyArray<number | undefined>) => number
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
  return {
    unit: 720_000,
    now: () => since,
    of: (left) => {
      const at = left.find((time) => time !== undefined && time >= since && time <= since + slack)
      since = at ?? since
      return since
    },
    exact: false,
    latest: () => since + slack,
    wait: () =>
      Effect.andThen(
        sleepReally(pause),
        Effect.sync(() => {
          since++
        })
      )
  }
}
