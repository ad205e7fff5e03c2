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
 * **Example** (Running the laws on a store, in any runner)
 *
 * ```ts
 * import { EffectStore } from "chamvi-effect"
 * import { StoreClock, storeLaws } from "chamvi-effect/testing"
 * import { Effect, Exit, Layer } from "effect"
 *
 * const Store = EffectStore.layerMemory.pipe(Layer.provideMerge(StoreClock.layerTestClock))
 *
 * const broken: Array<string> = []
 * for (const [title, law] of Object.entries(storeLaws)) {
 *   const exit = await Effect.runPromiseExit(Effect.provide(law, Layer.fresh(Store)))
 *   if (Exit.isFailure(exit)) broken.push(title)
 * }
 * broken // => []
 * ```
 *
 * **Example** (The same with `node:test`, or with `test` of vitest)
 *
 * ```ts no-run
 * import { EffectStore } from "chamvi-effect"
 * import { StoreClock, storeLaws } from "chamvi-effect/testing"
 * import { Effect, Layer } from "effect"
 * import { test } from "node:test"
 *
 * const Store = EffectStore.layerMemory.pipe(Layer.provideMerge(StoreClock.layerTestClock))
 *
 * for (const [title, law] of Object.entries(storeLaws)) {
 *   void test(title, () => Effect.runPromise(Effect.provide(law, Layer.fresh(Store))))
 * }
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
