/**
 * The ledger in a SQLite file of its own, with the driver that Node brings: the default for one machine.
 *
 * @since 0.1.0
 */
import { Duration, Effect, type Layer, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { realpathSync } from "node:fs"
import { EffectStore, type IEffectStore } from "./EffectStore.ts"
import { EffectStoreError } from "./errors.ts"
import * as Changes from "./sql/changes.ts"
import { makeStore } from "./sql/makeStore.ts"
import { migrate } from "./sql/migrate.ts"
import { defaultTable } from "./sql/names.ts"
import { own } from "./store/lifetime.ts"
import { singly } from "./sql/singly.ts"
import * as Sqlite from "./sql/sqliteDialect.ts"
import * as Database from "./sqlite/database.ts"
import * as Executor from "./sqlite/executor.ts"
import * as OwnerLock from "./sqlite/ownerLock.ts"
import { fromDatabase } from "./SqliteClient.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface SqliteEffectStoreOptions {
  /** The file, which is made if it is missing (its directory is not), or `:memory:`. */
  readonly filename: string
  /**
   * - `"durable"` (the default): a record is on the disk before the call that made it answers. Records of parallel calls
   *   share a flush.
   * - `"fast"`: the system flushes when it likes. A process that is killed loses nothing. A power loss, or a crash of the
   *   operating system, may lose the last claims and records, and the effects they speak of can then be applied again.
   */
  readonly mode?: "durable" | "fast" | undefined
  /** How long a statement waits for another process that writes. Default: 5 seconds. */
  readonly busyTimeout?: Duration.Input | undefined
  /** How often to look for changes of other processes, while somebody waits for one. Default: 100 milliseconds. */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * For tests: an expression of SQL that replaces SQLite's clock, in milliseconds.
   *
   * @internal
   */
  readonly now?: string | undefined
}

/** How long a statement blocks the thread before it waits as a fiber does, in milliseconds. */
const blocking = 20

const make = Effect.fnUntraced(function*(
  options: SqliteEffectStoreOptions
): Effect.fn.Return<IEffectStore, EffectStoreError, Scope.Scope> {
  const mode = options.mode ?? "durable"
  const busyTimeout = Duration.toMillis(options.busyTimeout ?? "5 seconds")
  const database = yield* Effect.mapError(
    Database.open({ filename: options.filename, mode, busyTimeout: 5_000 }),
    (error) =>
      new EffectStoreError({
        operation: `open ${options.filename}`,
        problem: `${
          error.reason.message ?? error.message
        } (its folder must exist, and the file must be a SQLite database)`,
        permanent: !error.isRetryable,
        cause: error
      })
  )
  yield* Effect.provideServiceEffect(
    migrate(defaultTable, Sqlite.migrations(defaultTable)),
    SqlClient.SqlClient,
    fromDatabase(database)
  )
  yield* Effect.sync(() => database.handle.exec(`PRAGMA busy_timeout = ${blocking}`))
  // beside the real file, so that processes that reach it over different links agree
  const processes = database.file === undefined
    ? undefined
    : yield* OwnerLock.make(`${realpathSync(database.file)}.owners`)
  const executor = database.file === undefined
    ? Executor.direct(database, busyTimeout)
    : Executor.grouped(database, busyTimeout, mode === "fast")
  const statements = Sqlite.statements(defaultTable, options.now)
  const interval = Duration.toMillis(options.pollInterval ?? 100)
  const changes = yield* Changes.make(Sqlite.source(executor, statements), interval, processes)
  const store = makeStore(executor, statements, singly(executor, statements, changes, processes), changes)
  yield* own(store)
  return store
})

/**
 * The ledger in a SQLite file, over Node's built-in `node:sqlite`. Several processes of one machine may use one file.
 *
 * **Details**
 *
 * - Leases are on the machine's clock, as SQLite reads it.
 * - A claim whose process has died is taken over at once, in doubt, without waiting for its lease: each process keeps a
 *   lock beside the ledger, in the directory `<filename>.owners`, which the kernel frees when the process ends. A process
 *   that merely hangs keeps its claims until their leases end.
 * - A statement is synchronous and takes microseconds; while another process writes, it waits without blocking this one.
 *
 * **Gotchas**
 *
 * - The file and its directory must be on a local disk: SQLite's locks do not hold on network file systems.
 * - Open the files in `<filename>.owners` with nothing: a process that closes such a file loses its lock on it. Deleting
 *   the directory does no harm beyond waiting for leases.
 * - `:memory:` is this process's own, and is gone with it.
 *
 * **Example** (A ledger that outlives the process)
 *
 * ```ts
 * import { applyOnce } from "chamvi-effect"
 * import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
 * import { Effect } from "effect"
 *
 * const program = applyOnce({ key: "letter:7", execute: () => Effect.succeed("sent") }).pipe(
 *   Effect.provide(SqliteEffectStore.layer({ filename: ":memory:" }))
 * )
 *
 * await Effect.runPromise(program) // => "sent"
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const SqliteEffectStore = {
  /** The store as a service. */
  layer: (options: SqliteEffectStoreOptions): Layer.Layer<EffectStore, EffectStoreError> =>
    EffectStore.layerOf(make(options)),
  /** The store as a value, in use until the scope closes. */
  make
} as const
