/**
 * The row of a key as a state machine: every transition in every state, and its invariants over generated sequences.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution } from "chamvi-effect"
import { Option } from "effect"
import * as Row from "../src/EffectRecord.ts"
import * as RecordedResult from "../src/RecordedResult.ts"
import {
  claimedOf,
  completion,
  held,
  lease,
  now,
  recorded,
  release,
  released,
  replyOf,
  request,
  result,
  rowOf,
  second,
  states
} from "./support/rows.ts"

/** What each operation answers and leaves in each state: `reply`, or `reply -> status/doubt`. */
const outcomeIn = <A>(step: (row: Row.EffectRecord | undefined) => Row.Step<A>, describeReply: (reply: A) => string) =>
  Object.fromEntries(
    Object.entries(states).map(([name, row]) => {
      const before = structuredClone(row)
      const [next, reply] = step(row)
      assert.deepStrictEqual(row, before, "a transition leaves its row alone")
      return [
        name,
        next === undefined ? describeReply(reply) : `${describeReply(reply)} -> ${next.status}/${next.doubt}`
      ]
    })
  )

const fenced = (reply: Row.Fenced) => reply
const tagged = (reply: Row.ClaimReply) =>
  reply._tag === "Claimed"
    ? `Claimed ${reply.token}, ${reply.doubt}${reply.takenOver ? ", taken over" : ""}`
    : reply._tag

