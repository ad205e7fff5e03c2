/**
 * Brings the ledger's tables up to date, and refuses those of a newer version.
 */
import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { EffectStoreError } from "../errors.ts"
import { problemOf } from "./executor.ts"

/** What brings the tables up to date, by `<number>_<name>`. */
export type Migrations = Readonly<Record<string, Effect.Effect<void, unknown, SqlClient.SqlClient>>>

interface Latest {
  readonly id: number | bigint
  readonly name: string
}

const run = Migrator.make({})

export const failure = (problem: string, cause?: unknown): EffectStoreError =>
  new EffectStoreError({
    operation: "open its tables",
    problem,
    permanent: !isSqlError(cause) || !cause.isRetryable,
    ...(cause === undefined ? {} : { cause })
  })

export const sqlFailure = (error: SqlError): EffectStoreError => failure(problemOf(error), error)

/** Rows of a newer version may mean what this one does not know, so that a newer schema is refused. */
export const newerThan = (id: number, name: string): EffectStoreError =>
  failure(`its schema ("${id}_${name}") is newer than this version of chamvi-effect knows; update the package`)

/** The number of the newest migration that this version knows. */
export const newestOf = (migrations: Readonly<Record<string, unknown>>): number =>
  Math.max(...Object.keys(migrations).map((name) => Number.parseInt(name, 10)))

/**
 * Runs the missing migrations of the ledger `ledger`, each process that starts at the same time after the other.
 */
export const migrate = (
  ledger: string,
  migrations: Migrations
): Effect.Effect<void, EffectStoreError, SqlClient.SqlClient> =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const table = `${ledger}_migrations`
    yield* Effect.mapError(
      run({ loader: Migrator.fromRecord({ ...migrations }), table }),
      (error) => isSqlError(error) ? sqlFailure(error) : failure(error.message, error.cause)
    )
    const [newest] = yield* Effect.mapError(
      sql<Latest>`SELECT migration_id AS id, name FROM ${sql(table)} ORDER BY migration_id DESC LIMIT 1`
        .withoutTransform,
      sqlFailure
    )
    if (newest !== undefined && Number(newest.id) > newestOf(migrations)) {
      return yield* newerThan(Number(newest.id), newest.name)
    }
  })
