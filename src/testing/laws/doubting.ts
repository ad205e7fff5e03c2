/** What a key says about its earlier attempts. */
import { Effect } from "effect"
import type { Doubt, Verdict } from "../../EffectRecord.ts"
import { EffectResolution } from "../../EffectResolution.ts"
import { is, law, type Laws, resultOf, same, type Subject } from "../law.ts"

/** A claim of a key whose earlier attempts left this doubt. */
const claimWith = Effect.fnUntraced(function*({ advance, claim, held, release }: Subject, doubt: Doubt) {
  const first = yield* held({ fingerprint: "first" })
  yield* release({ ...first, verdict: doubt === "none" ? "clean" : doubt })
  yield* advance(100)
  const second = yield* is("the next claim", yield* claim({ key: first.key, fingerprint: "second" }), "Claimed")
  return { ...second, key: first.key }
})

const doubts: ReadonlyArray<Doubt> = ["none", "tried", "inDoubt"]

/** Before, verdict, and what is left, without and with a believed "no" of the remote. */
const table: ReadonlyArray<readonly [before: Doubt, verdict: Verdict, after: Doubt, cleared: Doubt]> = [
  ["none", "clean", "none", "none"],
  ["none", "tried", "tried", "tried"],
  ["none", "inDoubt", "inDoubt", "inDoubt"],
  ["tried", "clean", "tried", "none"],
  ["tried", "tried", "tried", "tried"],
  ["tried", "inDoubt", "inDoubt", "inDoubt"],
  ["inDoubt", "clean", "inDoubt", "none"],
  ["inDoubt", "tried", "inDoubt", "tried"],
  ["inDoubt", "inDoubt", "inDoubt", "inDoubt"]
]

const verdicts = Object.fromEntries(
  table.flatMap(([before, verdict, after, cleared]) =>
    ([[false, after], [true, cleared]] as const).map(([clears, expected]) => [
      `a key that was "${before}", released "${verdict}"${clears ? " after a believed no" : ""}, is "${expected}"`,
      law(function*(subject) {
        const { key, token } = yield* claimWith(subject, before)
        yield* same("release", yield* subject.release({ key, token, verdict, cleared: clears }), "ok")
        const { doubt, leaseEnd, status, updatedAt } = yield* subject.row(key)
        yield* same("the row", [status, doubt, leaseEnd], ["released", expected, updatedAt])
        const next = yield* is("the next claim", yield* subject.claim({ key }), "Claimed")
        yield* same("the next claim", [next.doubt, next.takenOver, next.attempt], [expected, false, 3])
        yield* same("whether it hears of an earlier attempt", next.earlier !== undefined, expected !== "none")
      })
    ])
  )
)

const claims = Object.fromEntries(doubts.map((doubt) => [
  `a claim of a key that is "${doubt}" says ${
    doubt === "none" ? "nothing of earlier attempts" : "when the earlier attempt was seen, and its input"
  }`,
  law(function*(subject) {
    const grant = yield* claimWith(subject, doubt)
    yield* same("the claim", [grant.doubt, grant.takenOver, grant.earlier], [
      doubt,
      false,
      doubt === "none" ? undefined : { age: 100, fingerprint: "first" }
    ])
  })
]))

