/** The laws on a user's own store, with vitest. */
import { StoreClock, storeLaws } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { describe, test } from "vitest"
import { OwnStore } from "./ownStore.ts"

const Store = OwnStore.layer.pipe(Layer.provideMerge(StoreClock.layerTestClock))

describe("a store of one's own, with vitest", () => {
  for (const [title, law] of Object.entries(storeLaws)) {
    test(title, () => Effect.runPromise(Effect.provide(law, Layer.fresh(Store))))
  }
})
