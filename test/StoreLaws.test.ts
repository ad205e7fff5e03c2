/**
 * The laws themselves: each fault that is seeded into a store breaks a law, so that a store which passes does not have it.
 */
import { describe, expect, it } from "@effect/vitest"
import { EffectStore, type IEffectStore } from "chamvi-effect"
import { StoreClock, storeLaws } from "chamvi-effect/testing"
import { Duration, Effect, Exit, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ClaimReply } from "../src/EffectRecord.ts"

type Fault = (store: IEffectStore) => IEffectStore

const onClaim = (change: (reply: ClaimReply) => ClaimReply): Fault => (store) => ({
  ...store,
  claim: (requests) => Effect.map(store.claim(requests), (replies) => replies.map(change))
})

const onRequests = (change: (lease: number) => number): Fault => (store) => ({
  ...store,
  claim: (requests) => store.claim(requests.map((request) => ({ ...request, lease: change(request.lease) })))
})

const renamed = (change: (key: string) => string): Fault => (store) => {
  const items = <Item extends { readonly key: string }>(all: ReadonlyArray<Item>) =>
    all.map((item) => ({ ...item, key: change(item.key) }))
  return {
    ...store,
    claim: (requests) => store.claim(items(requests)),
    complete: (all) => store.complete(items(all)),
    release: (all) => store.release(items(all)),
    renew: (all) => store.renew(items(all)),
    get: (key) => store.get(change(key))
  }
}

const faults: Readonly<Record<string, Fault>> = {
  "a lease that ends a millisecond late": onRequests((lease) => lease + 1),
  "a lease that ends a millisecond early": onRequests((lease) => Math.max(0, lease - 1)),
  "a lease of zero that never ends": onRequests((lease) => lease === 0 ? 1e9 : lease),
  "a takeover that forgets the doubt": onClaim((reply) =>
    reply._tag === "Claimed" ? { ...reply, doubt: "none", earlier: undefined } : reply
  ),
  "a takeover that is not said": onClaim((reply) => reply._tag === "Claimed" ? { ...reply, takenOver: false } : reply),
  "one token for all claims": onClaim((reply) => reply._tag === "Claimed" ? { ...reply, token: 1 } : reply),
  "a remaining time that is a guess": onClaim((reply) => reply._tag === "Held" ? { ...reply, remaining: 5 } : reply),
  "a result that is trimmed": (store) => ({
    ...store,
    complete: (items) => store.complete(items.map((item) => ({ ...item, result: item.result.slice(0, 1_000) })))
  }),
  "a result that loses control characters": (store) => ({
    ...store,
    complete: (items) =>
      store.complete(items.map((item) => ({ ...item, result: item.result.replaceAll("\u0001", "") })))
  }),
  "a claim that ignores its tool": (store) => ({
    ...store,
    claim: (requests) => store.claim(requests.map((request) => ({ ...request, tool: "tool" })))
  }),
  "a claimId that is worth nothing": (store) => {
    let claims = 0
    return {
      ...store,
      claim: (requests) => store.claim(requests.map((request) => ({ ...request, claimId: `${++claims}` })))
    }
  },
  "stale tokens that are believed": (store) => ({
    ...store,
    complete: (items) =>
      Effect.forEach(
        items,
        (item) =>
          Effect.flatMap(Effect.orDie(store.get(item.key)), (row) =>
            Effect.map(store.complete([{ ...item, token: row?.token ?? item.token }]), ([answer]) => answer!))
      )
  }),
  "a release that is always clean": (store) => ({
    ...store,
    release: (items) => store.release(items.map((item) => ({ ...item, verdict: "clean" })))
  }),
  "a release that never clears": (store) => ({
    ...store,
    release: (items) => store.release(items.map((item) => ({ ...item, cleared: false })))
  }),
  "a renewal that is only said": (store) => ({
    ...store,
    renew: (items) => Effect.succeed(items.map(() => "ok" as const))
  }),
  "answers in another order": (store) => ({
    ...store,
    claim: (requests) => Effect.map(store.claim(requests), (replies) => replies.toReversed())
  }),
  "a batch of which one item is lost": (store) => ({
    ...store,
    complete: (items) =>
      Effect.map(
        store.complete(items.slice(0, Math.max(1, items.length - 1))),
        (answers) => items.map((_, index) => answers[index] ?? "ok")
      )
  }),
  "keys that are trimmed": renamed((key) => key.trim()),
  "keys without case": renamed((key) => key.toLowerCase()),
  "keys in normal form": renamed((key) => key.normalize("NFKC")),
  "keys that end at NUL": renamed((key) => key.split("\u0000")[0]!),
  "keys that are cut": renamed((key) => key.slice(0, 1_000)),
  "a removal that removes nothing": (store) => ({ ...store, remove: () => Effect.succeed(true) }),
  "a prune that removes nothing": (store) => ({ ...store, prune: () => Effect.succeed(0) }),
  "a prune that is a millisecond early": (store) => ({
    ...store,
    prune: ({ olderThan }) => store.prune({ olderThan: Math.max(0, Duration.toMillis(olderThan) - 1) })
  }),
  "a list that ends early": (store) => ({ ...store, list: (filter) => Stream.take(store.list(filter), 100) }),
  "a list that filters by nothing": (store) => ({ ...store, list: ({ runId } = {}) => store.list({ runId }) }),
  "waiters who are not woken": (store) => ({ ...store, changes: () => Stream.never }),
  "a resolution that is only said": (store) => ({ ...store, resolve: () => Effect.succeed("ok") })
}

/** The first law that the store breaks, each tried on a store of its own. */
const firstBroken = (fault: Fault) =>
  Effect.gen(function*() {
    const Store = Layer.mergeAll(
      Layer.effect(EffectStore, Effect.map(EffectStore, fault)).pipe(
        Layer.provide(Layer.fresh(EffectStore.layerMemory))
      ),
      Layer.succeed(StoreClock, { advance: (milliseconds) => TestClock.adjust(milliseconds) })
    )
    for (const [name, law] of Object.entries(storeLaws)) {
      if (Exit.isFailure(yield* Effect.exit(Effect.provide(law, Layer.fresh(Store))))) return name
    }
    return undefined
  })

describe("store laws", () => {
  it.effect("each seeded fault breaks a law", () =>
    Effect.gen(function*() {
      const unnoticed: Array<string> = []
      for (const [name, fault] of Object.entries(faults)) {
        if ((yield* firstBroken(fault)) === undefined) unnoticed.push(name)
      }
      expect(unnoticed).toEqual([])
    }), 120_000)

  it.effect("a store that only passes its calls on breaks none", () =>
    Effect.gen(function*() {
      expect(yield* firstBroken((store) => ({ ...store }))).toBe(undefined)
    }), 60_000)
})
