import { NodeRedis } from "@effect/platform-node"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { Effect, Layer } from "effect"
import { wrongClocks } from "../network/clocks.ts"
import { redisIsThere, redisServer } from "../support/redis.ts"

wrongClocks(
  "RedisEffectStore",
  redisIsThere,
  Effect.gen(function*() {
    const { url } = yield* redisServer()
    const context = yield* Layer.build(NodeRedis.layer({ url }))
    const open = Effect.provide(RedisEffectStore.make(), context)
    return [yield* open, yield* open] as const
  })
)
