import { NodeRedis } from "@effect/platform-node"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { Context, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { networkFaults } from "../network/faults.ts"
import { redisIsThere, redisServer } from "../support/redis.ts"

networkFaults(
  "RedisEffectStore",
  redisIsThere,
  Effect.map(redisServer(), ({ port, start, stop }) => ({
    port,
    restart: Effect.andThen(stop("SIGKILL"), start),
    connect: (through) =>
      Effect.gen(function*() {
        const context = yield* Layer.build(Layer.fresh(NodeRedis.layer({ url: `redis://127.0.0.1:${through}` })))
        return yield* Effect.provideService(RedisEffectStore.make(), Redis, Context.get(context, Redis))
      })
  }))
)
