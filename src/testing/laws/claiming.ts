/** Who gets a key, and for how long. */
import { Effect } from "effect"
import { fail, is, law, type Laws, resultOf, same } from "../law.ts"

export const claiming: Laws = {
  "a new key is granted with the first attempt and no doubt": law(function*({ claim, fresh }) {
    const reply = yield* is("the claim", yield* claim({ key: fresh() }), "Claimed")
    yield* same("the grant", { ...reply, token: 0 }, {
      _tag: "Claimed",
      token: 0,
      attempt: 1,
      doubt: "none",
      takenOver: false,
      earlier: undefined
    })
    if (!(Number.isSafeInteger(reply.token) && reply.token > 0)) {
      yield* fail("the token", "a positive whole number", reply.token)
    }
  }),

  "the row of a claim says who holds it, for which run and input, and until when": law(
    function*({ claim, fresh, row }) {
      const request = { tool: "t", runId: "r", owner: "o", claimId: fresh(), lease: 500, fingerprint: "f" }
      const key = fresh()
      const { token } = yield* is("the claim", yield* claim({ key, ...request }), "Claimed")
      const { createdAt, ...rest } = yield* row(key)
      const { lease, ...named } = request
      yield* same("the row", rest, {
        ...named,
        key,
        status: "held",
        doubt: "none",
        token,
        attempt: 1,
        takenOver: false,
        leaseEnd: createdAt + lease,
        earlier: undefined,
        result: undefined,
        outcome: undefined,
        updatedAt: createdAt,
        seenAt: createdAt
      })
    }
  ),

  "a held key is refused, with its tool, its owner and the rest of its lease": law(function*(subject) {
    const { key } = yield* subject.held({ tool: "comment", owner: "worker 1", lease: 1_000 })
    yield* subject.advance(400)
    yield* same("the reply", yield* subject.claim({ key, tool: "comment", owner: "worker 2" }), {
      _tag: "Held",
      tool: "comment",
      owner: "worker 1",
      remaining: 600
    })
  }),

  "a lease holds at its last millisecond": law(function*({ advance, claim, held }) {
    const { key } = yield* held({ lease: 1_000 })
    yield* advance(999)
    const reply = yield* is("a claim one millisecond before the lease ends", yield* claim({ key }), "Held")
    yield* same("the lease's rest", reply.remaining, 1)
  }),

  "a lease is over at its very end": law(function*({ advance, claim, held }) {
    const { key } = yield* held({ lease: 1_000 })
    yield* advance(1_000)
    yield* is("a claim when the lease ends", yield* claim({ key }), "Claimed")
  }),

  "a lease of zero is granted, and over at once": law(function*({ claim, held }) {
    const { key, token } = yield* held({ lease: 0 })
    const reply = yield* is("the next claim", yield* claim({ key }), "Claimed")
    yield* same("the takeover's doubt", [reply.doubt, reply.takenOver, reply.token > token], ["inDoubt", true, true])
  }),

  "a takeover is in doubt, and says when the earlier attempt can last have lived and with which input": law(
    function*({ advance, claim, held, row }) {
      const { key, token } = yield* held({ lease: 1_000, fingerprint: "first" })
      yield* advance(1_500)
      const reply = yield* is("the takeover", yield* claim({ key, fingerprint: "second", runId: "other" }), "Claimed")
      yield* same("the takeover", { ...reply, token: 0 }, {
        _tag: "Claimed",
        token: 0,
        attempt: 2,
        doubt: "inDoubt",
        takenOver: true,
        earlier: { age: 500, fingerprint: "first" }
      })
      if (reply.token <= token) yield* fail("the takeover's token", `more than ${token}`, reply.token)
      const { doubt, fingerprint, runId, status, takenOver } = yield* row(key)
      yield* same("the row", { doubt, fingerprint, runId, status, takenOver }, {
        doubt: "inDoubt",
        fingerprint: "second",
        runId: "other",
        status: "held",
        takenOver: true
      })
    }
  ),

  "a repeated claimId is answered with the same grant, and a new lease": law(function*({ advance, claim, held, row }) {
    const claimId = "again"
    const { key, token } = yield* held({ claimId, lease: 1_000 })
    yield* advance(700)
    const reply = yield* is("the repeated claim", yield* claim({ key, claimId, lease: 1_000 }), "Claimed")
    yield* same("the repeated grant", reply, {
      _tag: "Claimed",
      token,
      attempt: 1,
      doubt: "none",
      takenOver: false,
      earlier: undefined
    })
    const { createdAt, leaseEnd, seenAt } = yield* row(key)
    yield* same("the lease", [leaseEnd - createdAt, seenAt - createdAt], [1_700, 700])
  }),

  "a repeated claimId keeps what the takeover said": law(function*({ advance, claim, held }) {
    const { key } = yield* held({ lease: 10, fingerprint: "first" })
    yield* advance(10)
    const takeover = yield* is("the takeover", yield* claim({ key, claimId: "again", lease: 1_000 }), "Claimed")
    yield* advance(5)
    yield* same("the repeated takeover", yield* claim({ key, claimId: "again", lease: 1_000 }), {
      ...takeover,
      earlier: { age: 5, fingerprint: "first" }
    })
  }),

  "a claimId is worth nothing after its claim was taken over": law(function*({ advance, claim, held }) {
    const { key } = yield* held({ claimId: "old", lease: 10 })
    yield* advance(10)
    yield* is("the takeover", yield* claim({ key, lease: 1_000 }), "Claimed")
    yield* is("the old claim again", yield* claim({ key, claimId: "old" }), "Held")
  }),

  "a key belongs to its tool, while it is held, after its lease, released and recorded": law(
    function*({ advance, claim, complete, held, release }) {
      const { key, token } = yield* held({ tool: "mine", owner: "me", claimId: "id", lease: 10 })
      const other = { key, tool: "theirs" }
      yield* same("held", yield* claim(other), { _tag: "Held", tool: "mine", owner: "me", remaining: 10 })
      yield* is("held, with the same claimId", yield* claim({ ...other, claimId: "id" }), "Held")
      yield* advance(10)
      yield* same("after the lease", yield* claim(other), { _tag: "Held", tool: "mine", owner: "me", remaining: 0 })
      yield* release({ key, token })
      yield* same("released", yield* claim(other), { _tag: "Held", tool: "mine", owner: "me", remaining: 0 })
      const again = yield* is("the tool itself", yield* claim({ key, tool: "mine" }), "Claimed")
      yield* complete({ key, token: again.token })
      const recorded = yield* is("recorded", yield* claim(other), "Recorded")
      yield* same("the record's tool", recorded.tool, "mine")
    }
  ),

  "a recorded key answers its record to everybody, whatever they ask with": law(
    function*({ advance, claim, complete, fresh, held }) {
      const claimId = fresh()
      const { key, token } = yield* held({ claimId })
      yield* complete({ key, token, result: resultOf(7), outcome: "reconciled", fingerprint: "theirs" })
      const record = {
        _tag: "Recorded",
        tool: "tool",
        result: resultOf(7),
        outcome: "reconciled",
        fingerprint: "theirs"
      } as const
      yield* same("another claim", yield* claim({ key }), record)
      yield* same("the same claim", yield* claim({ key, claimId }), record)
      yield* advance(1_000_000)
      yield* same("much later", yield* claim({ key, fingerprint: "changed" }), record)
    }
  ),

  "of many claims at once one is granted": law(function*({ claim, fresh }) {
    const key = fresh()
    const replies = yield* Effect.forEach(Array.from({ length: 50 }), () => claim({ key }), {
      concurrency: "unbounded"
    })
    yield* same("the number of grants", replies.filter(({ _tag }) => _tag === "Claimed").length, 1)
    yield* same("the number of refusals", replies.filter(({ _tag }) => _tag === "Held").length, 49)
  }),

  "of two tools that race for a key one gets it, whatever the lease": law(function*({ claim, fresh }) {
    for (const lease of [0, 1_000]) {
      const key = fresh()
      const replies = yield* Effect.forEach(["a", "b"], (tool) => claim({ key, tool, lease }), {
        concurrency: "unbounded"
      })
      yield* same("the replies", replies.map(({ _tag }) => _tag).toSorted(), ["Claimed", "Held"])
    }
  }),

  "of many takeovers at once one is granted": law(function*({ advance, claim, held }) {
    const { key } = yield* held({ lease: 10 })
    yield* advance(10)
    const replies = yield* Effect.forEach(Array.from({ length: 50 }), () => claim({ key }), {
      concurrency: "unbounded"
    })
    yield* same("the number of grants", replies.filter(({ _tag }) => _tag === "Claimed").length, 1)
  })
}
