/**
 * The lab over a ledger on a server: what takes real time is not taken for waiting.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineEffectTool } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { CrashLab, type CrashReport } from "chamvi-effect/testing"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { freshSchema, noPostgres, pool } from "../../support/postgres.ts"

const inDatabase = <A, E>(run: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
  Effect.flatMap(SqlClient.SqlClient, run)

const labIn = (schema: string) => {
  const rows = inDatabase((sql) => sql`SELECT charge FROM ${sql(schema)}.charges`)
  const write = inDatabase((sql) => sql`INSERT INTO ${sql(schema)}.charges VALUES ('one')`)
  const emptyTable = inDatabase((sql) =>
    Effect.andThen(
      sql`CREATE TABLE IF NOT EXISTS ${sql(schema)}.charges (charge TEXT)`,
      sql`DELETE FROM ${sql(schema)}.charges`
    )
  )
  return {
    lab: {
      input: {},
      world: Layer.provideMerge(Layer.effectDiscard(emptyTable), pool({ maxConnections: 6 })),
      store: SqlEffectStore.layer({ schema }),
      count: () => Effect.map(rows, ({ length }) => length)
    },
    base: {
      description: "Charges an order.",
      inputSchema: Schema.Struct({}),
      execute: () => Effect.as(write, "charged")
    },
    find: () => Effect.map(rows, ({ length }) => length > 0 ? "charged" : undefined)
  }
}

const verdicts = ({ points }: CrashReport) => Array.from(new Set(points.map(({ verdict }) => verdict))).toSorted()

describe.skipIf(noPostgres)("CrashLab on Postgres", () => {
  it.live("lets tools pass that are right: one that asks, and one that is transactional", () =>
    Effect.gen(function*() {
      const schema = yield* freshSchema
      yield* Effect.provide(inDatabase((sql) => sql`CREATE SCHEMA ${sql(schema)}`), pool({ maxConnections: 1 }))
      const { base, find, lab } = labIn(schema)
      const asking = yield* CrashLab.run({ ...lab, tool: defineEffectTool({ ...base, alreadyApplied: find }) })
      expect([asking.faults, verdicts(asking)]).toEqual([[], ["once"]])
      const transactional = yield* CrashLab.run({ ...lab, tool: defineEffectTool({ ...base, transactional: true }) })
      expect([transactional.faults, verdicts(transactional)]).toEqual([[], ["once"]])
      const unchecked = yield* CrashLab.run({ ...lab, tool: defineEffectTool(base) })
      expect(unchecked.faults.map(({ name }) => name)).toEqual(["NoCheck"])
    }).pipe(Effect.scoped), 300_000)
})
