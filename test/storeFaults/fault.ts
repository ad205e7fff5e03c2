/**
 * The words in which faults are written. A fault takes a store that works, and answers one that is broken in one way.
 */
import type { IEffectStore } from "chamvi-effect"
import { Clock, Effect, Stream } from "effect"
import type {
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  EffectRecord,
  Fenced,
  ReleaseItem,
  RenewItem
} from "../../src/EffectRecord.ts"

export type Fault = (store: IEffectStore) => IEffectStore

/** Faults by the law that each of them breaks. */
export type Faults = Readonly<Record<string, Readonly<Record<string, Fault>>>>

interface Items {
  readonly claim: ClaimRequest
  readonly complete: CompleteItem
  readonly release: ReleaseItem
  readonly renew: RenewItem
}

interface Replies {
  readonly claim: ClaimReply
  readonly complete: Fenced
  readonly release: Fenced
  readonly renew: Fenced
}

/** What a fault may look at. */
export interface Sight {
  /** The row before the call. */
  readonly row: EffectRecord | undefined
  readonly now: number
}

type Batched = keyof Items

type Calls = {
  readonly [Name in Batched]: (
    items: ReadonlyArray<Items[Name]>
  ) => Effect.Effect<ReadonlyArray<Replies[Name]>, unknown>
}

type One<Name extends Batched> = (item: Items[Name]) => Effect.Effect<Replies[Name]>

/** Replaces one batched operation, item by item. */
export const replace = <Name extends Batched>(
  name: Name,
  body: (
    item: Items[Name],
    sight: Sight,
    right: One<Name>,
    store: IEffectStore
  ) => Effect.Effect<Replies[Name], unknown>
): Fault =>
(store) => {
  const call = (store as unknown as Calls)[name]
  const right: One<Name> = (item) => Effect.orDie(Effect.map(call([item]), ([reply]) => reply!))
  return {
    ...store,
    [name]: (items: ReadonlyArray<Items[Name]>) =>
      Effect.forEach(items, (item) =>
        Effect.flatMap(
          Effect.all([Effect.orDie(store.get(item.key)), Clock.currentTimeMillis]),
          ([row, now]) => Effect.orDie(body(item, { row, now }, right, store))
        ))
  }
}

/** Changes what is asked. */
export const asks = <Name extends Batched>(
  name: Name,
  change: (item: Items[Name], sight: Sight) => Partial<Items[Name]> | undefined
): Fault => replace(name, (item, sight, right) => right({ ...item, ...change(item, sight) }))

/** Changes what is answered; nothing else is wrong. */
export const answers = <Name extends Batched>(
  name: Name,
  change: (reply: Replies[Name], item: Items[Name], sight: Sight) => Replies[Name]
): Fault => replace(name, (item, sight, right) => Effect.map(right(item), (reply) => change(reply, item, sight)))

/** Changes what a grant says. */
export const grants = (
  change: (
    grant: Extract<ClaimReply, { readonly _tag: "Claimed" }>,
    request: ClaimRequest,
    sight: Sight
  ) => Partial<Extract<ClaimReply, { readonly _tag: "Claimed" }>> | undefined
): Fault =>
  answers(
    "claim",
    (reply, request, sight) => reply._tag === "Claimed" ? { ...reply, ...change(reply, request, sight) } : reply
  )

/** Answers "ok" without doing anything, where it says so. */
export const onlySays = (
  name: "complete" | "release" | "renew",
  where: (item: { readonly key: string; readonly token: number }, sight: Sight) => boolean
): Fault => replace(name, (item, sight, right) => where(item, sight) ? Effect.succeed("ok") : right(item))

/** Changes what is shown of rows. */
export const shows = (change: (row: EffectRecord) => Partial<EffectRecord> | undefined): Fault => (store) => ({
  ...store,
  get: (key) => Effect.map(store.get(key), (row) => row && { ...row, ...change(row) }),
  list: (filter) => Stream.map(store.list(filter), (row) => ({ ...row, ...change(row) }))
})

/** Replaces the resolution of a key. */
export const resolves = (
  body: (
    resolution: Parameters<IEffectStore["resolve"]>[1],
    sight: Sight,
    right: (resolution: Parameters<IEffectStore["resolve"]>[1]) => ReturnType<IEffectStore["resolve"]>
  ) => ReturnType<IEffectStore["resolve"]>
): Fault =>
(store) => ({
  ...store,
  resolve: (key, resolution) =>
    Effect.flatMap(
      Effect.all([Effect.orDie(store.get(key)), Clock.currentTimeMillis]),
      ([row, now]) => body(resolution, { row, now }, (other) => store.resolve(key, other))
    )
})

/** Files keys under other names. */
export const renamed = (change: (key: string) => string): Fault => (store) => {
  const items = <Item extends { readonly key: string }>(all: ReadonlyArray<Item>) =>
    all.map((item) => ({ ...item, key: change(item.key) }))
  return {
    ...store,
    claim: (requests) => store.claim(items(requests)),
    complete: (all) => store.complete(items(all)),
    release: (all) => store.release(items(all)),
    renew: (all) => store.renew(items(all)),
    get: (key) => store.get(change(key)),
    resolve: (key, resolution) => store.resolve(change(key), resolution),
    remove: (key) => store.remove(change(key)),
    changes: (key) => store.changes(change(key))
  }
}

/** Gives tokens other numbers, for the caller only. */
export const renumbered = (
  out: (token: number, key: string) => number,
  back: (token: number, key: string) => number
): Fault =>
(store) => {
  const items = <Item extends { readonly key: string; readonly token: number }>(all: ReadonlyArray<Item>) =>
    all.map((item) => ({ ...item, token: back(item.token, item.key) }))
  return shows((row) => ({ token: out(row.token, row.key) }))({
    ...store,
    claim: (requests) =>
      Effect.map(
        store.claim(requests),
        (replies) =>
          replies.map((reply, index) =>
            reply._tag === "Claimed" ? { ...reply, token: out(reply.token, requests[index]!.key) } : reply
          )
      ),
    complete: (all) => store.complete(items(all)),
    release: (all) => store.release(items(all)),
    renew: (all) => store.renew(items(all))
  })
}
