/**
 * The ledger in a SQL database of the program's own, over `effect/sql`.
 *
 * @since 0.1.0
 */
import { Duration, Effect, type Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { EffectStore, type IEffectStore } from "./EffectStore.ts"
import { EffectStoreError } from "./errors.ts"
import * as Changes from "./sql/changes.ts"
import type { Dialect } from "./sql/dialect.ts"
import * as Executor from "./sql/executor.ts"
import { makeStore } from "./sql/makeStore.ts"
import { migrate } from "./sql/migrate.ts"
import { own } from "./store/lifetime.ts"
import { sqliteDialect } from "./sql/sqliteDialect.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface SqlEffectStoreOptions {
  /**
   * How often to look for changes that others made, while somebody waits for one. Default: 100 milliseconds.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * For tests: an expression of the database that replaces its clock, in milliseconds.
   *
   * @internal
   */
  readonly now?: string | undefined
}

const unsupported = (dialect: string): Effect.Effect<never, EffectStoreError> =>
  Effect.fail(
    new EffectStoreError({
      operation: "open its tables",
      problem: `the ledger does not speak the client's dialect (${dialect}); it speaks SQLite's`
    })
  )

const dialectOf = (client: SqlClient.SqlClient): Effect.Effect<Dialect, EffectStoreError> =>
  client.onDialect({
    sqlite: () => Effect.succeed(sqliteDialect),
    pg: () => unsupported("pg"),
    mysql: () => unsupported("mysql"),
    mssql: () => unsupported("mssql"),
    clickhouse: () => unsupported("clickhouse")
  })

const make = Effect.fnUntraced(function*(
  options: SqlEffectStoreOptions = {}
): Effect.fn.Return<IEffectStore, EffectStoreError, SqlClient.SqlClient | Scope.Scope> {
  const client = yield* SqlClient.SqlClient
  const dialect = yield* dialectOf(client)
  yield* migrate(dialect)
  const executor = Executor.fromClient(client, dialect.oneWriter)
  const statements = dialect.statements(options.now)
  const interval = Duration.toMillis(options.pollInterval ?? 100)
  const changes = yield* Changes.make(executor, statements, interval, undefined)
  const store = makeStore(executor, statements, changes)
  yield* own(store)
  return store
})

/**
 * The ledger in the database of the `SqlClient` in context. Its tables (`chamvi_effect`, `chamvi_effect_floor`,
 * `chamvi_effect_migrations`) are made and kept up to date when the layer is built.
 *
 * **Details**
 *
 * - Leases are on the database's clock.
 * - A replay is one read without a lock; a claim, a record, a release each is one statement and one transaction.
 * - The store's statements never take part in a transaction of the caller: a record must stay, also where the caller's
 *   transaction is rolled back.
 * - SQLite (3.42 or newer) is the dialect that it speaks.
 *
 * **Gotchas**
 *
 * SQLite has one writer. A call inside a transaction of the same client could only wait for itself, and fails with
 * `EffectStoreError` at once. `SqliteEffectStore` keeps the ledger in a file of its own, where this does not arise, and
 * costs less.
 *
 * **Example** (A ledger beside the program's own tables)
 *
 * ```ts no-run
 * import { applyOnce } from "chamvi-effect"
 * import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
 * import { Effect, type Layer } from "effect"
 * import type { SqlClient } from "effect/sql"
 *
 * declare const Database: Layer.Layer<SqlClient.SqlClient>
 *
 * const program = applyOnce({ key: "letter:7", execute: () => Effect.succeed("sent") }).pipe(
 *   Effect.provide(SqlEffectStore.layer()),
 *   Effect.provide(Database)
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const SqlEffectStore = {
  /** The store as a service. */
  layer: (options?: SqlEffectStoreOptions): Layer.Layer<EffectStore, EffectStoreError, SqlClient.SqlClient> =>
    EffectStore.layerOf(make(options)),
  /** The store as a value, in use until the scope closes. */
  make
} as const
