/**
 * A store as a user writes one: rows as JSON texts in a `Map` that stands for a key-value store, the rules of
 * `EffectRecord` for what becomes of them, and nothing of the library but what it publishes.
 */
import { EffectStore, EffectStoreError, type IEffectStore } from "chamvi-effect"
import * as EffectRecord from "chamvi-effect/EffectRecord"
import { Clock, Duration, Effect, Layer, PubSub, Stream } from "effect"

type Row = EffectRecord.EffectRecord

const make: Effect.Effect<IEffectStore> = Effect.gen(function*() {
  const texts = new Map<string, string>()
  const changes = yield* PubSub.unbounded<string>()
  /** Above every token of a key that was removed. */
  let firstToken = 1

  const read = (key: string): Row | undefined => {
    const text = texts.get(key)
    // JSON leaves out what is undefined
    return text === undefined
      ? undefined
      : { earlier: undefined, result: undefined, outcome: undefined, ...JSON.parse(text) }
  }
  const rows = () => [...texts.keys()].map((key) => read(key)!)
  const write = (row: Row) => {
    texts.set(row.key, JSON.stringify(row))
    PubSub.publishUnsafe(changes, row.key)
  }
  const remove = (row: Row) => {
    firstToken = Math.max(firstToken, row.token + 1)
    texts.delete(row.key)
    PubSub.publishUnsafe(changes, row.key)
  }

  const atomically = <Item extends { readonly key: string }, Reply>(
    change: (row: Row | undefined, item: Item, now: number) => readonly [Row | undefined, Reply]
  ) =>
  (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>> =>
    Effect.map(Clock.currentTimeMillis, (now) =>
      items.map((item) => {
        const [row, reply] = change(read(item.key), item, now)
        if (row !== undefined) write(row)
        return reply
      }))

  return {
    batch: false,
    claim: atomically((row, request: EffectRecord.ClaimRequest, now) =>
      EffectRecord.claim(row, request, now, firstToken)
    ),
    complete: atomically(EffectRecord.complete),
    release: atomically(EffectRecord.release),
    renew: atomically(EffectRecord.renew),
    get: (key) => Effect.sync(() => read(key)),
    list: (filter = {}) =>
      Stream.suspend(() =>
        Stream.fromIterable(
          rows().filter((row) =>
            (filter.runId ?? row.runId) === row.runId
            && (filter.tool ?? row.tool) === row.tool
            && (filter.status ?? row.status) === row.status
            && (filter.doubt ?? row.doubt) === row.doubt
            && row.updatedAt >= (filter.updatedSince ?? -Infinity)
            && row.updatedAt < (filter.updatedBefore ?? Infinity)
          )
        )
      ),
    resolve: (key, resolution) =>
      Effect.gen(function*() {
        const json = yield* Effect.try({
          try: () => resolution._tag === "Applied" ? JSON.stringify(resolution.result?.value) : undefined,
          catch: () => new EffectStoreError({ operation: "resolve", key, problem: "the result is not JSON" })
        })
        const [row, reply] = EffectRecord.resolve(read(key), resolution, json, yield* Clock.currentTimeMillis)
        if (row !== undefined) write(row)
        return reply
      }),
    remove: (key) =>
      Effect.sync(() => {
        const row = read(key)
        if (row !== undefined) remove(row)
        return row !== undefined
      }),
    prune: ({ olderThan }) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        const old = rows().filter((row) => EffectRecord.isPrunable(row, now - Duration.toMillis(olderThan)))
        old.forEach(remove)
        return old.length
      }),
    changes: (key) =>
      Stream.fromPubSub(changes).pipe(
        Stream.filter((changed) => changed === key),
        Stream.map(() => undefined)
      )
  }
})

export const OwnStore = { layer: EffectStore.layerOf(make) }

/** A store with a bug: renewing a claim that was lost passes for done. */
export const OptimisticStore = {
  layer: Layer.effect(
    EffectStore,
    Effect.map(make, (store): IEffectStore => ({
      ...store,
      renew: (items) => Effect.map(store.renew(items), (replies) => replies.map(() => "ok"))
    }))
  )
}
