/**
 * The published laws on Redis, each law under a prefix of its own.
 */
import { it } from "@effect/vitest"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { StoreClock, storeLaws, storeModelInRealTime } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { describe, vi } from "vitest"
import { redisIsThere, RedisLayer } from "../support/redis.ts"

// the server may be one with many keys of others, which list and prune walk through
vi.setConfig({ testTimeout: 120_000 })

const Store = Layer.unwrap(Effect.sync(() => {
  let now = 1_700_000_000_000
  const advance = (milliseconds: number) =>
    Effect.sync(() => {
      now += milliseconds
    })
  return Layer.merge(
    RedisEffectStore.layer({ prefix: `test:${randomUUID()}:`, now: () => now }),
    Layer.succeed(StoreClock, { advance })
  )
}))

describe.skipIf(!redisIsThere)("RedisEffectStore", () => {
  it.layer(RedisLayer, { excludeTestServices: true, timeout: 30_000 })((it) => {
    it.effect("does what the plain model does, by the server's own clock", () =>
      Effect.provide(
        storeModelInRealTime({ runs: 10 }),
        RedisEffectStore.layer({ prefix: `test:${randomUUID()}:` })
      ))

    for (const [title, law] of Object.entries(storeLaws)) {
      it.effect(title, () => Effect.provide(law, Layer.fresh(Store)))
    }
  })
})
