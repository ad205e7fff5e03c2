/**
 * The ledger in a SQL database of the program's own, over `effect/sql`.
 *
 * @since 0.1.0
 */
import { Config, Duration, Effect, type Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { EffectStore, type IEffectStore } from "./EffectStore.ts"
import { EffectStoreError } from "./errors.ts"
import { checkName, defaultTable } from "./sql/names.ts"
import * as Postgres from "./sql/postgres/open.ts"
import * as Sqlite from "./sql/openSqlite.ts"
import { own } from "./store/lifetime.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface SqlEffectStoreOptions {
  /**
   * The name of the ledger's table, at most 48 bytes, without dots. What else belongs to it begins with this name. Default:
   * `chamvi_effect`.
   */
  readonly table?: string | undefined
  /**
   * The schema of the ledger's tables, in Postgres; it is made if it is missing. Default: the first schema of the
   * connection's search path.
   */
  readonly schema?: string | undefined
  /**
   * How often to look for changes that others made, while somebody waits for one; with a jitter of a tenth. Default: 100
   * milliseconds in SQLite; a second in Postgres, which also sends notices.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * For tests: an expression of the database that replaces its clock, in milliseconds.
   *
   * @internal
   */
  readonly now?: string | undefined
}

const failure = (problem: string) =>
  Effect.fail(new EffectStoreError({ operation: "open its tables", problem, permanent: true }))

const make = Effect.fnUntraced(function*(
  options: SqlEffectStoreOptions = {}
): Effect.fn.Return<IEffectStore, EffectStoreError, SqlClient.SqlClient | Scope.Scope> {
  const client = yield* SqlClient.SqlClient
  const table = yield* checkName("table", options.table ?? defaultTable)
  const schema = options.schema === undefined ? undefined : yield* checkName("schema", options.schema)
  const pollInterval = options.pollInterval === undefined ? undefined : Duration.toMillis(options.pollInterval)
  const store = yield* client.onDialectOrElse({
    sqlite: () =>
      schema === undefined
        ? Sqlite.open(client, table, { pollInterval, now: options.now })
        : failure("the option schema is for Postgres; SQLite has no schemas"),
    pg: () => Postgres.open(client, table, { schema, pollInterval, now: options.now }),
    orElse: () => failure("the ledger does not speak the client's dialect; it speaks SQLite's and Postgres's")
  })
  yield* own(store)
  return store
})

/**
 * The ledger in the database of the `SqlClient` in context: Postgres (`@effect/sql-pg`) or SQLite. Its tables are made, and
 * kept up to date, when the layer is built.
 *
 * **Details**
 *
 * - Leases are on the database's clock.
 * - The store's statements never take part in a transaction of the caller: a record must stay, also where the caller's
 *   transaction is rolled back. A tool with `transactional: true` is the other case: its effect is a write over the same
 *   client, and commits with its record or not at all.
 * - In Postgres a claim, a replay, a record, a release is one round trip, and a replay only reads. Calls of one turn share a
 *   round trip each way (`batch`), whose items do not affect each other.
 * - In Postgres a waiter is woken by a notice (LISTEN and NOTIFY). Listening takes one connection of the client's pool,
 *   only while somebody waits, and never the last one. Where no notice comes (a pool of one, a lost connection, a pooler
 *   that hands out connections by the transaction) a change is seen within `pollInterval`.
 * - Nothing but that connection needs a session of its own, so that the store works through PgBouncer in transaction mode.
 *   Set `prepare: false` on a client behind a PgBouncer older than 1.21, which loses prepared statements.
 * - Ten processes that start at once make the tables once. A process that finds them up to date only reads, and needs no
 *   right to make tables.
 * - Postgres 15 and 18 are tested, and SQLite 3.42 or newer.
 *
 * **Gotchas**
 *
 * - SQLite has one writer. A call inside a transaction of the same client could only wait for itself, and fails with
 *   `EffectStoreError` at once. `SqliteEffectStore` keeps the ledger in a file of its own, where this does not arise, and
 *   costs less.
 * - In Postgres a call inside a transaction takes a second connection of the pool. Where transactions can take all of
 *   them, a call waits for a connection, and fails with `EffectStoreError` after `storeTimeout`.
 * - A replica that lags behind must not be read: give the store a client of the primary.
 *
 * **Example** (A ledger beside the program's own tables)
 *
 * ```ts no-run
 * import { applyOnce } from "chamvi-effect"
 * import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
 * import { Config, Effect, Layer } from "effect"
 * import { PgClient } from "@effect/sql-pg"
 *
 * const Database = PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })
 *
 * const Ledger = SqlEffectStore.layerConfig({
 *   schema: Config.String("LEDGER_SCHEMA").pipe(Config.withDefault("public"))
 * }).pipe(Layer.provide(Database))
 *
 * const program = applyOnce({ key: "letter:7", execute: () => Effect.succeed("sent") }).pipe(Effect.provide(Ledger))
 * ```
 *
 * **Example** (A write and its record in one transaction)
 *
 * ```ts no-run
 * import { applyOnce } from "chamvi-effect"
 * import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
 * import { Config, Effect, Layer } from "effect"
 * import { SqlClient } from "effect/sql"
 * import { PgClient } from "@effect/sql-pg"
 *
 * // the ledger and the program's statements share one client
 * const Database = SqlEffectStore.layer().pipe(
 *   Layer.provideMerge(PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") }))
 * )
 *
 * const program = applyOnce({
 *   key: "order-42:reserve",
 *   transactional: true,
 *   execute: () =>
 *     Effect.gen(function*() {
 *       const sql = yield* SqlClient.SqlClient
 *       yield* sql`UPDATE articles SET stock = stock - 1 WHERE id = 7`
 *       return "reserved"
 *     })
 * }).pipe(Effect.provide(Database))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const SqlEffectStore = {
  /** The store as a service. */
  layer: (options?: SqlEffectStoreOptions): Layer.Layer<EffectStore, EffectStoreError, SqlClient.SqlClient> =>
    EffectStore.layerOf(make(options)),
  /** The store as a service, with options from the program's configuration. */
  layerConfig: (
    config: Config.Wrap<SqlEffectStoreOptions>
  ): Layer.Layer<EffectStore, EffectStoreError | Config.ConfigError, SqlClient.SqlClient> =>
    EffectStore.layerOf(Effect.flatMap(Config.unwrap(config), make)),
  /** The store as a value, in use until the scope closes. */
  make
} as const
