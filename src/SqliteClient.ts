/**
 * An `effect/sql` client over Node's built-in `node:sqlite`, for as long as the ecosystem has none for this Effect version.
 *
 * **Details**
 *
 * One connection in WAL mode behind a semaphore: statements of other fibers wait while a transaction is open.
 * Transactions begin with `BEGIN IMMEDIATE`, so that they wait for another process at their start instead of failing at
 * their first write.
 *
 * @since 0.1.0
 */
import { Context, Duration, Effect, type Fiber, Layer, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, type SqlError, Statement } from "effect/sql"
import { type Database, open, sqlError, toInputs } from "./sqlite/database.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface SqliteClientOptions {
  /** A path, or `:memory:`. */
  readonly filename: string
  /**
   * `"durable"` (the default) flushes every commit to the disk. `"fast"` does not wait for the disk: a power loss may take
   * the last commits back; the death of the process alone does not.
   */
  readonly mode?: "durable" | "fast" | undefined
  /** How long a statement waits for a lock of another connection; the thread is blocked. Default: 5 seconds. */
  readonly busyTimeout?: Duration.Input | undefined
  readonly transformQueryNames?: ((name: string) => string) | undefined
  readonly transformResultNames?: ((name: string) => string) | undefined
}

const safeIntegers = (fiber: Fiber.Fiber<unknown, unknown>): boolean => fiber.getRef(SqlClient.SafeIntegers)

const makeConnection = (database: Database): SqlConnection.Connection => {
  type Rows = ReadonlyArray<Record<string, unknown>>
  const statementOf = (sql: string, prepared: boolean) =>
    prepared ? database.prepareUnsafe(sql) : database.handle.prepare(sql)

  const attempt = <A>(sql: string, prepared: boolean, run: (statement: ReturnType<typeof statementOf>) => A) =>
    Effect.withFiber<A, SqlError.SqlError>((fiber) =>
      Effect.try({
        try: () => {
          const statement = statementOf(sql, prepared)
          statement.setReadBigInts(safeIntegers(fiber))
          return run(statement)
        },
        catch: sqlError("execute")
      })
    )

  const rows = (
    sql: string,
    params: ReadonlyArray<unknown>,
    prepared: boolean
  ): Effect.Effect<Rows, SqlError.SqlError> =>
    attempt(sql, prepared, (statement) => {
      statement.setReturnArrays(false)
      return statement.all(...toInputs(params))
    })

  const values = (sql: string, params: ReadonlyArray<unknown>, prepared: boolean) =>
    attempt(sql, prepared, (statement) => {
      statement.setReturnArrays(true)
      return statement.all(...toInputs(params)) as unknown as ReadonlyArray<ReadonlyArray<unknown>>
    })

  const transformed = (
    sql: string,
    params: ReadonlyArray<unknown>,
    transformRows: (<A extends object>(row: ReadonlyArray<A>) => ReadonlyArray<A>) | undefined,
    prepared: boolean
  ) =>
    transformRows === undefined ? rows(sql, params, prepared) : Effect.map(rows(sql, params, prepared), transformRows)

  return {
    execute: (sql, params, transformRows) => transformed(sql, params, transformRows, true),
    executeUnprepared: (sql, params, transformRows) => transformed(sql, params, transformRows, false),
    executeValues: (sql, params) => values(sql, params, true),
    executeValuesUnprepared: (sql, params) => values(sql, params, false),
    executeRaw: (sql, params) =>
      attempt(sql, true, (statement): unknown => {
        statement.setReturnArrays(false)
        return statement.columns().length === 0
          ? statement.run(...toInputs(params))
          : statement.all(...toInputs(params))
      }),
    // a cursor that stays open would hold its snapshot, and with it the log, for as long as the reader likes
    executeStream: (sql, params, transformRows) =>
      Stream.fromIterableEffect(transformed(sql, params, transformRows, true))
  }
}

/**
 * The client of an open connection, which it does not close.
 *
 * @category constructors
 * @since 0.1.0
 * @internal
 */
export const fromDatabase = Effect.fnUntraced(function*(
  database: Database,
  options: Pick<SqliteClientOptions, "transformQueryNames" | "transformResultNames"> = {}
) {
  const semaphore = yield* Semaphore.make(1)
  const { borrower, acquirer, isTransaction, onCommitFailure, transactionAcquirer } = SqlClient.makeSqliteAcquirers({
    connection: Effect.succeed(makeConnection(database)),
    semaphore,
    isTransaction: () => database.handle.isTransaction
  })
  return yield* SqlClient.make({
    acquirer,
    borrower,
    transactionAcquirer,
    onCommitFailure,
    isTransaction,
    compiler: Statement.makeCompilerSqlite(options.transformQueryNames),
    driver: "node-sqlite",
    spanAttributes: [["db.system.name", "sqlite"]],
    beginTransaction: "BEGIN IMMEDIATE",
    prepareTransactionControls: true,
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
    transformRows: options.transformResultNames === undefined
      ? undefined
      : Statement.defaultTransforms(options.transformResultNames).array
  }).pipe(Effect.provide(Reactivity.layer))
})

/**
 * Opens a client for as long as the scope is open.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: SqliteClientOptions) =>
  Effect.flatMap(
    open({
      filename: options.filename,
      mode: options.mode ?? "durable",
      busyTimeout: Duration.toMillis(options.busyTimeout ?? "5 seconds")
    }),
    (database) => fromDatabase(database, options)
  )

/**
 * A `SqlClient` on a file or in memory.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: SqliteClientOptions): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effectContext(Effect.map(make(options), (client) => Context.make(SqlClient.SqlClient, client)))
