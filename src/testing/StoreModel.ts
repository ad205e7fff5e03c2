/**
 * A store against a plain model of one: random sequences of all operations, over a few keys, tools, claimIds and tokens
 * that repeat on purpose, after each of which answers and rows are the model's.
 *
 * **Details**
 *
 * The model is a `Map` and if-statements, written apart from `EffectRecord`. A sequence on which store and model differ is
 * made as short and as plain as it can be, and is told together with a text that replays it.
 *
 * @since 0.1.0
 */
import { Arbitrary, Effect } from "effect"
import type { EffectRecordError, EffectStoreError } from "../errors.ts"
import type { EffectStore } from "../EffectStore.ts"
import { fail, type Law, law, LawViolation, StoreClock, type Subject } from "./law.ts"
import { running, standing, type Time } from "./model/clock.ts"
import { type Difference, lockstep } from "./model/lockstep.ts"
import { calls, describe, type Operation, sequences } from "./model/operations.ts"

/**
 * How far to look.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoreModelOptions {
  /** How many sequences to try. Default: 40. */
  readonly runs?: number | undefined
  /** How many operations the longest sequence has, about. Default: 120. */
  readonly size?: number | undefined
  /** Other sequences for another seed. Default: 1, so that a law means the same everywhere. */
  readonly seed?: number | string | undefined
  /** The text that a failure gave: tries that one sequence only, made small. The other options do not matter then. */
  readonly replay?: string | undefined
}

type Broken = LawViolation | EffectStoreError | EffectRecordError

const keys = [0, 1, 2]

const told = (sequence: ReadonlyArray<Operation>, { actual, after, expected, what }: Difference, replay: string) => {
  const made = calls(sequence).slice(0, after + 1)
  const lines = made.map((operations, index) => `\n  ${index + 1}. ${operations.map(describe).join(" + ")}`)
  return new LawViolation({
    what: `a sequence that the model takes otherwise:${lines.join("")}\n(replay: ${
      JSON.stringify(replay)
    })\n${what} at the end`,
    expected,
    actual
  })
}

const check = Effect.fnUntraced(function*(
  { fresh, held, row, store }: Subject,
  options: StoreModelOptions,
  timeOf: (start: number) => Time,
  maxShrinks: number
): Effect.fn.Return<void, Broken> {
  // a row shows the store's time
  const probe = yield* held()
  const time = timeOf((yield* row(probe.key)).createdAt)
  yield* store.remove(probe.key)

  const differs = (sequence: ReadonlyArray<Operation>) =>
    Effect.suspend(() => {
      const names = keys.map((key) => fresh(`key-${key}`))
      return Effect.flatMap(
        Effect.ensuring(
          lockstep(store, time, names, sequence),
          // so that no sequence is told of rows that are not its own
          Effect.ignoreCause(Effect.forEach(names, store.remove, { discard: true }))
        ),
        (difference) => difference === undefined ? Effect.succeed(true) : Effect.fail(difference)
      )
    })

  const { replay, runs = 40, seed = 1, size = 120 } = options
  const result = yield* Arbitrary.checkEffect(
    sequences,
    differs,
    replay === undefined ? { runs, seed, size, maxShrinks } : { replay }
  )
  if (result._tag === "Falsified" && result.failure._tag === "PropertyError") {
    return yield* told(result.shrunkInput, result.failure.error, result.replay)
  }
  // what is replayed and passes is mended
  const passed = result._tag === "Passed" || (result._tag === "ReplayMismatch" && result.reason === "PropertyPassed")
  if (!passed) return yield* fail("the random sequences", "sequences that can be tried", result)
})

/**
 * The law that a store does what the model does, for a store whose clock the test moves. It is one of `storeLaws`, with
 * the options that are the default.
 *
 * **Example** (Looking further than the laws do)
 *
 * ```ts
 * import { EffectStore } from "chamvi-effect"
 * import { StoreClock, storeModel } from "chamvi-effect/testing"
 * import { Effect, Layer } from "effect"
 *
 * const Store = EffectStore.layerMemory.pipe(Layer.provideMerge(StoreClock.layerTestClock))
 *
 * await Effect.runPromise(Effect.provide(storeModel({ runs: 100, seed: "another" }), Store))
 * ```
 *
 * @category laws
 * @since 0.1.0
 */
export const storeModel = (options: StoreModelOptions = {}): Law =>
  law(function*(subject) {
    // whatever an earlier run left is gone, and then the number of rows that `prune` removes is known
    yield* subject.advance(1)
    yield* subject.store.prune({ olderThan: 0 })
    yield* check(subject, options, (start) => standing(start, subject.advance), 2_000)
  })

/**
 * The same for a store whose clock nobody moves, such as a server's own. Leases are over at once, or not for an hour; the
 * time of each step is taken from the row that it wrote, and must lie where it can lie. What a store does at the very
 * millisecond at which a lease ends is seen only by `storeModel`.
 *
 * @category laws
 * @since 0.1.0
 */
export const storeModelInRealTime = (
  options: StoreModelOptions = {}
): Effect.Effect<void, LawViolation | EffectStoreError | EffectRecordError, EffectStore> =>
  Effect.provideService(
    law(function*(subject) {
      yield* check(subject, options, running, 400)
    }),
    StoreClock,
    { advance: () => Effect.void }
  )
