/**
 * A lock on a database file for one process, which the kernel frees however the process ends. It is a small database of its own,
 * in an exclusive transaction, since Node has no flock: so the data file stays open to readers.
 */
import { Effect, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { DatabaseSync } from "node:sqlite"
import { sqlError } from "./database.ts"

/** Locks that are held: a connection that is not referenced any more would be closed, and its lock dropped. */
const held = new Set<DatabaseSync>()

/** Takes the lock for as long as the scope is open; fails at once where somebody has it. Nothing else may open the file. */
export const take = (file: string): Effect.Effect<void, SqlError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const handle = new DatabaseSync(file)
        held.add(handle)
        return handle
      },
      catch: sqlError("lock")
    }),
    (handle) =>
      Effect.sync(() => {
        held.delete(handle)
        handle.close()
      })
  ).pipe(
    Effect.flatMap((handle) =>
      Effect.try({
        try: () => handle.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE"),
        catch: sqlError("lock")
      })
    )
  )
