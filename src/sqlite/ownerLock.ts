/**
 * Whether the process that holds a claim still lives, as the kernel says.
 *
 * Each store keeps a small database file beside the ledger, in an exclusive transaction, for as long as it is open. The
 * kernel drops that lock when the process ends, however it ends, and never before: a process that hangs, or is stopped,
 * still has it. (A process id would say less: ids are given out again, and mean nothing in another container.)
 *
 * The protocol:
 *
 * - Only a lock that was seen to be free proves a death. A file that is missing proves nothing: claims of its owner are
 *   then taken over when their leases end.
 * - Probing takes a shared lock for a moment. It never waits, it creates no file, and two probes do not disturb each other.
 * - Who finds a lock free first leaves a tombstone, an empty file, and removes the lock's file. Tombstones are removed
 *   after a while; leases are over by then.
 * - An id is used once. An owner that took its lock makes sure that nobody has buried it between the creation of the file
 *   and the lock, and takes another id if somebody has.
 *
 * POSIX locks belong to a process and are dropped when it closes any descriptor of the file. SQLite keeps such descriptors
 * open as long as another connection of the process has a lock on the file, in all threads, since Node holds one copy of
 * it. Nothing else in a process may open these files.
 */
import { Effect, Option, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, statSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { EffectStoreError } from "../errors.ts"
import type { Processes } from "../sql/processes.ts"
import { isBusy, realClock, sqlError } from "./database.ts"

const lockSuffix = ".lock"
const tombstoneSuffix = ".dead"

/** How long "it lives" is believed, in milliseconds. */
const believed = 100

/** How long a tombstone stands, in milliseconds: longer than any lease. */
const tombstoneAge = 7 * 24 * 60 * 60 * 1_000

/** Locks that are held: a connection that is not referenced any more would be closed, and its lock dropped. */
const held = new Set<DatabaseSync>()

const close = (handle: DatabaseSync) =>
  Effect.sync(() => {
    held.delete(handle)
    if (handle.isOpen) handle.close()
  })

const attempt = <A>(run: () => A): Effect.Effect<A, SqlError> => Effect.try({ try: run, catch: sqlError("lock") })

const quietly = (run: () => void): Effect.Effect<void> => Effect.ignore(Effect.try(run))

type Sight = "alive" | "dead" | "unknown"

/** Looks at a lock; `bury` runs while it is held shared, so that no owner can take it meanwhile. */
const probe = (file: string, bury: Effect.Effect<void>): Effect.Effect<Sight> =>
  Effect.acquireUseRelease(
    attempt(() => new DatabaseSync(file, { readOnly: true })),
    (handle) =>
      attempt(() => handle.exec("PRAGMA busy_timeout = 0; BEGIN; SELECT count(*) FROM sqlite_schema")).pipe(
        Effect.andThen(bury),
        Effect.as<Sight>("dead")
      ),
    close
  ).pipe(Effect.catch((error) => Effect.succeed<Sight>(isBusy(error) ? "alive" : "unknown")))

const makeProbe = (directory: string) => (id: string): Effect.Effect<Sight> => {
  const lock = join(directory, id + lockSuffix)
  const tombstone = join(directory, id + tombstoneSuffix)
  return Effect.flatMap(
    Effect.sync(() => existsSync(tombstone)),
    (buried) =>
      buried
        ? Effect.succeed<Sight>("dead")
        : Effect.tap(
          probe(lock, quietly(() => writeFileSync(tombstone, ""))),
          (sight) => sight === "dead" && existsSync(tombstone) ? quietly(() => unlinkSync(lock)) : Effect.void
        )
  )
}

/** Looks at all owners' files, so that those of the dead do not pile up. */
const clean = (directory: string, sightOf: (id: string) => Effect.Effect<Sight>): Effect.Effect<void> =>
  Effect.ignore(Effect.flatMap(Effect.try(() => readdirSync(directory)), (names) =>
    Effect.forEach(names, (name) => {
      if (name.endsWith(lockSuffix)) return sightOf(name.slice(0, -lockSuffix.length))
      const path = join(directory, name)
      return name.endsWith(tombstoneSuffix)
        ? quietly(() => {
          if (realClock.currentTimeMillisUnsafe() - statSync(path).mtimeMs > tombstoneAge) unlinkSync(path)
        })
        : Effect.void
    }, { discard: true })))

/** Takes the lock of a new id; `None` where somebody buried it before it was locked. */
const takeNew = (
  directory: string
): Effect.Effect<Option.Option<readonly [string, DatabaseSync]>, SqlError, Scope.Scope> => {
  const id = randomUUID()
  const lock = join(directory, id + lockSuffix)
  return Effect.acquireRelease(attempt(() => new DatabaseSync(lock)), close).pipe(
    Effect.tap((handle) =>
      attempt(() => handle.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE"))
    ),
    Effect.tap((handle) => Effect.sync(() => held.add(handle))),
    Effect.map((handle) =>
      existsSync(lock) && !existsSync(join(directory, id + tombstoneSuffix))
        ? Option.some([id, handle] as const)
        : Option.none()
    ),
    // a probe is looking at the new file right now
    Effect.catchIf(isBusy, () => Effect.succeedNone)
  )
}

/**
 * Takes a lock of its own in the directory, for as long as the scope is open, and answers what it can tell of others.
 */
export const make = Effect.fnUntraced(function*(
  directory: string
): Effect.fn.Return<Processes, EffectStoreError, Scope.Scope> {
  const failure = (cause: unknown) =>
    new EffectStoreError({
      operation: "lock its owner's file",
      problem: `no lock can be kept in ${directory}, which must be a folder on a local disk that can be written`,
      permanent: true,
      cause
    })
  yield* Effect.try({ try: () => mkdirSync(directory, { recursive: true }), catch: failure })
  let taken = Option.none<readonly [string, DatabaseSync]>()
  while (Option.isNone(taken)) taken = yield* Effect.mapError(takeNew(directory), failure)
  const [id, handle] = taken.value
  yield* Effect.addFinalizer(() => quietly(() => unlinkSync(join(directory, id + lockSuffix))))

  const sightOf = makeProbe(directory)
  yield* clean(directory, (other) => other === id ? Effect.succeed<Sight>("alive") : sightOf(other))

  const dead = new Set<string>()
  const seenAlive = new Map<string, number>()
  const nowMillis = () => Number(realClock.monotonicTimeNanosUnsafe()) / 1e6
  return {
    id,
    isDead: (other) =>
      Effect.suspend(() => {
        // the reference keeps the lock from being collected while anybody can still claim through this store
        if (other === id || !handle.isOpen) return Effect.succeed(false)
        if (dead.has(other)) return Effect.succeed(true)
        const now = nowMillis()
        if (now - (seenAlive.get(other) ?? -Infinity) < believed) return Effect.succeed(false)
        return Effect.map(sightOf(other), (sight) => {
          if (sight === "dead") {
            seenAlive.delete(other)
            dead.add(other)
            return true
          }
          seenAlive.set(other, nowMillis())
          return false
        })
      })
  }
})
