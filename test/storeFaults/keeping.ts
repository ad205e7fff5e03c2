/** What can be wrong with what a store keeps, finds and forgets. */
import { Duration, Effect, Stream } from "effect"
import { asks, type Fault, type Faults, onlySays, renamed, replace, shows } from "./fault.ts"

const storing = (change: (result: string) => string): Fault =>
  asks("complete", ({ result }) => ({ result: change(result) }))

const insteadOf = (text: string, other: string): Fault => storing((result) => result === text ? other : result)

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const pruning = (change: (olderThan: number) => number): Fault => (store) => ({
  ...store,
  prune: ({ olderThan }) => store.prune({ olderThan: change(Duration.toMillis(olderThan)) })
})

export const keeping: Faults = {
  "the result undefined comes back as it was recorded": {
    "an undefined that is null": insteadOf(`{"undefined":true}`, `{"value":null}`)
  },
  "the result null comes back as it was recorded": {
    "a null that is undefined": insteadOf(`{"value":null}`, `{"undefined":true}`)
  },
  "the result false comes back as it was recorded": {
    "a false that is no result": insteadOf(`{"value":false}`, `{"undefined":true}`)
  },
  "the result 0 comes back as it was recorded": { "a zero that is a text": insteadOf(`{"value":0}`, `{"value":"0"}`) },
  "an empty text comes back as it was recorded": {
    "an empty text that is null": insteadOf(`{"value":""}`, `{"value":null}`)
  },
  "quotes, backslashes and line breaks comes back as it was recorded": {
    "quotes that are doubled": storing((result) => result.replaceAll("'", "''"))
  },
  "every kind of character comes back as it was recorded": {
    "a byte order mark that is dropped": storing((result) => result.replaceAll("\ufeff", "")),
    "characters of which each is one unit": storing((result) => result.replaceAll(/[^\u0000-\uffff]\u2028/gu, "?"))
  },
  "a text that is no JSON comes back as it was recorded": {
    "a column that must hold JSON": storing((result) => isJson(result) ? result : "null")
  },
  "a million characters comes back as it was recorded": {
    "a result that is cut": storing((result) => result.slice(0, 65_535))
  },
  "keys that differ in case are different keys": { "keys without case": renamed((key) => key.toLowerCase()) },
  "keys that differ in spaces around are different keys": { "keys that are trimmed": renamed((key) => key.trim()) },
  "keys that differ in normal forms are different keys": {
    "keys in normal form": renamed((key) => key.normalize("NFC"))
  },
  "keys that differ in control characters are different keys": {
    "keys that end at NUL": renamed((key) => key.split("\u0000")[0]!)
  },
  "keys that differ in numbers are different keys": {
    "keys that are read as numbers": renamed((key) => key.replace(/^0+(?=\d)/, ""))
  },
  "keys that differ in words of databases are different keys": {
    "keys that are patterns": renamed((key) => key.replaceAll("_", "%")),
    "keys that lose their quotes": renamed((key) => key.replaceAll("'", ""))
  },
  "keys that differ in width and shape are different keys": {
    "keys that sort alike": renamed((key) => key.replaceAll("ß", "ss")),
    "keys without variants": renamed((key) => key.replaceAll("\ufe0f", ""))
  },
  "keys that differ in length are different keys": { "keys that are cut": renamed((key) => key.slice(0, 65_535)) },
  "tools, runs, owners and fingerprints are kept verbatim": {
    "owners that are trimmed": asks("claim", ({ owner }) => ({ owner: owner.trim() })),
    "runs that end at NUL": asks("claim", ({ runId }) => ({ runId: runId.split("\u0000")[0]! })),
    "claimIds in another encoding": asks("claim", ({ claimId }) => ({ claimId: claimId.replaceAll("é", "?") })),
    "tools without case": shows(({ tool }) => tool.includes("\u0000") ? { tool: tool.toUpperCase() } : {}),
    "fingerprints that are cut": shows(({ fingerprint }) => ({ fingerprint: fingerprint.slice(0, 12) }))
  },
  "list answers the rows in the order of their creation, whatever changed since": {
    "a list in the order of changes": (store) => ({
      ...store,
      list: (filter) =>
        Stream.unwrap(
          Effect.map(Effect.orDie(Stream.runCollect(store.list(filter))), (rows) =>
            Stream.fromIterable([...rows].sort((one, other) => one.updatedAt - other.updatedAt)))
        )
    })
  },
  "list answers hundreds of rows once each": {
    "a list of one page": (store) => ({ ...store, list: (filter) => Stream.take(store.list(filter), 100) }),
    "pages that overlap": (store) => ({
      ...store,
      list: (filter) =>
        Stream.unwrap(
          Effect.map(Effect.orDie(Stream.runCollect(store.list(filter))), (rows) =>
            Stream.fromIterable([...rows.slice(0, 100), ...rows.slice(99)]))
        )
    })
  },
  "list answers the rows that match every part of the filter": {
    "a list since a time that is not in it": (store) => ({
      ...store,
      list: ({ updatedSince, ...filter } = {}) =>
        store.list({ ...filter, updatedSince: updatedSince === undefined ? undefined : updatedSince + 1 })
    }),
    "a list before a time that is in it": (store) => ({
      ...store,
      list: ({ updatedBefore, ...filter } = {}) =>
        store.list({ ...filter, updatedBefore: updatedBefore === undefined ? undefined : updatedBefore + 1 })
    }),
    "a list of every tool": (store) => ({ ...store, list: (filter) => store.list({ ...filter, tool: undefined }) }),
    "a list of every status": (store) => ({ ...store, list: (filter) => store.list({ ...filter, status: undefined }) }),
    "a list of every doubt": (store) => ({ ...store, list: (filter) => store.list({ ...filter, doubt: undefined }) }),
    "a list of every run": (store) => ({ ...store, list: (filter) => store.list({ ...filter, runId: undefined }) })
  },
  "a removed key is new": {
    "a removal that removes nothing": (store) => ({
      ...store,
      remove: (key) => Effect.map(Effect.orDie(store.get(key)), (row) => row !== undefined)
    }),
    "a removal that always says it was one": (store) => ({
      ...store,
      remove: (key) => Effect.as(store.remove(key), true)
    })
  },
  "prune removes what is recorded or released and old, exactly": {
    "a prune that is a millisecond early": pruning((olderThan) => Math.max(0, olderThan - 1)),
    "a prune that is a millisecond late": pruning((olderThan) => olderThan > 0 ? olderThan + 1 : 0),
    "a prune of keys in doubt": (store) => ({
      ...store,
      prune: (options) =>
        Effect.gen(function*() {
          const rows = yield* Effect.orDie(Stream.runCollect(store.list({ doubt: "inDoubt", status: "released" })))
          yield* Effect.forEach(rows, ({ key }) => store.remove(key))
          return yield* store.prune(options)
        })
    })
  },
  "prune answers how many rows it removed, also when they are hundreds": {
    "a prune that counts its last page": (store) => ({
      ...store,
      prune: (options) => Effect.map(store.prune(options), (removed) => removed > 100 ? removed % 100 : removed)
    })
  },
  "nothing is older than for ever": {
    "a for ever that is no number": pruning((olderThan) => Number.isFinite(olderThan) ? olderThan : 0)
  },
  "any sequence of operations is answered, and leaves the rows, as the plain model says": {
    "a released key that says it was taken over": shows(({ attempt, status }) =>
      status === "released" && attempt > 2 ? { takenOver: true } : {}
    ),
    "a third attempt that a stale token ends": replace(
      "release",
      (item, { row }, right) =>
        row !== undefined && row.attempt > 2 && item.token === row.token - 1
          ? right({ ...item, token: row.token })
          : right(item)
    ),
    "a renewal that is only said where there was a takeover": onlySays(
      "renew",
      (_, { row }) => row?.status === "held" && row.takenOver
    )
  }
}
