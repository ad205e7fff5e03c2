/**
 * The ledger of effects: the port that every store implements, and the service through which a program gets one.
 *
 * **Details**
 *
 * A store is a plain record of functions, so that `{ ...store, complete }` decorates one. It keeps one `EffectRecord` per
 * key and applies the rules of `EffectRecord` atomically. It sees keys, tokens and the text of a result; it knows nothing
 * of tools, hooks or schemas.
 *
 * Leases are on the store's clock, never on the caller's: a process whose clock is wrong changes nothing.
 *
 * **Gotchas**
 *
 * Sibling `Effect.provide`s of one layer build it twice, which makes two separate memory stores. Provide a store once,
 * around everything that shall share it.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer } from "effect"
import type { IEffectStore } from "./store/IEffectStore.ts"
import { makeMemory } from "./store/memory.ts"
import { own } from "./store/lifetime.ts"

export type {
  EffectTransactions,
  IEffectStore,
  LedgerInTransaction,
  ListFilter,
  PruneOptions
} from "./store/IEffectStore.ts"

/**
 * The ledger as an Effect service.
 *
 * **Example** (Looking into the ledger)
 *
 * ```ts
 * import { applyOnce, EffectStore } from "chamvi-effect"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const store = yield* EffectStore
 *   yield* applyOnce({ key: "greet:ada", execute: () => Effect.succeed("hello") })
 *   return (yield* store.get("greet:ada"))?.status
 * }).pipe(Effect.provide(EffectStore.layerMemory))
 *
 * await Effect.runPromise(program) // => "recorded"
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class EffectStore extends Context.Service<EffectStore, IEffectStore>()("chamvi-effect/EffectStore") {
  /**
   * A ledger in this process's memory, for tests and for programs whose effects need not outlive them. Leases run on the
   * caller's `Clock`, so that `TestClock` drives them.
   */
  static readonly layerMemory: Layer.Layer<EffectStore> = Layer.suspend(() => EffectStore.layerOf(makeMemory))

  /**
   * The layer of a store that `make` builds. When it closes, what is under way is stopped and waited for, and records and
   * releases that could not be written yet get one last, bounded try.
   */
  static layerOf<E, R>(make: Effect.Effect<IEffectStore, E, R>) {
    return Layer.effect(EffectStore, Effect.tap(make, own))
  }
}
