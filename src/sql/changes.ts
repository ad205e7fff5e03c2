/**
 * Who waits for a change of a key, and how they learn of one: from this store at once, from others by notices where the
 * database sends some, and in any case by looking.
 *
 * One fiber looks for all watchers of a store, only while there are any, and at a key at most once an interval (with a
 * jitter of a tenth, so that processes do not look in step), however many watch it. It also asks whether the process that
 * holds a watched key has died, since nothing changes in the database when it does.
 */
import { Context, Duration, Effect, Latch, Queue, Random, Scope, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { EffectStoreError } from "../errors.ts"
import type { Processes } from "./processes.ts"

/** What a row looks like from afar. */
export interface Sign {
  /** Differs after a change that a watcher cares for; `""` where there is no row. */
  readonly sign: string
  /** The lock of the process that holds the key, where it keeps one. */
  readonly process?: string | undefined
}

/** Notices that the database sends of changes. They may be lost. */
export interface Notices {
  /** What a notice of the key says. */
  readonly idOf: (key: string) => string
  /**
   * Hears notices until the connection is lost or the fiber is interrupted. `ready` runs when the database has begun to
   * send them.
   */
  readonly listen: (
    ready: Effect.Effect<void>,
    hear: (id: string) => void
  ) => Effect.Effect<void, SqlError, Scope.Scope>
}

/** Where changes are seen. */
export interface Source {
  /** The signs of rows, in the order of their keys. */
  readonly look: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Sign>, SqlError>
  /** A text that differs after anything has changed, where that is cheaper than looking at every row. */
  readonly version?: Effect.Effect<string, SqlError> | undefined
  readonly notices?: Notices | undefined
}

interface Watched {
  readonly listeners: Set<() => void>
  /** What the row looked like last; `undefined` before the first look. */
  sign: string | undefined
  process: string | undefined
}

/** The watchers of one store. */
export interface Changes {
  /** Wakes the watchers of the key. */
  readonly wake: (key: string) => void
  /** Wakes all watchers. */
  readonly wakeAll: () => void
  readonly watch: (key: string) => Stream.Stream<void, EffectStoreError>
}

const notify = ({ listeners }: Watched): void => listeners.forEach((listener) => listener())

/** The fibers that look and listen run in the scope; `interval` is in milliseconds. */
export const make = Effect.fnUntraced(function*(
  source: Source,
  interval: number,
  processes: Processes | undefined
): Effect.fn.Return<Changes, never, Scope.Scope> {
  const services = yield* Effect.context<Scope.Scope>()
  const watched = new Map<string, Watched>()
  /** By what a notice says. */
  const noticed = new Map<string, Watched>()
  const wanted = yield* Latch.make(false)
  const unwatched = yield* Latch.make(false)
  let version: string | undefined
  let lookAtAll = false

  const pause = Effect.flatMap(
    Random.nextBetween(interval * 0.9, interval * 1.1),
    (milliseconds) => Effect.sleep(Duration.millis(milliseconds))
  )

  const lookForDeath = (entry: Watched): Effect.Effect<void> =>
    processes === undefined || entry.process === undefined || entry.process === processes.id
      ? Effect.void
      : Effect.map(processes.isDead(entry.process), (dead) => {
        if (dead) notify(entry)
      })

  const lookAt = Effect.fnUntraced(function*(entries: ReadonlyArray<readonly [key: string, entry: Watched]>) {
    if (entries.length === 0) return
    const before = entries.map(([, { sign }]) => sign)
    const signs = yield* source.look(entries.map(([key]) => key))
    for (const [index, [, entry]] of entries.entries()) {
      const { process, sign } = signs[index]!
      entry.process = process
      // the first look wakes too: the change may have come between the watcher's claim and its watching
      if (sign !== entry.sign) notify(entry)
      // a watcher that came during the look has its own first look to come
      if (entry.sign === before[index]) entry.sign = sign
    }
  })

  const look = Effect.fnUntraced(function*() {
    const entries = [...watched]
    let all = lookAtAll
    lookAtAll = false
    if (all && source.version !== undefined) {
      const seen = yield* source.version
      all = seen !== version
      version = seen
    }
    yield* lookAt(all ? entries : entries.filter(([, { sign }]) => sign === undefined))
    for (const [, entry] of entries) yield* lookForDeath(entry)
  })

  const looking = Effect.gen(function*() {
    wanted.closeUnsafe()
    // a store that cannot be read now is asked again by the watchers themselves
    yield* Effect.ignoreCause(look())
    const due = Effect.map(pause, () => {
      lookAtAll = true
    })
    yield* Effect.raceFirst(due, wanted.await)
  })

  const hear = (id: string): void => {
    const entry = noticed.get(id)
    if (entry !== undefined) notify(entry)
  }

  const listening = (notices: Notices) =>
    Effect.gen(function*() {
      // what changed before the database began to send notices is found by a look
      const ready = Effect.sync(() => {
        lookAtAll = true
        wanted.openUnsafe()
      })
      const heard = Effect.ignoreCause(Effect.scoped(notices.listen(ready, hear)))
      const isLost = yield* Effect.raceFirst(Effect.as(heard, true), Effect.as(unwatched.await, false))
      // without a connection, until the next try, changes are found by looking; but who comes while the connection of those who
      // have left is being closed is listened for at once
      if (isLost) yield* Effect.raceFirst(pause, unwatched.await)
    })

  /** Starts a fiber that repeats `turn` for as long as anything is watched. It ends after a turn, never within one. */
  const whileWatched = (turn: Effect.Effect<void>): Effect.Effect<void> => {
    let running = false
    const turns = Effect.gen(function*() {
      while (watched.size > 0) yield* turn
      running = false
    })
    // it works for all watchers: nothing of the first one's context, such as a transaction, may stick to it
    const detached = Effect.updateContext(Effect.interruptible(turns), (_: Context.Context<never>) => services)
    return Effect.suspend(() => {
      if (running) return Effect.void
      running = true
      return Effect.asVoid(Effect.forkIn(detached, Context.get(services, Scope.Scope)))
    })
  }

  const start = Effect.andThen(
    whileWatched(looking),
    source.notices === undefined ? Effect.void : whileWatched(listening(source.notices))
  )

  const subscribe = (key: string, listener: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      const entry = watched.get(key)
      if (entry !== undefined) {
        entry.listeners.add(listener)
        // the newcomer is woken by the next look
        entry.sign = undefined
        return Effect.void
      }
      const first: Watched = { listeners: new Set([listener]), sign: undefined, process: undefined }
      watched.set(key, first)
      if (source.notices !== undefined) noticed.set(source.notices.idOf(key), first)
      unwatched.closeUnsafe()
      wanted.openUnsafe()
      return start
    })

  const unsubscribe = (key: string, listener: () => void): Effect.Effect<void> =>
    Effect.sync(() => {
      const entry = watched.get(key)
      entry?.listeners.delete(listener)
      if (entry?.listeners.size !== 0) return
      watched.delete(key)
      if (source.notices !== undefined) noticed.delete(source.notices.idOf(key))
      if (watched.size > 0) return
      unwatched.openUnsafe()
      wanted.openUnsafe()
    })

  const changes: Changes = {
    wake: (key) => {
      const entry = watched.get(key)
      if (entry !== undefined) notify(entry)
    },
    wakeAll: () => watched.forEach(notify),
    watch: (key) =>
      Stream.callback<void, EffectStoreError>((queue) => {
        const listener = () => void Queue.offerUnsafe(queue, undefined)
        return Effect.acquireRelease(subscribe(key, listener), () => unsubscribe(key, listener))
      })
  }
  return changes
})
