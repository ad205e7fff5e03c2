/**
 * Where the demo keeps its ledger: in Postgres where there is a `DATABASE_URL`, in Redis where there is a `REDIS_URL`, else
 * in the file `LEDGER`. The agent is the same on all of them.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { PgClient } from "@effect/sql-pg"
import { EffectSettings, type EffectStore } from "chamvi-effect"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Config, Effect, Layer, Option } from "effect"

const url = {
  postgres: Config.option(Config.Redacted("DATABASE_URL")),
  redis: Config.option(Config.String("REDIS_URL"))
}

/** Whether other runs of the demo left their keys in the same ledger. */
export const isShared = Effect.map(
  Config.all(url),
  ({ postgres, redis }) => Option.isSome(postgres) || Option.isSome(redis)
)

export const layerLedger: Layer.Layer<EffectStore, unknown> = Layer.unwrap(
  Effect.gen(function*(): Effect.gen.Return<Layer.Layer<EffectStore, unknown>, Config.ConfigError> {
    const { postgres, redis } = yield* Config.all(url)
    if (Option.isSome(postgres)) {
      return SqlEffectStore.layer({ table: "chamvi_demo" }).pipe(Layer.provide(PgClient.layer({ url: postgres.value })))
    }
    if (Option.isSome(redis)) {
      return RedisEffectStore.layer({ prefix: "chamvi:demo:" }).pipe(
        Layer.provide(NodeRedis.layer({ url: redis.value }))
      )
    }
    return SqliteEffectStore.layer({ filename: yield* Config.String("LEDGER") })
  })
)

/**
 * In a file, the death of a process is seen at once. A server only sees that nobody renews the lease: the demo does not want
 * to wait for thirty seconds.
 */
export const layerLease = Layer.unwrap(
  Effect.map(isShared, (shared) => EffectSettings.layer(shared ? { lease: "3 seconds" } : {}))
)
