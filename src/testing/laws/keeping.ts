/** What a store keeps, how it is found again, and what is forgotten. */
import { Effect, Stream } from "effect"
import type { ListFilter } from "../../store/IEffectStore.ts"
import { is, law, type Laws, resultOf, same, type Subject } from "../law.ts"

const results: Readonly<Record<string, string>> = {
  "the result undefined": `{"undefined":true}`,
  "the result null": resultOf(null),
  "the result false": resultOf(false),
  "the result 0": resultOf(0),
  "an empty text": resultOf(""),
  "quotes, backslashes and line breaks": resultOf(`"'\\\n\r\t\`\${}; DROP TABLE chamvi_effect --`),
  "every kind of character": resultOf("\u0000\u001fé€\u{1F600}\u2028\ufeff\uffff"),
  "a text that is no JSON": "not JSON \u{1F600} \u0001",
  "a million characters": resultOf("é".repeat(500_000) + "x".repeat(500_000))
}

const lookalikes: Readonly<Record<string, ReadonlyArray<string>>> = {
  "case": ["key", "KEY", "Key"],
  "spaces around": ["key", "key ", " key", "key\t", "key\n"],
  "normal forms": ["\u00e9", "e\u0301", "\u2126", "\u03a9", "\ufb01", "fi"],
  "control characters": ["a", "a\u0000", "a\u0000b", "a\u0001b", "\u0000"],
  "numbers": ["1", "1.0", "01", "1e0", "0x1"],
  "words of databases": ["null", "NULL", "undefined", "true", "%", "_", "a%", "'", "''", "\"", "\\", "?", "$1"],
  "width and shape": ["A", "\uff21", "\u0391", "\u0410", "ss", "ß", "\u{1F600}", "\u{1F600}\ufe0f"],
  "length": ["x".repeat(65_535), "x".repeat(65_536), `${"x".repeat(65_535)}y`]
}

const rowsOf = (subject: Subject, filter: ListFilter) =>
  Effect.map(Stream.runCollect(subject.store.list(filter)), (records) => records.map(({ key }) => key))

