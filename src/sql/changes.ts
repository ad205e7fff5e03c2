/**
 * Who waits for a change of a key, and how they learn of one: from this store at once, from others by looking.
 *
 * One fiber looks for all watchers of a store, only while there are any. It asks the database whether anything changed
 * at all, which is cheap, and only then reads the watched rows. It also asks whether the process that holds a watched key
 * has died, since nothing changes in the database when it does.
 */
import { Context, Effect, Fiber, Queue, Scope, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { EffectStoreError } from "../errors.ts"
import type { Statements } from "./dialect.ts"
import type { SqlExecutor } from "./executor.ts"
import type { Processes } from "./processes.ts"

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

/** The looking fiber, `interval` milliseconds between two looks, runs in the scope. */
export const make = Effect.fnUntraced(function*(
  executor: SqlExecutor,
  statements: Statements,
  interval: number,
  processes: Processes | undefined
) {
  const services = yield* Effect.context<Scope.Scope>()
  const watched = new Map<string, Watched>()
  let looking: Fiber.Fiber<unknown> | undefined

  const notify = ({ listeners }: Watched) => listeners.forEach((listener) => listener())

  const lookAt = (key: string, entry: Watched): Effect.Effect<void, SqlError> =>
    Effect.map(executor.read(statements.sign(key)), ([row]) => {
      const sign = row === undefined ? "" : String(row[0])
      entry.process = typeof row?.[1] === "string" ? row[1] : undefined
      // the first look wakes too: the change may have come between the watcher's claim and its watching
      if (sign !== entry.sign) notify(entry)
      entry.sign = sign
    })

  const lookForDeath = (entry: Watched): Effect.Effect<void> =>
    processes === undefined || entry.process === undefined || entry.process === processes.id
      ? Effect.void
      : Effect.map(processes.isDead(entry.process), (dead) => {
        if (dead) notify(entry)
      })

  let version = ""
  const look = Effect.gen(function*() {
    const seen = String(yield* executor.read(statements.version))
    const changed = seen !== version
    version = seen
    for (const [key, entry] of watched) {
      if (changed || entry.sign === undefined) yield* lookAt(key, entry)
      yield* lookForDeath(entry)
    }
  })

  // a store that cannot be read now is asked again by the watchers themselves
  const loop = Effect.updateContext(
    Effect.forever(Effect.delay(Effect.ignore(look), interval)),
    // it looks for all watchers: nothing of the first one's context, such as a transaction, may stick to it
    (_: Context.Context<never>) => services
  )

  const subscribe = (key: string, listener: () => void) =>
    Effect.suspend(() => {
      const entry = watched.get(key) ?? { listeners: new Set(), sign: undefined, process: undefined }
      watched.set(key, entry)
      entry.listeners.add(listener)
      // a newcomer is woken by the next look
      entry.sign = undefined
      return looking === undefined
        ? Effect.map(Effect.forkIn(Effect.interruptible(loop), Context.get(services, Scope.Scope)), (fiber) => {
          looking = fiber
        })
        : Effect.void
    })

  const unsubscribe = (key: string, listener: () => void) =>
    Effect.suspend(() => {
      const entry = watched.get(key)
      entry?.listeners.delete(listener)
      if (entry?.listeners.size === 0) watched.delete(key)
      const fiber = looking
      if (watched.size > 0 || fiber === undefined) return Effect.void
      looking = undefined
      return Fiber.interrupt(fiber)
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
