/**
 * Which steps commute, so that one of their two orders is enough. Two steps that are next to each other, of different
 * processes, with nothing between them that both touch, lead to the same world in either order. Of such two orders the
 * exploration takes the one that is the first by `rank`.
 */
import type { Choice, Touches } from "./choices.ts"
import type { World } from "./World.ts"

/** A step that was taken, and what of the world before it decides which steps it commutes with. */
export interface Step {
  readonly process: number
  readonly touches: Touches
  /** Which processes waited for changes of a row before it. */
  readonly waited: number
  /** The places of the processes before it. */
  readonly places: ReadonlyArray<number>
}

/** Which processes wait for changes of a row, as bits. */
const waiting = (world: World): number =>
  world.processes.reduce((bits, { index, watchers }) => watchers.size > 0 ? bits | (1 << index) : bits, 0)

export const stepOf = (world: World, { process, touches }: Choice, places: ReadonlyArray<number>): Step => ({
  process,
  touches,
  waited: waiting(world),
  places
})

const conflicts: { readonly [a in Touches]: ReadonlyArray<Touches> } = {
  nothing: [],
  "reads ledger": ["writes ledger"],
  "writes ledger": ["reads ledger", "writes ledger"],
  "reads remote": ["writes remote"],
  "writes remote": ["reads remote", "writes remote"],
  everything: ["nothing", "reads ledger", "writes ledger", "reads remote", "writes remote"]
}

/** Whether the choice would have led to the same, had it been taken before the step that was taken. */
export const commutes = (world: World, last: Step, next: Choice): boolean => {
  if (last.process === next.process || last.touches === "everything" || next.touches === "everything") return false
  if (conflicts[last.touches].includes(next.touches)) return false
  // a change of the row is a step of everybody who waits for one
  const waits = last.waited | waiting(world)
  if (last.touches === "writes ledger" && (waits & (1 << next.process)) !== 0) return false
  return next.touches !== "writes ledger" || (waits & (1 << last.process)) === 0
}

const rank: { readonly [touches in Touches]: number } = {
  "reads remote": 0,
  "writes remote": 0,
  "reads ledger": 1,
  "writes ledger": 1,
  nothing: 2,
  everything: 3
}

/**
 * Whether the choice need not be taken now, since its other order with the last step is taken.
 *
 * With two processes any choice of an order is sound, as long as it depends on nothing but the state before both: a
 * schedule can be changed, corner by corner, into one that is taken. With more, three steps could exclude each other's
 * orders in a circle, so that only the kinds of steps may decide.
 */
export const isRedundant = (world: World, last: Step | undefined, next: Choice): boolean => {
  if (last === undefined || !commutes(world, last, next)) return false
  const difference = rank[next.touches] - rank[last.touches]
  if (difference !== 0) return difference < 0
  return last.places.length === 2 && last.places[next.process]! < last.places[last.process]!
}

const touchGroups = Object.keys(rank)

/** The group of a choice, as a bit: steps of one group are taken or left together. */
export const groupOf = ({ process, touches }: Choice, places: ReadonlyArray<number>): number =>
  process < 0 ? 1 << 30 : 1 << (places[process]! * touchGroups.length + touchGroups.indexOf(touches))
