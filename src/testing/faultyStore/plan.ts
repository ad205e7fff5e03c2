/**
 * Which operation gets which fault: by a plan, or by a seed.
 */
import { Effect, Random } from "effect"

/**
 * What can go wrong with an operation of a store.
 *
 * - `fail`: it does not happen, and `EffectStoreError` says that it failed.
 * - `loseReply`: it happens, and `EffectStoreError` says that it failed.
 * - `stall`: it happens late, and is answered then.
 * - `stallReply`: it happens, and is answered late.
 * - `comeLate`: `EffectStoreError` says that it failed, and it happens after that, as a request does that was under way.
 * - `die`: it does not happen, and dies.
 * - `dieAfter`: it happens, and dies.
 *
 * @category models
 * @since 0.1.0
 */
export type FaultKind = (typeof kinds)[number]

export const kinds = ["fail", "loseReply", "stall", "stallReply", "comeLate", "die", "dieAfter"] as const

/**
 * The operations of a store, and `transaction` for a whole transaction, its commit included.
 *
 * @category models
 * @since 0.1.0
 */
export type FaultyOperation = (typeof operations)[number]

export const operations = [
  "claim",
  "complete",
  "release",
  "renew",
  "get",
  "list",
  "resolve",
  "remove",
  "prune",
  "changes",
  "transaction"
] as const

/**
 * A fault that is planned.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlannedFault {
  readonly fault: FaultKind
  /** Only this operation counts. Default: all. */
  readonly operation?: FaultyOperation | undefined
  /** The first operation with the fault; the very first one is 1. Default: 1. */
  readonly nth?: number | undefined
  /** How many in a row have it; `Infinity` for an outage. Default: 1. */
  readonly times?: number | undefined
}

/**
 * Where the faults come from. The plan goes first.
 *
 * @category models
 * @since 0.1.0
 */
export interface FaultOptions {
  readonly plan?: ReadonlyArray<PlannedFault> | undefined
  /** Faults by chance, the same for the same seed and the same order of operations. Default: none. */
  readonly seed?: number | string | undefined
  /** The part of operations that gets a fault by the seed, 0 to 1. Default: 0.2. */
  readonly rate?: number | undefined
  /** What the seed chooses from. Default: all. */
  readonly faults?: ReadonlyArray<FaultKind> | undefined
  /** Operations that the seed may hit. Default: all. */
  readonly operations?: ReadonlyArray<FaultyOperation> | undefined
}

/** Decides on each operation in turn. */
export type Decide = (operation: FaultyOperation) => FaultKind | undefined

const planned = (plan: ReadonlyArray<PlannedFault>): Decide => {
  let all = 0
  const counts = new Map<FaultyOperation, number>()
  return (operation) => {
    const count = (counts.get(operation) ?? 0) + 1
    counts.set(operation, count)
    all++
    return plan.find((fault) => {
      if (fault.operation !== undefined && fault.operation !== operation) return false
      const after = (fault.operation === undefined ? all : count) - (fault.nth ?? 1)
      return after >= 0 && after < (fault.times ?? 1)
    })?.fault
  }
}

const seeded = (options: FaultOptions): Effect.Effect<Decide> => {
  const { faults = kinds, operations: hit = operations, rate = 0.2, seed } = options
  if (seed === undefined) return Effect.succeed(() => undefined)
  const random = Random.withSeed(Effect.map(Random.Random, (random) => random), seed)
  return Effect.map(random, (random) => (operation) => {
    // drawn for every operation, so that a choice of operations does not change the faults of the others
    const [whether, which] = [random.nextDoubleUnsafe(), random.nextDoubleUnsafe()]
    return whether < rate && hit.includes(operation) ? faults[Math.floor(which * faults.length)] : undefined
  })
}

export const decider = (options: FaultOptions): Effect.Effect<Decide> => {
  const byPlan = planned(options.plan ?? [])
  return Effect.map(seeded(options), (bySeed) => (operation) => {
    const [planned, seeded] = [byPlan(operation), bySeed(operation)]
    return planned ?? seeded
  })
}
