/**
 * Waking those who wait for a key, by the messages that the scripts publish. One subscription serves all who wait in this
 * process, and is there only while somebody waits.
 */
import { Effect, Queue, RcRef, Schedule, Stream } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { hash } from "node:crypto"
import type { EffectStoreError } from "../errors.ts"

/** How long a subscription is kept when nobody waits any more. */
const idleTimeToLive = "5 seconds"

/** Between two tries to subscribe; until one succeeds, whoever waits asks at intervals of its own. */
const retries = Schedule.jittered(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]))

/** What the scripts publish of a key: the digest of its name in Redis, as `redis.sha1hex` makes it. */
const digest = (name: string): string => hash("sha1", name)

/** Answers, for the name of a key in Redis, the stream of its changes. */
export const make = Effect.fnUntraced(function*(redis: Redis["Service"], channel: string) {
  const watchers = new Map<string, Set<() => void>>()

  const listen = Effect.scoped(Effect.gen(function*() {
    const messages = yield* redis.subscribe(channel)
    // who began to wait before this moment may have missed a message
    watchers.forEach((listeners) => listeners.forEach((notify) => notify()))
    while (true) {
      const { message } = yield* Queue.take(messages)
      watchers.get(message)?.forEach((notify) => notify())
    }
  }))

  const listening = yield* RcRef.make({ acquire: Effect.forkScoped(Effect.retry(listen, retries)), idleTimeToLive })

  const subscribe = (id: string, notify: () => void) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const listeners = watchers.get(id) ?? new Set()
        watchers.set(id, listeners.add(notify))
        return listeners
      }),
      (listeners) =>
        Effect.sync(() => {
          listeners.delete(notify)
          if (listeners.size === 0) watchers.delete(id)
        })
    )

  return (name: string): Stream.Stream<void, EffectStoreError> =>
    Stream.callback<void>((queue) =>
      Effect.andThen(
        subscribe(digest(name), () => void Queue.offerUnsafe(queue, undefined)),
        RcRef.get(listening)
      )
    )
})
