/** What a claim's holder can still do, and until when. */
import { Effect } from "effect"
import type { IEffectStore } from "../../store/IEffectStore.ts"
import { fail, is, law, type Laws, resultOf, same } from "../law.ts"

const grow = (tokens: ReadonlyArray<number>) =>
  tokens.every((token, index) => index === 0 || token > tokens[index - 1]!)
    ? Effect.void
    : fail("the tokens of a key, in the order of its claims", "growing numbers", tokens)

const forget: Readonly<Record<string, (store: IEffectStore, key: string) => Effect.Effect<unknown, unknown>>> = {
  removed: (store, key) => store.remove(key),
  pruned: (store) => store.prune({ olderThan: 0 })
}

export const fencing: Laws = {
  "a completed key is recorded": law(function*({ complete, held, row }) {
    const { key, token } = yield* held()
    yield* same("complete", yield* complete({ key, token, result: resultOf("x"), fingerprint: "other" }), "ok")
    const record = yield* row(key)
    yield* same(
      "the row",
      [record.status, record.doubt, record.result, record.outcome, record.fingerprint, record.token],
      ["recorded", "none", resultOf("x"), "executed", "other", token]
    )
  }),

  "complete, repeated with one token, answers ok and keeps the first record": law(function*({ complete, held, row }) {
    const { key, token } = yield* held()
    yield* same("complete", yield* complete({ key, token, result: resultOf(1) }), "ok")
    yield* same("complete again", yield* complete({ key, token, result: resultOf(2) }), "ok")
    yield* same("the result", (yield* row(key)).result, resultOf(1))
  }),

  "release, repeated with one token, answers ok and keeps the first verdict": law(function*({ held, release, row }) {
    const { key, token } = yield* held()
    yield* same("release", yield* release({ key, token, verdict: "tried" }), "ok")
    yield* same("release again", yield* release({ key, token, verdict: "inDoubt" }), "ok")
    yield* same("the doubt", (yield* row(key)).doubt, "tried")
  }),

  "a stale token can neither complete nor release nor renew, and changes nothing": law(
    function*({ advance, claim, complete, held, release, renew, row }) {
      const { key, token } = yield* held({ lease: 10 })
      yield* advance(10)
      yield* is("the takeover", yield* claim({ key }), "Claimed")
      const before = yield* row(key)
      yield* same("complete", yield* complete({ key, token }), "lost")
      yield* same("release", yield* release({ key, token }), "lost")
      yield* same("renew", yield* renew(key, token, 1_000), "lost")
      yield* same("the row", yield* row(key), before)
    }
  ),

  "a token that was never granted is lost, also on a key without a row": law(
    function*({ complete, fresh, held, release, renew, store }) {
      const { key, token } = yield* held()
      const absent = fresh()
      for (const item of [{ key, token: token + 1 }, { key: absent, token: 1 }]) {
        yield* same("complete", yield* complete(item), "lost")
        yield* same("release", yield* release(item), "lost")
        yield* same("renew", yield* renew(item.key, item.token, 1_000), "lost")
      }
      yield* same("the absent key", yield* store.get(absent), undefined)
    }
  ),

  "after a release its token can neither complete nor renew": law(
    function*({ complete, held, release, renew, row }) {
      const { key, token } = yield* held()
      yield* release({ key, token })
      yield* same("complete", yield* complete({ key, token }), "lost")
      yield* same("renew", yield* renew(key, token, 1_000), "lost")
      yield* same("the row", (yield* row(key)).status, "released")
    }
  ),

  "after a record its token can neither release nor renew": law(function*({ complete, held, release, renew, row }) {
    const { key, token } = yield* held()
    yield* complete({ key, token })
    yield* same("release", yield* release({ key, token, verdict: "inDoubt" }), "lost")
    yield* same("renew", yield* renew(key, token, 1_000), "lost")
    const { doubt, status } = yield* row(key)
    yield* same("the row", [status, doubt], ["recorded", "none"])
  }),

  "renew counts from now, not from the lease's end": law(function*({ advance, claim, held, renew }) {
    const { key, token } = yield* held({ lease: 1_000 })
    yield* advance(900)
    yield* same("renew", yield* renew(key, token, 1_000), "ok")
    yield* advance(999)
    yield* is("a claim before the new end", yield* claim({ key }), "Held")
    yield* advance(1)
    yield* is("a claim at the new end", yield* claim({ key }), "Claimed")
  }),

  "renew can shorten a lease": law(function*({ advance, claim, held, renew }) {
    const { key, token } = yield* held({ lease: 1_000 })
    yield* renew(key, token, 10)
    yield* advance(10)
    yield* is("a claim at the new end", yield* claim({ key }), "Claimed")
  }),

  "a claim whose lease is over can be renewed and completed while nobody took it": law(
    function*({ advance, claim, complete, held, renew }) {
      const { key, token } = yield* held({ lease: 10 })
      yield* advance(500)
      yield* same("renew", yield* renew(key, token, 1_000), "ok")
      yield* is("a claim after it", yield* claim({ key }), "Held")
      yield* advance(5_000)
      yield* same("complete", yield* complete({ key, token }), "ok")
    }
  ),

  "a heartbeat is a sign of life": law(function*({ advance, claim, held, renew }) {
    const { key, token } = yield* held({ lease: 10 })
    yield* advance(8)
    yield* renew(key, token, 10)
    yield* advance(13)
    const { earlier } = yield* is("the takeover", yield* claim({ key }), "Claimed")
    // it may have lived until the end of the lease that the heartbeat gave it
    yield* same("the earlier attempt", earlier?.age, 3)
  }),

  "tokens of a key grow over releases and takeovers": law(function*({ advance, claim, held, release }) {
    const first = yield* held({ lease: 10 })
    const { key } = first
    yield* release(first)
    const second = yield* is("after a release", yield* claim({ key, lease: 10 }), "Claimed")
    yield* advance(10)
    const third = yield* is("after a lease", yield* claim({ key }), "Claimed")
    yield* grow([first.token, second.token, third.token])
    yield* same("the attempt", third.attempt, 3)
  }),

  ...Object.fromEntries(
    Object.entries(forget).map(([how, remove]) => [
      `no token of a ${how} row comes back`,
      law(function*({ advance, claim, complete, held, release, row, store }) {
        const tokens: Array<number> = []
        const { key, token } = yield* held({ lease: 10 })
        tokens.push(token)
        yield* advance(10)
        const taken = yield* is("the takeover", yield* claim({ key }), "Claimed")
        tokens.push(taken.token)
        yield* release({ key, token: taken.token, cleared: true })
        for (let round = 0; round < 3; round++) {
          yield* advance(1)
          yield* Effect.orDie(remove(store, key))
          yield* same("the row", yield* store.get(key), undefined)
          yield* same("complete with a token of before", yield* complete({ key, token: tokens.at(-1)! }), "lost")
          const next = yield* is("the claim after it", yield* claim({ key }), "Claimed")
          yield* same("the first attempt", [next.attempt, next.doubt], [1, "none"])
          tokens.push(next.token)
          yield* same("an old token", yield* complete({ key, token }), "lost")
          yield* same("the new row", (yield* row(key)).status, "held")
          yield* release({ key, token: next.token })
        }
        yield* grow(tokens)
      })
    ])
  )
}
