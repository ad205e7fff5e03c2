/** What can be wrong with what a claim's holder can still do. */
import { Effect } from "effect"
import type { EffectRecord } from "../../src/EffectRecord.ts"
import { EffectResolution } from "../../src/EffectResolution.ts"
import { answers, asks, type Fault, type Faults, grants, onlySays, renumbered, replace, shows } from "./fault.ts"

const isAfter = (status: EffectRecord["status"]) =>
(
  { token }: { readonly token: number },
  { row }: { readonly row: EffectRecord | undefined }
) => row?.status === status && row.token === token

/** Tokens that begin again at 1 when a row begins again. */
const restarting = (after: "remove" | "prune"): Fault => (store) => {
  const forgotten = new Set<string>()
  const bases = new Map<string, number>()
  const known = new Set<string>()
  const base = (key: string) => bases.get(key) ?? 0
  const inner = renumbered((token, key) => token - base(key), (token, key) => token + base(key))({
    ...store,
    claim: (requests) =>
      Effect.map(store.claim(requests), (replies) => {
        for (const [index, reply] of replies.entries()) {
          const { key } = requests[index]!
          known.add(key)
          if (reply._tag === "Claimed" && forgotten.delete(key)) bases.set(key, reply.token - 1)
        }
        return replies
      })
  })
  return {
    ...inner,
    remove: (key) => {
      if (after === "remove") forgotten.add(key)
      return inner.remove(key)
    },
    prune: (options) =>
      Effect.tap(
        inner.prune(options),
        () =>
          after === "remove"
            ? Effect.void
            : Effect.forEach(known, (key) =>
              Effect.map(Effect.orDie(store.get(key)), (row) => {
                if (row === undefined) forgotten.add(key)
              }), { discard: true })
      )
  }
}

const overwriting: Fault = (store) => {
  const latest = new Map<string, string>()
  return shows(({ key, status }) => status === "recorded" ? { result: latest.get(key) } : {})({
    ...store,
    complete: (items) => {
      for (const { key, result } of items) latest.set(key, result)
      return store.complete(items)
    }
  })
}

export const fencing: Faults = {
  "a completed key is recorded": {
    "a record that keeps the input of the claim": asks(
      "complete",
      ({ fingerprint }, { row }) => fingerprint === "other" ? { fingerprint: row!.fingerprint } : {}
    ),
    "a record that is only said": onlySays("complete", isAfter("held"))
  },
  "complete, repeated with one token, answers ok and keeps the first record": {
    "a repeated record that is lost": answers(
      "complete",
      (answer, item, sight) => isAfter("recorded")(item, sight) ? "lost" : answer
    ),
    "a repeated record that is written again": overwriting
  },
  "release, repeated with one token, answers ok and keeps the first verdict": {
    "a repeated release that is lost": answers(
      "release",
      (answer, item, sight) => isAfter("released")(item, sight) ? "lost" : answer
    ),
    "a repeated release with a verdict of its own": replace(
      "release",
      (item, sight, right, store) =>
        isAfter("released")(item, sight) && item.verdict === "inDoubt"
          ? Effect.as(store.resolve(item.key, EffectResolution.unknown), "ok" as const)
          : right(item)
    )
  },
  "a stale token can neither complete nor release nor renew, and changes nothing": {
    "a record that believes a stale token": asks(
      "complete",
      ({ token }, { row }) => row !== undefined && token < row.token ? { token: row.token } : {}
    ),
    "a release that believes a stale token": asks(
      "release",
      ({ token }, { row }) => row !== undefined && token < row.token ? { token: row.token } : {}
    ),
    "a renewal that believes a stale token": asks(
      "renew",
      ({ token }, { row }) => row !== undefined && token < row.token ? { token: row.token } : {}
    )
  },
  "a token that was never granted is lost, also on a key without a row": {
    "a key without a row that can be completed": onlySays("complete", (_, { row }) => row === undefined),
    "a key without a row that can be released": onlySays("release", (_, { row }) => row === undefined),
    "a key without a row that can be renewed": onlySays("renew", (_, { row }) => row === undefined),
    "a token of the future that is believed": asks(
      "complete",
      ({ token }, { row }) => row !== undefined && token > row.token ? { token: row.token } : {}
    )
  },
  "after a release its token can neither complete nor renew": {
    "a released claim that can be completed": onlySays("complete", isAfter("released")),
    "a released claim that can be renewed": onlySays("renew", isAfter("released"))
  },
  "after a record its token can neither release nor renew": {
    "a recorded claim that can be released": onlySays("release", isAfter("recorded")),
    "a recorded claim that can be renewed": onlySays("renew", isAfter("recorded"))
  },
  "renew counts from now, not from the lease's end": {
    "a renewal that is added to the lease": asks(
      "renew",
      ({ lease }, { now, row }) =>
        row !== undefined && row.leaseEnd > now && lease >= 1_000 ? { lease: lease + row.leaseEnd - now } : {}
    ),
    "a renewal that is only said": onlySays("renew", isAfter("held"))
  },
  "renew can shorten a lease": {
    "a renewal that can only extend": asks(
      "renew",
      ({ lease }, { now, row }) => row === undefined ? {} : { lease: Math.max(lease, row.leaseEnd - now) }
    )
  },
  "a claim whose lease is over can be renewed and completed while nobody took it": {
    "a renewal that is lost after the lease": replace(
      "renew",
      (item, { now, row }, right) => row !== undefined && row.leaseEnd <= now ? Effect.succeed("lost") : right(item)
    ),
    "a record that is lost after the lease": replace(
      "complete",
      (item, { now, row }, right) => row !== undefined && row.leaseEnd <= now ? Effect.succeed("lost") : right(item)
    )
  },
  "a heartbeat is a sign of life": {
    "a takeover that has not heard the heartbeat": grants(({ earlier, takenOver }, _, { row }) =>
      takenOver ? { earlier: { ...earlier!, age: earlier!.age + row!.seenAt - row!.createdAt } } : {}
    )
  },
  "tokens of a key grow over releases and takeovers": {
    "tokens that fall": renumbered((token) => 1_000_000 - token, (token) => 1_000_000 - token),
    "tokens in no order": renumbered((token) => token ^ 2, (token) => token ^ 2),
    "attempts that are not counted": grants(({ attempt }) => ({ attempt: Math.min(attempt, 2) }))
  },
  "no token of a removed row comes back": { "tokens that begin again after a removal": restarting("remove") },
  "no token of a pruned row comes back": { "tokens that begin again after a prune": restarting("prune") }
}