describe("EffectRecord", () => {
  it("claim, in every state", () => {
    assert.deepStrictEqual(outcomeIn((row) => Row.claim(row, second, now, 3), tagged), {
      absent: "Claimed 3, none -> held/none",
      held: "Held",
      expired: "Claimed 8, inDoubt, taken over -> held/inDoubt",
      "released, none": "Claimed 8, none -> held/none",
      "released, tried": "Claimed 8, tried -> held/tried",
      "released, inDoubt": "Claimed 8, inDoubt -> held/inDoubt",
      recorded: "Recorded",
      "recorded without a result": "Recorded"
    })
  })

  it("a repeated claimId, in every state: the same token while it is held", () => {
    assert.deepStrictEqual(outcomeIn((row) => Row.claim(row, request, now, 3), tagged), {
      absent: "Claimed 3, none -> held/none",
      held: "Claimed 7, none -> held/none",
      expired: "Claimed 7, none -> held/none",
      "released, none": "Claimed 8, none -> held/none",
      "released, tried": "Claimed 8, tried -> held/tried",
      "released, inDoubt": "Claimed 8, inDoubt -> held/inDoubt",
      recorded: "Recorded",
      "recorded without a result": "Recorded"
    })
    const again = Row.claim(held, request, now, 3)
    assert.deepStrictEqual(rowOf(again), { ...held, leaseEnd: now + lease, updatedAt: now, seenAt: now })
    const taken = rowOf(Row.claim({ ...held, leaseEnd: now }, second, now, 3))
    assert.deepStrictEqual(
      claimedOf(Row.claim(taken, second, now, 3)),
      claimedOf(Row.claim({ ...held, leaseEnd: now }, second, now, 3))
    )
  })

  it("another tool never gets a key, whatever its state, its claimId and its holder's health", () => {
    for (const dead of [false, true]) {
      const other = { ...request, tool: "label" }
      assert.deepStrictEqual(outcomeIn((row) => Row.claim(row, other, now, 3, dead), tagged), {
        absent: "Claimed 3, none -> held/none",
        held: "Held",
        expired: "Held",
        "released, none": "Held",
        "released, tried": "Held",
        "released, inDoubt": "Held",
        recorded: "Recorded",
        "recorded without a result": "Recorded"
      })
      for (const [row, remaining] of [[held, 500], [released.tried, 0], [{ ...held, leaseEnd: now }, 0]] as const) {
        assert.deepStrictEqual(replyOf(Row.claim(row, other, now, 3, dead)), {
          _tag: "Held",
          tool: "comment",
          owner: "process 1",
          remaining
        })
      }
      assert.include(replyOf(Row.claim(recorded, other, now, 3, dead)), { _tag: "Recorded", tool: "comment" })
    }
  })

  it("a first claim makes the row, and a recorded one answers the record", () => {
    assert.deepStrictEqual(held, {
      key: "k",
      tool: "comment",
      runId: "run-1",
      status: "held",
      doubt: "none",
      token: 7,
      claimId: "claim-1",
      attempt: 1,
      takenOver: false,
      owner: "process 1",
      leaseEnd: 1_100,
      fingerprint: "print-1",
      earlier: undefined,
      result: undefined,
      outcome: undefined,
      createdAt: 100,
      updatedAt: 100,
      seenAt: 100
    })
    assert.deepStrictEqual(replyOf(Row.claim(recorded, second, now, 3)), {
      _tag: "Recorded",
      tool: "comment",
      result,
      outcome: "executed",
      fingerprint: "print-1"
    })
  })

  it("a lease ends at its very millisecond, also one of no length", () => {
    const at = (time: number) => replyOf(Row.claim(held, second, time, 1))
    assert.deepStrictEqual(at(1_099), { _tag: "Held", tool: "comment", owner: "process 1", remaining: 1 })
    assert.strictEqual(at(1_100)._tag, "Claimed")
    assert.strictEqual(at(1_101)._tag, "Claimed")
    const none = rowOf(Row.claim(undefined, { ...request, lease: 0 }, 100, 1))
    assert.strictEqual(none.status, "held")
    assert.strictEqual(claimedOf(Row.claim(none, second, 100, 1)).doubt, "inDoubt")
    const renewed = rowOf(Row.renew(held, { key: "k", token: 7, lease: 50 }, 1_099))
    assert.strictEqual(replyOf(Row.claim(renewed, second, 1_148, 1))._tag, "Held")
    assert.strictEqual(replyOf(Row.claim(renewed, second, 1_149, 1))._tag, "Claimed")
  })

  it("every takeover is in doubt", () => {
    for (const [row, dead] of [[{ ...held, leaseEnd: now }, false], [held, true]] as const) {
      const step = Row.claim(row, second, now, 3, dead)
      assert.deepStrictEqual(claimedOf(step), {
        _tag: "Claimed",
        token: 8,
        attempt: 2,
        doubt: "inDoubt",
        takenOver: true,
        earlier: { age: 0, fingerprint: "print-1" }
      })
      assert.include(rowOf(step), {
        owner: "process 2",
        runId: "run-2",
        claimId: "claim-2",
        leaseEnd: 1_600,
        createdAt: 100
      })
    }
    // dead holders are of no interest where nobody holds the key
    assert.strictEqual(claimedOf(Row.claim(released.none, second, now, 3, true)).doubt, "none")
  })

  it("complete, in every state, by the newest token and by others", () => {
    const complete = (token: number) => outcomeIn((row) => Row.complete(row, { ...completion, token }, now), fenced)
    assert.deepStrictEqual(complete(7), {
      absent: "lost",
      held: "ok -> recorded/none",
      expired: "ok -> recorded/none",
      "released, none": "lost",
      "released, tried": "lost",
      "released, inDoubt": "lost",
      recorded: "ok",
      "recorded without a result": "ok"
    })
    for (const token of [6, 8]) assert.deepStrictEqual(new Set(Object.values(complete(token))), new Set(["lost"]))
  })

  it("release, in every state, by the newest token and by others", () => {
    const at = (token: number) =>
      outcomeIn((row) => Row.release(row, { key: "k", token, verdict: "tried", cleared: false }, now), fenced)
    assert.deepStrictEqual(at(7), {
      absent: "lost",
      held: "ok -> released/tried",
      expired: "ok -> released/tried",
      "released, none": "ok",
      "released, tried": "ok",
      "released, inDoubt": "ok",
      recorded: "lost",
      "recorded without a result": "lost"
    })
    for (const token of [6, 8]) assert.deepStrictEqual(new Set(Object.values(at(token))), new Set(["lost"]))
  })

  it("renew, in every state, by the newest token and by others", () => {
    const at = (token: number) => outcomeIn((row) => Row.renew(row, { key: "k", token, lease }, now), fenced)
    assert.deepStrictEqual(at(7), {
      absent: "lost",
      held: "ok -> held/none",
      expired: "ok -> held/none",
      "released, none": "lost",
      "released, tried": "lost",
      "released, inDoubt": "lost",
      recorded: "lost",
      "recorded without a result": "lost"
    })
    for (const token of [6, 8]) assert.deepStrictEqual(new Set(Object.values(at(token))), new Set(["lost"]))
    assert.deepStrictEqual(rowOf(Row.renew(held, { key: "k", token: 7, lease: 5 }, now)), {
      ...held,
      leaseEnd: 605,
      updatedAt: 600,
      seenAt: 600
    })
  })

  it("resolve, in every state", () => {
    const at = (resolution: EffectResolution, json?: string) =>
      outcomeIn((row) => Row.resolve(row, resolution, json, now), (reply) => reply)
    const unchanged = { absent: "missing", held: "held", recorded: "recorded" }
    const applied = { expired: "ok -> recorded/none", "released, none": "ok -> recorded/none" }
    assert.deepStrictEqual(at(EffectResolution.applied(1), "1"), {
      ...unchanged,
      ...applied,
      "released, tried": "ok -> recorded/none",
      "released, inDoubt": "ok -> recorded/none",
      "recorded without a result": "ok -> recorded/none"
    })
    assert.deepStrictEqual(at(EffectResolution.applied()), {
      ...unchanged,
      ...applied,
      "released, tried": "ok -> recorded/none",
      "released, inDoubt": "ok -> recorded/none",
      "recorded without a result": "recorded"
    })
    for (
      const [resolution, doubt] of [[EffectResolution.notApplied, "none"], [
        EffectResolution.unknown,
        "inDoubt"
      ]] as const
    ) {
      assert.deepStrictEqual(at(resolution), {
        ...unchanged,
        expired: `ok -> released/${doubt}`,
        "released, none": `ok -> released/${doubt}`,
        "released, tried": `ok -> released/${doubt}`,
        "released, inDoubt": `ok -> released/${doubt}`,
        "recorded without a result": "recorded"
      })
    }
  })

  it("a resolution records its result, also undefined, or that there is none", () => {
    const recordOf = (resolution: EffectResolution, json?: string) => {
      const row = rowOf(Row.resolve(released.inDoubt, resolution, json, now))
      assert.strictEqual(row.outcome, "resolved")
      return Option.getOrThrow(RecordedResult.parse(row.result!))
    }
    assert.deepStrictEqual(recordOf(EffectResolution.applied({ a: 1 }), "{\"a\":1}"), {
      _tag: "Value",
      value: { a: 1 }
    })
    assert.deepStrictEqual(recordOf(EffectResolution.applied(undefined), undefined), {
      _tag: "Value",
      value: undefined
    })
    assert.deepStrictEqual(recordOf(EffectResolution.applied()), {
      _tag: "Unavailable",
      reason: "the key was resolved as applied, without a result"
    })
  })

  it("a resolution ends a takeover, and needs no lease of a released key to be over", () => {
    const taken = rowOf(Row.claim({ ...held, leaseEnd: now }, second, now, 3))
    assert.isTrue(taken.takenOver)
    const later = taken.leaseEnd
    for (const resolution of [EffectResolution.applied(1), EffectResolution.notApplied, EffectResolution.unknown]) {
      assert.isFalse(rowOf(Row.resolve(taken, resolution, "1", later)).takenOver)
    }
    // a clock that was set back
    assert.strictEqual(replyOf(Row.resolve(released.inDoubt, EffectResolution.notApplied, undefined, 300)), "ok")
  })

  it("who thaws after a resolution finds its claim lost, and may not undo it", () => {
    const expired = { ...held, leaseEnd: now }
    for (const resolution of [EffectResolution.applied(1), EffectResolution.notApplied, EffectResolution.unknown]) {
      const row = rowOf(Row.resolve(expired, resolution, "1", now))
      assert.strictEqual(replyOf(Row.complete(row, { ...completion, token: 7 }, now)), "lost")
      assert.strictEqual(replyOf(Row.renew(row, { key: "k", token: 7, lease }, now)), "lost")
      assert.strictEqual(
        replyOf(Row.release(row, { key: "k", token: 7, verdict: "inDoubt", cleared: false }, now)),
        "lost"
      )
    }
    // it may have lived, and sent its request, until its lease was over
    assert.strictEqual(
      claimedOf(Row.claim(rowOf(Row.resolve(expired, EffectResolution.unknown, undefined, now)), second, 650, 3))
        .earlier?.age,
      650 - expired.leaseEnd
    )
  })

  it("only a record, a believed no or a resolution clears doubt", () => {
    const doubts = ["none", "tried", "inDoubt"] as const
    const after = (cleared: boolean) =>
      Object.fromEntries(doubts.map((before) => [
        before,
        (["clean", "tried", "inDoubt"] as const).map((verdict) => {
          const row = rowOf(Row.claim(released[before], second, now, 3))
          return release(row, verdict, cleared, 700).doubt
        })
      ]))
    assert.deepStrictEqual(after(false), {
      none: ["none", "tried", "inDoubt"],
      tried: ["tried", "tried", "inDoubt"],
      inDoubt: ["inDoubt", "inDoubt", "inDoubt"]
    })
    assert.deepStrictEqual(after(true), {
      none: ["none", "tried", "inDoubt"],
      tried: ["none", "tried", "inDoubt"],
      inDoubt: ["none", "tried", "inDoubt"]
    })
    for (const before of doubts) {
      const row = rowOf(Row.claim(released[before], second, now, 3))
      assert.strictEqual(row.doubt, before)
      assert.strictEqual(rowOf(Row.renew(row, { key: "k", token: 8, lease }, 700)).doubt, before)
      assert.strictEqual(rowOf(Row.complete(row, { ...completion, token: 8 }, 700)).doubt, "none")
    }
  })

  it("who only looked leaves the earlier attempt's last sign of life and input", () => {
    const looking = rowOf(Row.claim(released.tried, second, now, 3))
    const looked = release(looking, "clean", false, 700)
    assert.deepStrictEqual(claimedOf(Row.claim(looked, request, 900, 3)).earlier, { age: 400, fingerprint: "print-1" })
    const tried = release(looking, "tried", false, 700)
    assert.deepStrictEqual(claimedOf(Row.claim(tried, request, 900, 3)).earlier, { age: 200, fingerprint: "print-2" })
    const cleared = release(looking, "clean", true, 700)
    assert.include(cleared, { seenAt: 700, fingerprint: "print-2" })
    assert.strictEqual(claimedOf(Row.claim(cleared, request, 900, 3)).earlier, undefined)
    // a clock that was set back
    assert.strictEqual(claimedOf(Row.claim(tried, request, 650, 3)).earlier?.age, 0)
  })

  it("a record speaks of the input whose effect it is", () => {
    const row = rowOf(
      Row.complete(held, { ...completion, outcome: "reconciled", fingerprint: "print-0", token: 7 }, now)
    )
    assert.include(row, { status: "recorded", result, outcome: "reconciled", fingerprint: "print-0", updatedAt: now })
    assert.strictEqual(row.earlier, undefined)
  })

  it("retention drops what is old, and never a held key or one in doubt", () => {
    const prunable = (before: number) =>
      Object.fromEntries(
        Object.entries(states).flatMap(([name, row]) => row ? [[name, Row.isPrunable(row, before)]] : [])
      )
    assert.deepStrictEqual(prunable(Number.POSITIVE_INFINITY), {
      held: false,
      expired: false,
      "released, none": true,
      "released, tried": true,
      "released, inDoubt": false,
      recorded: true,
      "recorded without a result": true
    })
    assert.isTrue(Row.isPrunable(recorded, 501))
    assert.isFalse(Row.isPrunable(recorded, 500))
  })
})
