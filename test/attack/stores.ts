/** Every store of the library, each as a layer that makes a new one. */
import type { EffectStore } from "chamvi-effect"
import { EffectStore as Memory } from "chamvi-effect"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Effect, Layer } from "effect"
import { randomUUID } from "node:crypto"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { redisIsThere, redisServer } from "../support/redis.ts"
import { NodeRedis } from "@effect/platform-node"

export interface AttackedStore {
  readonly name: string
  readonly isThere: boolean
  readonly layer: Layer.Layer<EffectStore, unknown>
}

const sqlite = Layer.unwrap(
  Effect.map(temporaryDirectory, (directory) => SqliteEffectStore.layer({ filename: `${directory}/ledger.sqlite` }))
)

const postgres = Layer.unwrap(
  Effect.map(freshSchema, (schema) => SqlEffectStore.layer({ schema }))
).pipe(Layer.provide(pool({ maxConnections: 4 })))

const redis = Layer.unwrap(Effect.gen(function*() {
  const url = process.env["REDIS_URL"] ?? (yield* redisServer()).url
  return Layer.provide(RedisEffectStore.layer({ prefix: `attack:${randomUUID()}:` }), NodeRedis.layer({ url }))
}))

export const stores: ReadonlyArray<AttackedStore> = [
  { name: "memory", isThere: true, layer: Memory.layerMemory },
  { name: "SQLite", isThere: true, layer: sqlite },
  { name: "Postgres", isThere: !noPostgres, layer: postgres },
  { name: "Redis", isThere: redisIsThere, layer: redis }
]
