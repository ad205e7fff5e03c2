/**
 * Brings the ledger's tables up to date, and refuses those of a newer version.
 */
import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { EffectStoreError } from "../errors.ts"
import type { Dialect } from "./dialect.ts"

const table = "chamvi_effect_migrations"

interface Latest {
  readonly id: number | bigint
  readonly name: string
}

const run = Migrator.make({})

const failure = (problem: string, cause?: unknown) =>
  new EffectStoreError({
    operation: "open its tables",
    problem,
    permanent: !isSqlError(cause) || !cause.isRetryable,
    ...(cause === undefined ? {} : { cause })
  })

const sqlFailure = (error: SqlError) => failure(error.reason.message ?? error.message, error)

/**
 * Runs the dialect's missing migrations, each process that starts at the same time after the other. Rows of a newer
 * version may mean what this one does not know, so that a newer schema is refused.
 */
export const migrate = (
  { migrations }: Dialect
): Effect.Effect<void, EffectStoreError, SqlClient.SqlClient> =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* Effect.mapError(
      run({ loader: Migrator.fromRecord({ ...migrations }), table }),
      (error) => isSqlError(error) ? sqlFailure(error) : failure(error.message, error.cause)
    )
    const [newest] = yield* Effect.mapError(
      sql<Latest>`SELECT migration_id AS id, name FROM ${sql(table)} ORDER BY migration_id DESC LIMIT 1`
        .withoutTransform,
      sqlFailure
    )
    const known = Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))
    if (newest !== undefined && Number(newest.id) > known) {
      return yield* failure(
        `its schema ("${newest.id}_${newest.name}") is newer than this version of chamvi-effect knows; update the package`
      )
    }
  })
