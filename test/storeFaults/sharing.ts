/** What can be wrong with batches, and with waking whoever waits. */
import type { IEffectStore } from "chamvi-effect"
import { Effect, Stream } from "effect"
import type { ClaimRequest } from "../../src/EffectRecord.ts"
import type { Fault, Faults } from "./fault.ts"

/** Watchers who are woken by everything but this operation. */
const asleep = (name: "complete" | "release" | "resolve" | "remove"): Fault => (store) => {
  const unheard = new Map<string, number>()
  const count = (key: string) => unheard.set(key, (unheard.get(key) ?? 0) + 1)
  const muted: Pick<IEffectStore, "complete" | "release" | "resolve" | "remove"> = {
    complete: (items) => {
      items.forEach(({ key }) => count(key))
      return store.complete(items)
    },
    release: (items) => {
      items.forEach(({ key }) => count(key))
      return store.release(items)
    },
    resolve: (key, resolution) => {
      count(key)
      return store.resolve(key, resolution)
    },
    remove: (key) => {
      count(key)
      return store.remove(key)
    }
  }
  return {
    ...store,
    [name]: muted[name],
    changes: (key) =>
      Stream.suspend(() => {
        let heard = unheard.get(key) ?? 0
        return Stream.filter(store.changes(key), () => {
          const now = unheard.get(key) ?? 0
          const wakes = now === heard
          heard = now
          return wakes
        })
      })
  }
}

const oneWatcher: Fault = (store) => {
  const watched = new Set<string>()
  return {
    ...store,
    changes: (key) =>
      Stream.suspend(() => {
        if (watched.has(key)) return Stream.never
        watched.add(key)
        return store.changes(key)
      })
  }
}

const asked = (change: (requests: ReadonlyArray<ClaimRequest>) => ReadonlyArray<ClaimRequest>): Fault => (store) => ({
  ...store,
  claim: (requests) => store.claim(change(requests))
})

export const sharing: Faults = {
  "an empty batch is answered with nothing": {
    "an empty batch with an answer": (store) => ({
      ...store,
      renew: (items) => Effect.map(store.renew(items), (found) => items.length === 0 ? ["lost"] : found)
    })
  },
  "a batch is answered in order, each item by its own key's rules": {
    "grants before refusals": (store) => ({
      ...store,
      claim: (requests) =>
        Effect.map(store.claim(requests), (replies) =>
          replies.some(({ _tag }) => _tag === "Recorded")
            ? [...replies].sort((one, other) => one._tag < other._tag ? -1 : one._tag > other._tag ? 1 : 0)
            : replies)
    }),
    "a batch that is refused as a whole": (store) => ({
      ...store,
      complete: (items) =>
        Effect.map(store.complete(items), (found) => found.includes("lost") ? found.map(() => "lost") : found)
    }),
    "a batch of which one item is lost": (store) => ({
      ...store,
      release: (items) =>
        Effect.map(
          store.release(items.slice(0, Math.max(1, items.length - 1))),
          (found) => items.map((_, index) => found[index] ?? "ok")
        )
    })
  },
  "of two claims of one key in one batch one is granted": {
    "a batch that asks once for each key": (store) => ({
      ...store,
      claim: (requests) => {
        const keys = [...new Set(requests.map(({ key }) => key))]
        return Effect.map(
          store.claim(keys.map((key) => requests.find((request) => request.key === key)!)),
          (replies) => requests.map(({ key }) => replies[keys.indexOf(key)]!)
        )
      }
    })
  },
  "a claim repeated within one batch is one claim": {
    "a batch that does not know its own claims": asked((requests) =>
      requests.map((request, index) =>
        requests.findIndex(({ claimId }) => claimId === request.claimId) < index
          ? { ...request, claimId: `${request.claimId} again` }
          : request
      )
    )
  },
  "a large batch is answered whole": {
    "a batch that is cut": (store) => ({ ...store, claim: (requests) => store.claim(requests.slice(0, 256)) }),
    "a batch of which the rest is only said": (store) => ({
      ...store,
      complete: (items) =>
        Effect.map(store.complete(items.slice(0, 256)), (found) => items.map((_, index) => found[index] ?? "ok"))
    })
  },
  "a record wakes all who wait for the key": { "a record that wakes nobody": asleep("complete") },
  "a release wakes all who wait for the key": {
    "a release that wakes nobody": asleep("release"),
    "a key that has one watcher": oneWatcher
  },
  "a resolution wakes all who wait for the key": { "a resolution that wakes nobody": asleep("resolve") },
  "a removal wakes all who wait for the key": { "a removal that wakes nobody": asleep("remove") }
}
