/** The laws on a user's own store, with Node's test runner: `node --test`. */
import { StoreClock, storeLaws } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { test } from "node:test"
import { OptimisticStore, OwnStore } from "./ownStore.ts"

const own = process.env["STORE"] === "optimistic" ? OptimisticStore : OwnStore
const Store = own.layer.pipe(Layer.provideMerge(StoreClock.layerTestClock))

for (const [title, law] of Object.entries(storeLaws)) {
  void test(title, () => Effect.runPromise(Effect.provide(law, Layer.fresh(Store))))
}