export const doubting: Laws = {
  ...verdicts,
  ...claims,

  "a claim that only looked leaves no trace: the row goes on speaking of the attempt before": law(function*(subject) {
    const { key, token } = yield* claimWith(subject, "inDoubt")
    yield* subject.advance(50)
    yield* subject.release({ key, token, verdict: "clean" })
    yield* subject.advance(50)
    const next = yield* is("the next claim", yield* subject.claim({ key, fingerprint: "third" }), "Claimed")
    yield* same("the earlier attempt", next.earlier, { age: 200, fingerprint: "first" })
  }),

  "an attempt that failed is the one that the row speaks of": law(function*(subject) {
    const { key, token } = yield* claimWith(subject, "tried")
    yield* subject.advance(50)
    yield* subject.release({ key, token, verdict: "tried" })
    yield* subject.advance(70)
    const next = yield* is("the next claim", yield* subject.claim({ key, fingerprint: "third" }), "Claimed")
    yield* same("the earlier attempt", next.earlier, { age: 70, fingerprint: "second" })
  }),

  "an attempt that failed on a key in doubt leaves the row speaking of the one in doubt": law(function*(subject) {
    const { key, token } = yield* claimWith(subject, "inDoubt")
    yield* subject.advance(50)
    yield* subject.release({ key, token, verdict: "tried" })
    yield* subject.advance(50)
    const next = yield* is("the next claim", yield* subject.claim({ key, fingerprint: "third" }), "Claimed")
    yield* same("the next claim", next.doubt, "inDoubt")
    yield* same("the earlier attempt", next.earlier, { age: 200, fingerprint: "first" })
  }),

  "a claim that was cut off is in doubt, whatever was before": law(function*(subject) {
    for (const doubt of doubts) {
      const { key } = yield* claimWith(subject, doubt)
      yield* subject.advance(1_000)
      const next = yield* is("the takeover", yield* subject.claim({ key }), "Claimed")
      yield* same("the takeover", [next.doubt, next.takenOver], ["inDoubt", true])
      yield* same("the earlier attempt", next.earlier, { age: 0, fingerprint: "second" })
    }
  }),

  "a record ends every doubt": law(function*(subject) {
    const { key, token } = yield* claimWith(subject, "inDoubt")
    yield* subject.complete({ key, token })
    const { doubt, earlier, status } = yield* subject.row(key)
    yield* same("the row", [status, doubt, earlier], ["recorded", "none", undefined])
  }),

  "a key without a row cannot be resolved": law(function*({ fresh, store }) {
    const key = fresh()
    yield* same("resolve", yield* store.resolve(key, EffectResolution.notApplied), "missing")
    yield* same("the row", yield* store.get(key), undefined)
  }),

  "a live claim cannot be resolved": law(function*({ advance, held, row, store }) {
    const { key } = yield* held({ lease: 1_000 })
    yield* advance(999)
    const before = yield* row(key)
    for (const verdict of [EffectResolution.applied(1), EffectResolution.notApplied, EffectResolution.unknown]) {
      yield* same("resolve", yield* store.resolve(key, verdict), "held")
    }
    yield* same("the row", yield* row(key), before)
  }),

  "a claim whose lease is over can be resolved, and its holder finds it lost": law(
    function*({ advance, claim, complete, held, release, renew, store }) {
      const { key, token } = yield* held({ lease: 1_000 })
      yield* advance(1_000)
      yield* same("resolve", yield* store.resolve(key, EffectResolution.notApplied), "ok")
      yield* same("renew", yield* renew(key, token, 1_000), "lost")
      yield* same("complete", yield* complete({ key, token }), "lost")
      yield* same("release", yield* release({ key, token }), "lost")
      const next = yield* is("the next claim", yield* claim({ key }), "Claimed")
      yield* same("the next claim", [next.doubt, next.takenOver, next.earlier], ["none", false, undefined])
    }
  ),

  "a holder that records after a person resolved its key finds it lost, and the person's result stands": law(
    function*({ advance, complete, held, row, store }) {
      const { key, token } = yield* held({ lease: 10 })
      yield* advance(10)
      yield* same("resolve", yield* store.resolve(key, EffectResolution.applied("theirs")), "ok")
      yield* same("complete", yield* complete({ key, token, result: resultOf("mine") }), "lost")
      yield* same("the result", (yield* row(key)).result, resultOf("theirs"))
    }
  ),

  "a key resolved as applied with a result is recorded with it, null and undefined too": law(function*(subject) {
    for (const value of [{ id: 7 }, null, false, 0, "", undefined]) {
      const { key, token } = yield* claimWith(subject, "inDoubt")
      yield* subject.release({ key, token, verdict: "inDoubt" })
      yield* same("resolve", yield* subject.store.resolve(key, EffectResolution.applied(value)), "ok")
      const reply = yield* is("the next claim", yield* subject.claim({ key }), "Recorded")
      const expected = value === undefined ? `{"undefined":true}` : resultOf(value)
      yield* same("the record", [reply.result, reply.outcome, reply.fingerprint], [expected, "resolved", "second"])
    }
  }),

  "a key resolved as applied without a result is recorded, and can be given the result later, once": law(
    function*({ claim, held, release, store }) {
      const first = yield* held()
      yield* release({ ...first, verdict: "inDoubt" })
      const { key } = first
      yield* same("resolve", yield* store.resolve(key, EffectResolution.applied()), "ok")
      const without = yield* is("the next claim", yield* claim({ key }), "Recorded")
      yield* same("the record", without.result.startsWith(`{"unavailable":`), true)
      yield* same("again without", yield* store.resolve(key, EffectResolution.applied()), "recorded")
      yield* same("with a result", yield* store.resolve(key, EffectResolution.applied("late")), "ok")
      yield* same("with another", yield* store.resolve(key, EffectResolution.applied("later")), "recorded")
      const given = yield* is("the claim after it", yield* claim({ key }), "Recorded")
      yield* same("the record", [given.result, given.outcome], [resultOf("late"), "resolved"])
    }
  ),

  "a record is never resolved otherwise": law(function*({ complete, held, row, store }) {
    const { key, token } = yield* held()
    yield* complete({ key, token })
    const before = yield* row(key)
    for (const verdict of [EffectResolution.applied(1), EffectResolution.notApplied, EffectResolution.unknown]) {
      yield* same("resolve", yield* store.resolve(key, verdict), "recorded")
    }
    yield* same("the row", yield* row(key), before)
  }),

  "a key resolved as unknown is in doubt": law(function*({ claim, held, release, store }) {
    const first = yield* held({ fingerprint: "first" })
    yield* release({ ...first, verdict: "tried" })
    yield* same("resolve", yield* store.resolve(first.key, EffectResolution.unknown), "ok")
    const next = yield* is("the next claim", yield* claim({ key: first.key }), "Claimed")
    yield* same("the next claim", [next.doubt, next.earlier?.fingerprint], ["inDoubt", "first"])
  }),

  "a key resolved as unknown after its holder's lease speaks of that holder, who may have lived until the lease ended":
    law(
      function*({ advance, claim, held, row, store }) {
        const { key } = yield* held({ lease: 1_000, fingerprint: "first" })
        yield* advance(1_500)
        yield* same("resolve", yield* store.resolve(key, EffectResolution.unknown), "ok")
        const { createdAt, seenAt } = yield* row(key)
        yield* same("the row's last sign of life, since the claim", seenAt - createdAt, 1_000)
        yield* advance(100)
        const next = yield* is("the next claim", yield* claim({ key, fingerprint: "second" }), "Claimed")
        yield* same("the next claim", [next.doubt, next.takenOver, next.earlier], ["inDoubt", false, {
          age: 600,
          fingerprint: "first"
        }])
      }
    ),

  "a result that JSON cannot carry is not taken for a resolution": law(function*({ held, release, row, store }) {
    const first = yield* held()
    yield* release({ ...first, verdict: "inDoubt" })
    const before = yield* row(first.key)
    const reply = yield* Effect.result(store.resolve(first.key, EffectResolution.applied(10n)))
    yield* same("resolve", [reply._tag, reply._tag === "Failure" && reply.failure._tag], [
      "Failure",
      "EffectStoreError"
    ])
    yield* same("the row", yield* row(first.key), before)
  })
}
