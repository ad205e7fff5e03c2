/**
 * One `node:sqlite` connection: how it is opened, what it throws as `SqlError`, and its cache of prepared statements.
 *
 * `node:sqlite` is synchronous. What lives here is synchronous too, and throws; its callers turn that into Effects.
 */
import { Clock, Duration, Effect, Predicate, Schedule, type Scope } from "effect"
import { classifySqliteError, SqlError } from "effect/sql/SqlError"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"

/** A connection and what is remembered about it. */
export interface Database {
  readonly handle: DatabaseSync
  /** Runs a statement to its end; rows are arrays. Throws what `node:sqlite` throws. */
  readonly valuesUnsafe: (sql: string, params: ReadonlyArray<unknown>) => ReadonlyArray<ReadonlyArray<unknown>>
  /** A prepared statement out of the cache. Throws what `node:sqlite` throws. */
  readonly prepareUnsafe: (sql: string) => StatementSync
  /** The file that other processes can open too, `undefined` where there is none (`:memory:`). */
  readonly file: string | undefined
}

/** How a connection is opened. */
export interface DatabaseOptions {
  /** A path, or `:memory:`. */
  readonly filename: string
  /** `durable` flushes each commit to the disk; `fast` leaves the time of the flush to the system. */
  readonly mode: "durable" | "fast"
  /** How long a statement waits, in milliseconds and with the thread blocked, for a lock of another connection. */
  readonly busyTimeout: number
  readonly readonly?: boolean | undefined
}

/** The largest number of prepared statements that are kept. */
const mostStatements = 200

/** What `node:sqlite` threw, classified. */
export const sqlError = (operation: string) => (cause: unknown): SqlError => {
  const message = Predicate.hasProperty(cause, "message") ? String(cause.message) : "SQLite failed"
  // `node:sqlite` calls errcode what the classification looks for as errno
  const known = Predicate.hasProperty(cause, "errcode") ? { message, errno: cause.errcode, cause } : cause
  return new SqlError({ reason: classifySqliteError(known, { message, operation }) })
}

/** Whether the statement failed because another connection held a lock. It changed nothing. */
export const isBusy = (error: SqlError): boolean => error.reason._tag === "LockTimeoutError"

/** Locks of other processes pass in real time, also where a test moves the program's clock. */
export const realClock: Clock.Clock = Clock.Clock.defaultValue()

/**
 * Repeats what failed because of another connection's lock, for at most `budget` milliseconds, while other fibers run.
 */
export const retryBusy = <A, R>(effect: Effect.Effect<A, SqlError, R>, budget: number): Effect.Effect<A, SqlError, R> =>
  Effect.withFiber((fiber) => {
    const clock = fiber.getRef(Clock.Clock)
    return Effect.provideService(
      Effect.retry(Effect.provideService(effect, Clock.Clock, clock), {
        while: isBusy,
        schedule: Schedule.jittered(Schedule.spaced(Duration.millis(10))).pipe(
          Schedule.upTo({ duration: Duration.millis(budget) })
        )
      }),
      Clock.Clock,
      realClock
    )
  })

/** What SQLite can store: booleans as 0 and 1, dates as ISO strings, `undefined` as NULL. */
const toInput = (value: unknown): SQLInputValue =>
  value === undefined
    ? null
    : typeof value === "boolean"
    ? Number(value)
    : Predicate.isDate(value)
    ? value.toISOString()
    : value as SQLInputValue

export const toInputs = (params: ReadonlyArray<unknown>): Array<SQLInputValue> => params.map(toInput)

const makeCache = (handle: DatabaseSync, configure: (statement: StatementSync) => void) => {
  const statements = new Map<string, StatementSync>()
  return (sql: string): StatementSync => {
    const cached = statements.get(sql)
    if (cached !== undefined) return cached
    const statement = handle.prepare(sql)
    configure(statement)
    // the oldest one goes; who builds endless texts of SQL pays for preparing them, not for keeping them
    if (statements.size >= mostStatements) statements.delete(statements.keys().next().value!)
    statements.set(sql, statement)
    return statement
  }
}

const configure = (database: Database, options: DatabaseOptions): Effect.Effect<void, SqlError> => {
  const { handle } = database
  const pragma = (text: string) =>
    Effect.try({ try: () => handle.prepare(`PRAGMA ${text}`).all(), catch: sqlError(`PRAGMA ${text}`) })
  const setup = Effect.gen(function*() {
    yield* pragma(`busy_timeout = ${Math.ceil(options.busyTimeout)}`)
    if (options.readonly === true) return
    const [row] = yield* pragma("journal_mode = WAL")
    if (database.file !== undefined && row?.["journal_mode"] !== "wal") {
      return yield* sqlError("PRAGMA journal_mode")({ message: "the file system does not support WAL" })
    }
    yield* pragma(`synchronous = ${options.mode === "durable" ? "FULL" : "NORMAL"}`)
    // a checkpoint costs flushes that `fast` does without otherwise; under `durable` a short log is flushed faster
    if (options.mode === "fast") yield* pragma("wal_autocheckpoint = 10000")
  })
  // SQLite does not wait by itself where several connections turn to WAL at once
  return retryBusy(setup, 10_000)
}

/**
 * Opens a connection in WAL mode for as long as the scope is open.
 */
export const open = (options: DatabaseOptions): Effect.Effect<Database, SqlError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => new DatabaseSync(options.filename, { readOnly: options.readonly === true }),
      catch: sqlError("open")
    }),
    (handle) => Effect.sync(() => handle.isOpen && handle.close())
  ).pipe(
    Effect.map((handle): Database => {
      const arrays = makeCache(handle, (statement) => statement.setReturnArrays(true))
      return {
        handle,
        // SQLite says "" of a database that only has a temporary file
        file: handle.location() || undefined,
        // to the end, never `get`: a commit that fails is reported by the last step only
        valuesUnsafe: (sql, params) =>
          arrays(sql).all(...params as Array<SQLInputValue>) as unknown as ReadonlyArray<ReadonlyArray<unknown>>,
        prepareUnsafe: makeCache(handle, () => {})
      }
    }),
    Effect.tap((database) => configure(database, options))
  )
