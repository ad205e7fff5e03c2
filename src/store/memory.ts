import { Clock, Duration, Effect, Queue, Stream } from "effect"
import type { EffectRecord, Step } from "../EffectRecord.ts"
import * as Record from "../EffectRecord.ts"
import type { EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "./IEffectStore.ts"
import { matches } from "./matches.ts"
import { encodeJson } from "./resolutionJson.ts"

/**
 * A ledger in a `Map`: the state machine of `EffectRecord`, with the caller's `Clock` as the store's clock.
 */
export const makeMemory: Effect.Effect<IEffectStore> = Effect.sync(() => {
  const rows = new Map<string, EffectRecord>()
  const watchers = new Map<string, Set<() => void>>()
  // above every token of a removed row, so that a token never comes back
  let floor = 0

  const now = <A>(use: (now: number) => A): Effect.Effect<A> =>
    Effect.withFiber((fiber) => Effect.succeed(use(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe())))

  const wake = (key: string) => watchers.get(key)?.forEach((notify) => notify())

  const step = <Item extends { readonly key: string }, Reply>(
    transition: (record: EffectRecord | undefined, item: Item, now: number) => Step<Reply>,
    wakes: boolean
  ) =>
  (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>> =>
    now((at) =>
      items.map((item) => {
        const [next, reply] = transition(rows.get(item.key), item, at)
        if (next !== undefined) {
          rows.set(item.key, next)
          if (wakes) wake(item.key)
        }
        return reply
      })
    )

  const drop = (record: EffectRecord): void => {
    floor = Math.max(floor, record.token)
    rows.delete(record.key)
    wake(record.key)
  }

  return {
    batch: false,
    claim: step((record, request: Record.ClaimRequest, at) => Record.claim(record, request, at, floor + 1), false),
    complete: step(Record.complete, true),
    release: step(Record.release, true),
    renew: step(Record.renew, false),
    get: (key) => Effect.sync(() => rows.get(key)),
    list: (filter = {}) => Stream.suspend(() => Stream.fromIterable([...rows.values()].filter(matches(filter)))),
    resolve: (key, resolution) =>
      Effect.flatMap(encodeJson(key, resolution), (json) =>
        now((at) => {
          const [next, reply] = Record.resolve(rows.get(key), resolution, json, at)
          if (next !== undefined) {
            rows.set(key, next)
            wake(key)
          }
          return reply
        })),
    remove: (key) =>
      Effect.sync(() => {
        const record = rows.get(key)
        if (record !== undefined) drop(record)
        return record !== undefined
      }),
    prune: ({ olderThan }) =>
      now((at) => {
        const before = at - Duration.toMillis(olderThan)
        const old = [...rows.values()].filter((record) => Record.isPrunable(record, before))
        old.forEach(drop)
        return old.length
      }),
    changes: (key) =>
      Stream.callback<void, EffectStoreError>((queue) =>
        Effect.acquireRelease(
          Effect.sync(() => {
            const notify = () => void Queue.offerUnsafe(queue, undefined)
            const set = watchers.get(key) ?? new Set()
            watchers.set(key, set.add(notify))
            return { notify, set }
          }),
          ({ notify, set }) =>
            Effect.sync(() => {
              set.delete(notify)
              if (set.size === 0) watchers.delete(key)
            })
        )
      )
  }
})
