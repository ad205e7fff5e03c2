/** Batches, and whoever waits. */
import { Effect, Stream } from "effect"
import { EffectResolution } from "../../EffectResolution.ts"
import type { EffectStoreError } from "../../errors.ts"
import { fail, is, law, type Laws, resultOf, same, sleepReally, type Subject } from "../law.ts"

type Act = (subject: Subject, claim: { readonly key: string; readonly token: number }) => Effect.Effect<
  unknown,
  EffectStoreError
>

const acts: Readonly<Record<string, Act>> = {
  "a record": ({ complete }, claim) => complete(claim),
  "a release": ({ release }, claim) => release(claim),
  "a resolution": ({ advance, store }, { key }) =>
    Effect.andThen(advance(1_000), store.resolve(key, EffectResolution.applied(1))),
  "a removal": ({ store }, { key }) => store.remove(key)
}

export const sharing: Laws = {
  "an empty batch is answered with nothing": law(function*({ store }) {
    yield* same("claim", yield* store.claim([]), [])
    yield* same("complete", yield* store.complete([]), [])
    yield* same("release", yield* store.release([]), [])
    yield* same("renew", yield* store.renew([]), [])
  }),

  "a batch is answered in order, each item by its own key's rules": law(
    function*({ claim, complete, fresh, held, release, renew, store }) {
      const request = (key: string) => ({
        key,
        tool: "tool",
        runId: "run",
        owner: "owner",
        claimId: fresh("claim"),
        lease: 1_000,
        fingerprint: "fingerprint"
      })
      const recorded = yield* held()
      yield* complete({ ...recorded, result: resultOf("mine") })
      const taken = yield* held({ owner: "somebody" })
      const free = [fresh(), fresh()] as const
      const keys = [free[0], recorded.key, taken.key, free[1], recorded.key]
      const replies = yield* store.claim(keys.map(request))
      yield* same(
        "the replies",
        replies.map(({ _tag }) => _tag),
        ["Claimed", "Recorded", "Held", "Claimed", "Recorded"]
      )
      const tokens = new Map<string, number>()
      for (const index of [0, 3]) tokens.set(keys[index]!, (yield* is("a grant", replies[index]!, "Claimed")).token)
      const [one, two] = free.map((key) => ({ key, token: tokens.get(key)! }))
      const stale = { key: taken.key, token: taken.token + 1 }
      yield* same(
        "renew",
        yield* store.renew([one!, stale, two!].map((item) => ({ ...item, lease: 2_000 }))),
        ["ok", "lost", "ok"]
      )
      yield* same(
        "complete",
        yield* store.complete([stale, one!, recorded].map((item) => ({
          ...item,
          result: resultOf(item.key),
          outcome: "executed",
          fingerprint: "f"
        }))),
        ["lost", "ok", "ok"]
      )
      yield* same(
        "release",
        yield* store.release([one!, stale, two!].map((item) => ({ ...item, verdict: "clean", cleared: false }))),
        ["lost", "lost", "ok"]
      )
      const first = yield* is("the completed one", yield* claim({ key: one!.key }), "Recorded")
      yield* same("its result", first.result, resultOf(one!.key))
      const kept = yield* is("the one recorded before", yield* claim({ key: recorded.key }), "Recorded")
      yield* same("its result", kept.result, resultOf("mine"))
      yield* is("the released one", yield* claim({ key: two!.key }), "Claimed")
      yield* same("the one that is held", yield* renew(taken.key, taken.token, 1_000), "ok")
      yield* same("the released one", yield* release(two!), "lost")
    }
  ),

  "of two claims of one key in one batch one is granted": law(function*({ fresh, store }) {
    const key = fresh()
    const request = { key, tool: "tool", runId: "run", owner: "owner", lease: 1_000, fingerprint: "fingerprint" }
    const replies = yield* store.claim([
      { ...request, claimId: fresh("claim") },
      { ...request, claimId: fresh("claim") }
    ])
    yield* same("the replies", replies.map(({ _tag }) => _tag).toSorted(), ["Claimed", "Held"])
  }),

  "a claim repeated within one batch is one claim": law(function*({ fresh, row, store }) {
    const key = fresh()
    const request = { key, tool: "t", runId: "r", owner: "o", lease: 1_000, fingerprint: "f", claimId: fresh("claim") }
    const replies = yield* store.claim([request, request])
    const tokens = yield* Effect.forEach(replies, (reply) => is("each reply", reply, "Claimed"))
    yield* same("the tokens", tokens[0]?.token, tokens[1]?.token)
    yield* same("the attempt", (yield* row(key)).attempt, 1)
  }),

  "a large batch is answered whole": law(function*({ fresh, store }) {
    const requests = Array.from({ length: 500 }, () => ({
      key: fresh(),
      tool: "tool",
      runId: "run",
      owner: "owner",
      claimId: fresh("claim"),
      lease: 1_000,
      fingerprint: "fingerprint"
    }))
    const claims = yield* store.claim(requests)
    yield* same("the number of replies", claims.length, 500)
    const grants = yield* Effect.forEach(claims, (reply) => is("each reply", reply, "Claimed"))
    const done = yield* store.complete(requests.map(({ key }, index) => ({
      key,
      token: grants[index]!.token,
      result: resultOf(key),
      outcome: "executed" as const,
      fingerprint: "fingerprint"
    })))
    yield* same("the completions", done.filter((answer) => answer === "ok").length, 500)
    const replies = yield* store.claim(requests)
    yield* same("the number of replies", replies.length, 500)
    for (const [index, reply] of replies.entries()) {
      const recorded = yield* is("each record", reply, "Recorded")
      yield* same("each result", recorded.result, resultOf(requests[index]!.key))
    }
  }),

  ...Object.fromEntries(
    Object.entries(acts).map(([what, act]) => [
      `${what} wakes all who wait for the key`,
      law(function*(subject) {
        yield* Effect.scoped(Effect.gen(function*() {
          const claim = yield* subject.held({ lease: 1_000 })
          const woken = [0, 0]
          yield* Effect.forEach(woken, (_, index) =>
            Effect.forkScoped(
              Stream.runForEach(subject.store.changes(claim.key), () => Effect.sync(() => woken[index]!++)),
              { startImmediately: true }
            ))
          // until they surely watch; they may wake without a cause meanwhile
          yield* sleepReally(50)
          const before = [...woken]
          yield* act(subject, claim)
          for (let waited = 0; woken.some((count, index) => count === before[index]); waited += 10) {
            if (waited > 5_000) return yield* fail("wakings after the change", "at least one each", woken)
            yield* sleepReally(10)
          }
        }))
      })
    ])
  )
}
