/**
 * A ledger in memory whose transactions can be kept waiting, or answered wrongly, at each of their steps.
 */
import type { EffectStoreError, IEffectStore } from "chamvi-effect"
import { Effect } from "effect"
import type { Fenced } from "../../src/EffectRecord.ts"
import type { EffectTransactions } from "../../src/store/IEffectStore.ts"

/** Stands in the way of a transaction at a point of it. */
export interface Obstacles {
  readonly begin?: Effect.Effect<unknown>
  readonly claim?: Effect.Effect<unknown, EffectStoreError>
  readonly commit?: Effect.Effect<unknown>
  readonly rollback?: Effect.Effect<unknown>
  /** In the place of replies. */
  readonly claimed?: unknown
  readonly completed?: Fenced
}

/** The ledger in memory, with transactions that do what is asked of them as far as nothing stands in their way. */
export const hindered = (store: IEffectStore, obstacles: Obstacles = {}) => {
  const seen: Array<string> = []
  const note = (what: string) => Effect.sync(() => void seen.push(what))
  const pass = <E = never>(obstacle: Effect.Effect<unknown, E> | undefined) => Effect.asVoid(obstacle ?? Effect.void)
  const run: EffectTransactions["run"] = (work) =>
    Effect.gen(function*() {
      yield* pass(obstacles.begin)
      yield* note("begin")
      let key: string | undefined
      const exit = yield* Effect.exit(work({
        claim: (request) =>
          Effect.gen(function*() {
            yield* note("claim")
            yield* pass(obstacles.claim)
            const [reply] = yield* store.claim([request])
            if (reply?._tag === "Claimed") key = request.key
            return "claimed" in obstacles ? obstacles.claimed as never : reply!
          }),
        complete: (item) => Effect.map(store.complete([item]), ([reply]) => obstacles.completed ?? reply!)
      }))
      if (exit._tag === "Success") {
        yield* pass(obstacles.commit)
        yield* note("commit")
      } else {
        yield* pass(obstacles.rollback)
        if (key !== undefined) yield* store.remove(key)
        yield* note("rollback")
      }
      return yield* exit
    })
  const hinderedStore: IEffectStore = {
    ...store,
    transactions: { isInside: () => false, isElsewhere: () => false, run }
  }
  return { store: hinderedStore, seen }
}
