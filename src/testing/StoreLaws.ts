/**
 * The laws of a store, as data: every rule of `EffectRecord` and every promise of `IEffectStore`, each an Effect that fails
 * with what was violated. No test runner is needed, and any will do.
 *
 * **Details**
 *
 * A law wants a store of its own whose clock stands still but for `StoreClock`. Names of keys are never used twice, so
 * that a store that keeps its rows between runs passes too; laws about `prune` do remove whatever is old in it. A store
 * whose clock nobody can move is held to `storeModelInRealTime`.
 *
 * **Example** (Running the laws on a store)
 *
 * ```ts
 * import { EffectStore } from "chamvi-effect"
 * import { StoreClock, storeLaws } from "chamvi-effect/testing"
 * import { Effect, Exit, Layer } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const Store = Layer.mergeAll(
 *   EffectStore.layerMemory,
 *   Layer.succeed(StoreClock, { advance: (milliseconds) => TestClock.adjust(milliseconds) })
 * ).pipe(Layer.provideMerge(TestClock.layer()))
 *
 * const broken = Effect.gen(function*() {
 *   const names: Array<string> = []
 *   for (const [name, law] of Object.entries(storeLaws)) {
 *     const exit = yield* Effect.exit(Effect.provide(law, Layer.fresh(Store)))
 *     if (Exit.isFailure(exit)) names.push(name)
 *   }
 *   return names
 * })
 *
 * await Effect.runPromise(broken) // => []
 * ```
 *
 * @since 0.1.0
 */
import type { Laws } from "./law.ts"
import { agreeing } from "./laws/agreeing.ts"
import { claiming } from "./laws/claiming.ts"
import { doubting } from "./laws/doubting.ts"
import { fencing } from "./laws/fencing.ts"
import { keeping } from "./laws/keeping.ts"
import { sharing } from "./laws/sharing.ts"

/**
 * All laws of a store, by what they say.
 *
 * @category laws
 * @since 0.1.0
 */
export const storeLaws: Laws = { ...claiming, ...fencing, ...doubting, ...keeping, ...sharing, ...agreeing }