export const keeping: Laws = {
  ...Object.fromEntries(
    Object.entries(results).map(([what, result]) => [
      `${what} comes back as it was recorded`,
      law(function*({ claim, complete, held, row }) {
        const { key, token } = yield* held()
        yield* complete({ key, token, result })
        const reply = yield* is("the next claim", yield* claim({ key }), "Recorded")
        yield* same("the length of the result", reply.result.length, result.length)
        yield* same("the result", reply.result === result, true)
        yield* same("the row's result", (yield* row(key)).result === result, true)
      })
    ])
  ),

  ...Object.fromEntries(
    Object.entries(lookalikes).map(([what, keys]) => [
      `keys that differ in ${what} are different keys`,
      law(function*(subject) {
        const prefix = subject.fresh()
        const named = keys.flatMap((key) => [`${key}${prefix}`, `${prefix}${key}`]).map((key) =>
          key.length > 65_536 ? key.slice(key.length - 65_536) : key
        )
        const distinct = [...new Set(named)]
        for (const key of distinct) {
          const { token } = yield* is("the claim", yield* subject.claim({ key }), "Claimed")
          yield* subject.complete({ key, token, result: resultOf(key) })
        }
        for (const key of distinct) {
          const reply = yield* is("the claim after it", yield* subject.claim({ key }), "Recorded")
          yield* same("the result is the key's own", reply.result === resultOf(key), true)
          yield* same("the row's key", (yield* subject.row(key)).key === key, true)
        }
      })
    ])
  ),

  "tools, runs, owners and fingerprints are kept verbatim": law(function*({ held, row }) {
    const odd = `it's "odd"\\ \u0000 \u{1F600} é `
    const { key } = yield* held({ tool: odd, runId: odd, owner: odd, fingerprint: odd, claimId: odd })
    const { claimId, fingerprint, owner, runId, tool } = yield* row(key)
    yield* same("the row", [tool, runId, owner, fingerprint, claimId], [odd, odd, odd, odd, odd])
  }),

  "list answers the rows in the order of their creation, whatever changed since": law(function*(subject) {
    const runId = subject.fresh("run")
    const rows: Array<{ readonly key: string; readonly token: number }> = []
    for (let index = 0; index < 5; index++) rows.push(yield* subject.held({ runId }))
    yield* subject.advance(1)
    yield* subject.complete(rows[3]!)
    yield* subject.release(rows[0]!)
    yield* same("list", yield* rowsOf(subject, { runId }), rows.map(({ key }) => key))
    yield* subject.store.remove(rows[1]!.key)
    yield* subject.held({ runId, key: rows[1]!.key })
    yield* same("list", yield* rowsOf(subject, { runId }), [0, 2, 3, 4, 1].map((index) => rows[index]!.key))
  }),

  "list answers hundreds of rows once each": law(function*(subject) {
    const runId = subject.fresh("run")
    const rows = yield* Effect.forEach(Array.from({ length: 350 }), () => subject.held({ runId }))
    yield* same("list", yield* rowsOf(subject, { runId }), rows.map(({ key }) => key))
  }),

  "list answers the rows that match every part of the filter": law(function*(subject) {
    const { advance, complete, held, release, row } = subject
    const runId = subject.fresh("run")
    const at = (yield* row((yield* held()).key)).createdAt
    const a = yield* held({ runId, tool: "a" })
    yield* advance(10)
    const b = yield* held({ runId, tool: "b" })
    yield* complete(b)
    yield* advance(10)
    const c = yield* held({ runId, tool: "a" })
    yield* release({ ...c, verdict: "inDoubt" })
    const cases: ReadonlyArray<readonly [ListFilter, ReadonlyArray<string>]> = [
      [{}, [a.key, b.key, c.key]],
      [{ tool: "a" }, [a.key, c.key]],
      [{ tool: "A" }, []],
      [{ status: "held" }, [a.key]],
      [{ status: "recorded" }, [b.key]],
      [{ status: "released" }, [c.key]],
      [{ doubt: "inDoubt" }, [c.key]],
      [{ doubt: "none", tool: "a" }, [a.key]],
      [{ doubt: "tried" }, []],
      [{ updatedSince: at + 10 }, [b.key, c.key]],
      [{ updatedSince: at + 11 }, [c.key]],
      [{ updatedBefore: at + 10 }, [a.key]],
      [{ updatedSince: at + 1, updatedBefore: at + 20 }, [b.key]],
      [{ tool: "a", status: undefined, doubt: undefined }, [a.key, c.key]]
    ]
    for (const [filter, expected] of cases) {
      yield* same(`list(${JSON.stringify(filter)})`, yield* rowsOf(subject, { runId, ...filter }), expected)
    }
    yield* same("list of another run", yield* rowsOf(subject, { runId: subject.fresh() }), [])
  }),

  "a removed key is new": law(function*({ claim, complete, held, store }) {
    const { key, token } = yield* held({ tool: "one" })
    yield* complete({ key, token })
    yield* same("remove", yield* store.remove(key), true)
    yield* same("remove again", yield* store.remove(key), false)
    yield* same("get", yield* store.get(key), undefined)
    const reply = yield* is("the next claim, of another tool", yield* claim({ key, tool: "two" }), "Claimed")
    yield* same("the next claim", [reply.attempt, reply.doubt], [1, "none"])
  }),

  "prune removes what is recorded or released and old, exactly": law(function*(subject) {
    const { advance, complete, held, release, store } = subject
    const runId = subject.fresh("run")
    const claimed = () => held({ runId, lease: 1 })
    const old = yield* claimed()
    yield* complete(old)
    const tried = yield* claimed()
    yield* release({ ...tried, verdict: "tried" })
    const stillHeld = yield* claimed()
    const inDoubt = yield* claimed()
    yield* release({ ...inDoubt, verdict: "inDoubt" })
    yield* advance(1)
    const younger = yield* claimed()
    yield* complete(younger)
    yield* advance(1_000)
    // old and tried changed 1,001 milliseconds ago, which is more than 1,000; the younger one did so exactly then
    yield* store.prune({ olderThan: 1_000 })
    yield* same("what is left", yield* rowsOf(subject, { runId }), [stillHeld.key, inDoubt.key, younger.key])
    yield* advance(1)
    yield* same("prune", yield* store.prune({ olderThan: 1_000 }), 1)
    yield* same("what is left", yield* rowsOf(subject, { runId }), [stillHeld.key, inDoubt.key])
  }),

  "prune answers how many rows it removed, also when they are hundreds": law(
    function*({ advance, complete, held, store }) {
      yield* store.prune({ olderThan: 0 })
      yield* Effect.forEach(Array.from({ length: 250 }), () => Effect.flatMap(held(), complete))
      yield* advance(1)
      yield* same("prune", yield* store.prune({ olderThan: 0 }), 250)
      yield* same("prune again", yield* store.prune({ olderThan: 0 }), 0)
    }
  ),

  "nothing is older than for ever": law(function*({ advance, complete, held, row, store }) {
    const { key, token } = yield* held()
    yield* complete({ key, token })
    yield* advance(1_000_000)
    yield* same("prune", yield* store.prune({ olderThan: Infinity }), 0)
    yield* same("the row", (yield* row(key)).status, "recorded")
  })
}
