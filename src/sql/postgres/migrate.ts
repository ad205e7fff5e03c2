/**
 * Makes the ledger's tables, and brings them up to date.
 *
 * It holds no state of a session: the lock that lets one process at a time do it is the transaction's own, so that it
 * works through a pooler that hands out connections by the transaction.
 */
import { Context, Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { EffectStoreError } from "../../errors.ts"
import { failure, newerThan, newestOf, sqlFailure } from "../migrate.ts"
import { literal, type Names } from "./names.ts"

const migrations = ({ index, table, tokens }: Names): Readonly<Record<string, ReadonlyArray<string>>> => ({
  "1_ledger": [
    // a sequence never goes back, whatever happens to the rows and the transactions that took its numbers
    `CREATE SEQUENCE ${tokens} AS bigint CACHE 1`,
    `CREATE TABLE ${table} (
      digest bytea NOT NULL PRIMARY KEY,
      id bigint NOT NULL,
      key text COLLATE "C" NOT NULL,
      tool text COLLATE "C" NOT NULL,
      run_id text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      doubt text COLLATE "C" NOT NULL,
      token bigint NOT NULL,
      claim_id text COLLATE "C" NOT NULL,
      attempt bigint NOT NULL,
      taken_over boolean NOT NULL,
      owner text COLLATE "C" NOT NULL,
      lease_end bigint NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      earlier_seen_at bigint,
      earlier_fingerprint text COLLATE "C",
      result text COLLATE "C",
      outcome text COLLATE "C",
      created_at bigint NOT NULL,
      updated_at bigint NOT NULL,
      seen_at bigint NOT NULL,
      awaited boolean NOT NULL DEFAULT false
    )`,
    // every unique index more would make every claim dearer; this one is the order of lists, and where prune finds what is old
    `CREATE INDEX ${index("created")} ON ${table} (created_at, id)`,
    // a run's id may be longer than an index can hold
    `CREATE INDEX ${index("run")} ON ${table} (left(run_id, 64), created_at, id)`,
    // what is held, and what waits for a person, are few among many records
    `CREATE INDEX ${index("open")} ON ${table} (created_at, id) WHERE status <> 'recorded'`
  ]
})

/** The newest migration in the database, if its tables are there at all. */
const latest = (sql: SqlClient.SqlClient, { migrations }: Names) =>
  Effect.gen(function*() {
    const [found] = yield* sql.unsafe("SELECT to_regclass($1) IS NOT NULL AS value", [migrations]).values
    if (found?.[0] !== true) return undefined
    const [newest] = yield* sql.unsafe(
      `SELECT migration_id, name FROM ${migrations} ORDER BY migration_id DESC LIMIT 1`
    )
      .values
    return newest === undefined ? undefined : { id: Number(newest[0]), name: String(newest[1]) }
  })

const run = (
  sql: SqlClient.SqlClient,
  names: Names,
  schema: string
): Effect.Effect<void, SqlError> =>
  sql.withTransaction(Effect.gen(function*() {
    yield* sql.unsafe("SELECT pg_advisory_xact_lock($1)", [names.lock])
    const [found] = yield* sql.unsafe("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).values
    // asked first: `IF NOT EXISTS` wants the right to make schemas also where there is nothing to make
    if (found === undefined) yield* sql.unsafe(`CREATE SCHEMA ${names.schema}`)
    // whoever had the lock before may have done it
    const done = yield* latest(sql, names)
    if (done === undefined) {
      yield* sql.unsafe(
        `CREATE TABLE IF NOT EXISTS ${names.migrations} (
          migration_id integer PRIMARY KEY,
          name text NOT NULL,
          created_at timestamptz NOT NULL DEFAULT now()
        )`
      )
    }
    for (const [name, statements] of Object.entries(migrations(names))) {
      const id = Number.parseInt(name, 10)
      if (id <= (done?.id ?? 0)) continue
      for (const statement of statements) yield* sql.unsafe(statement)
      yield* sql.unsafe(
        `INSERT INTO ${names.migrations} (migration_id, name) VALUES (${id}, ${literal(name.replace(/^\d+_/, ""))})`
      )
    }
  }))

/**
 * Runs the missing migrations, each process that starts at the same time after the other. Where there is nothing to do it
 * only reads, so that a program may run under a role that has no right to make tables.
 */
export const migrate = (
  sql: SqlClient.SqlClient,
  names: Names,
  schema: string
): Effect.Effect<void, EffectStoreError> =>
  Effect.gen(function*() {
    const known = newestOf(migrations(names))
    const present = yield* latest(sql, names)
    if (present === undefined || present.id < known) yield* run(sql, names, schema)
    else if (present.id > known) return yield* newerThan(present.id, present.name)
  }).pipe(
    Effect.mapError((error) => isSqlError(error) ? sqlFailure(error) : error),
    // the tables must stay, also where the caller's transaction is rolled back
    Effect.updateContext(Context.omit(sql.transactionService))
  )

/** The schema of the option, or the one that the database's search path leads to. */
export const schemaOf = (
  sql: SqlClient.SqlClient,
  schema: string | undefined
): Effect.Effect<string, EffectStoreError> =>
  schema !== undefined ? Effect.succeed(schema) : Effect.flatMap(
    Effect.mapError(sql.unsafe("SELECT current_schema()").values, sqlFailure),
    ([row]) =>
      typeof row?.[0] === "string"
        ? Effect.succeed(row[0])
        : Effect.fail(failure("the search path of the connection leads to no schema; name one by the option schema"))
  )
