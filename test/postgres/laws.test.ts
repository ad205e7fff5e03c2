/**
 * The published laws on a real Postgres, each on a ledger of its own.
 */
import { it } from "@effect/vitest"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { StoreClock, storeLaws, storeModelInRealTime } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe, vi } from "vitest"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"

// a law may make thousands of statements
vi.setConfig({ testTimeout: 120_000 })

/** The store's clock is a table that the test writes. */
const OnPostgres = Layer.unwrap(Effect.gen(function*() {
  const schema = yield* freshSchema
  const clock = `"${schema}".test_clock`
  const Clock = Layer.effect(
    StoreClock,
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(`CREATE SCHEMA "${schema}"`)
      yield* sql.unsafe(`CREATE TABLE ${clock} AS SELECT 1700000000000::int8 AS now`)
      return {
        advance: (milliseconds: number) =>
          Effect.asVoid(Effect.orDie(sql.unsafe(`UPDATE ${clock} SET now = now + ${milliseconds}`)))
      }
    })
  )
  return Layer.provideMerge(SqlEffectStore.layer({ schema, now: `(SELECT now FROM ${clock})` }), Clock)
}))

describe.skipIf(noPostgres)("SqlEffectStore on Postgres", () => {
  it.live("does what the plain model does, by the server's own clock", () =>
    Effect.provide(
      storeModelInRealTime({ runs: 10 }),
      Layer.unwrap(Effect.map(freshSchema, (schema) => SqlEffectStore.layer({ schema }))).pipe(
        Layer.provide(pool({ maxConnections: 4 }))
      )
    ))

  for (const [title, law] of Object.entries(storeLaws)) {
    it.live(title, () => Effect.provide(law, Layer.provide(Layer.fresh(OnPostgres), pool({ maxConnections: 4 }))))
  }
})
