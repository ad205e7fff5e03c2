/** What can be wrong with who gets a key. */
import { Effect } from "effect"
import type { ClaimReply, ClaimRequest, EffectRecord } from "../../src/EffectRecord.ts"
import { answers, asks, type Fault, type Faults, grants, replace, shows } from "./fault.ts"

const grantOf = (token: number, attempt: number): ClaimReply => ({
  _tag: "Claimed",
  token,
  attempt,
  doubt: "none",
  takenOver: false,
  earlier: undefined
})

/** Looks first and decides by what it saw, whatever happened meanwhile. */
const looksFirst = (
  grantsBy: (row: EffectRecord | undefined, request: ClaimRequest, reply: ClaimReply, now: number) => boolean
): Fault =>
  replace("claim", (request, { now, row }, right) =>
    Effect.gen(function*() {
      yield* Effect.yieldNow
      const reply = yield* right(request)
      return reply._tag === "Held" && grantsBy(row, request, reply, now)
        ? grantOf((row?.token ?? 0) + 1, (row?.attempt ?? 0) + 1)
        : reply
    }))

const isOver = (row: EffectRecord | undefined, now: number) => row?.status === "held" && row.leaseEnd <= now

const isRepeated = (row: EffectRecord | undefined, { claimId }: ClaimRequest) =>
  row?.status === "held" && row.claimId === claimId

const rememberedClaims: Fault = (store) => {
  const known = new Map<string, ClaimReply>()
  return answers("claim", (reply, { claimId, key }) => {
    const name = `${key} ${claimId}`
    if (reply._tag === "Claimed") known.set(name, reply)
    return reply._tag === "Held" ? known.get(name) ?? reply : reply
  })(store)
}

export const claiming: Faults = {
  "a new key is granted with the first attempt and no doubt": {
    "attempts that count from zero": grants(({ attempt }, _, { row }) =>
      row === undefined ? { attempt: attempt - 1 } : {}
    ),
    "tokens that are not whole numbers": grants(({ token }, _, { row }) =>
      row === undefined ? { token: token + 0.5 } : {}
    ),
    "a new key in doubt": grants((_, __, { row }) => row === undefined ? { doubt: "inDoubt" } : {})
  },
  "the row of a claim says who holds it, for which run and input, and until when": {
    "a claim that is no sign of life": shows(({ createdAt, status, updatedAt }) =>
      status === "held" && createdAt === updatedAt ? { seenAt: createdAt - 1 } : {}
    )
  },
  "a held key is refused, with its tool, its owner and the rest of its lease": {
    "a remaining time that is a guess": answers(
      "claim",
      (reply) =>
        reply._tag === "Held" && reply.remaining > 100 && reply.remaining < 900 ? { ...reply, remaining: 900 } : reply
    ),
    "a refusal that names who asks as the owner": answers(
      "claim",
      (reply, { owner }) => reply._tag === "Held" && reply.remaining > 100 ? { ...reply, owner } : reply
    )
  },
  "a lease holds at its last millisecond": {
    "a lease that ends a millisecond early": asks("claim", ({ lease }) => ({ lease: Math.max(0, lease - 1) }))
  },
  "a lease is over at its very end": {
    "a lease that ends a millisecond late": asks("claim", ({ lease }) => ({ lease: lease + 1 })),
    "a lease that holds at its end": replace(
      "claim",
      (request, { now, row }, right) =>
        row?.status === "held" && row.leaseEnd === now && row.leaseEnd - row.createdAt === 1_000
          ? Effect.succeed({ _tag: "Held", tool: row.tool, owner: row.owner, remaining: 0 })
          : right(request)
    )
  },
  "a lease of zero is granted, and over at once": {
    "a lease of zero that never ends": asks("claim", ({ lease }) => lease === 0 ? { lease: 1e9 } : {})
  },
  "a takeover is in doubt, and says when the earlier attempt can last have lived and with which input": {
    "a takeover that is not said": grants(({ takenOver }, { fingerprint }) =>
      takenOver && fingerprint === "second" ? { takenOver: false } : {}
    ),
    "a takeover without doubt": grants(({ takenOver }) => takenOver ? { doubt: "none" } : {}),
    "a takeover that speaks of its own input": grants(({ earlier, takenOver }, { fingerprint }) =>
      takenOver ? { earlier: { age: earlier!.age, fingerprint } } : {}
    ),
    "a takeover that takes the holder for dead since its claim": grants(({ takenOver }, _, { now, row }) =>
      takenOver ? { earlier: { age: now - row!.seenAt, fingerprint: row!.fingerprint } } : {}
    )
  },
  "a repeated claimId is answered with the same grant, and a new lease": {
    "a claimId that is worth nothing": replace(
      "claim",
      (request, { row }, right) =>
        isRepeated(row, request) ? right({ ...request, claimId: `${request.claimId} again` }) : right(request)
    ),
    "a repeated claim that keeps its old lease": replace(
      "claim",
      (request, { now, row }, right) =>
        isRepeated(row, request) ? right({ ...request, lease: row!.leaseEnd - now }) : right(request)
    ),
    "a repeated claim that counts as an attempt": grants(({ attempt, takenOver }, request, { row }) =>
      isRepeated(row, request) && !takenOver ? { attempt: attempt + 1 } : {}
    )
  },
  "a repeated claimId keeps what the takeover said": {
    "a repeated claim that forgets its takeover": grants((_, request, { row }) =>
      isRepeated(row, request) ? { doubt: "none", takenOver: false, earlier: undefined } : {}
    ),
    "a repeated claim that tells the age of before": grants(({ earlier }, request, { row }) =>
      isRepeated(row, request) && earlier !== undefined ? { earlier: { ...earlier, age: 0 } } : {}
    )
  },
  "a claimId is worth nothing after its claim was taken over": {
    "a claimId that is good for ever": rememberedClaims
  },
  "a key belongs to its tool, while it is held, after its lease, released and recorded": {
    "a held key that another tool takes with its claimId": asks(
      "claim",
      (request, { row }) => isRepeated(row, request) ? { tool: row!.tool } : {}
    ),
    "a key that another tool takes after the lease": asks(
      "claim",
      (_, { now, row }) => isOver(row, now) && now > row!.createdAt ? { tool: row!.tool } : {}
    ),
    "a released key that another tool takes": asks(
      "claim",
      (_, { row }) => row?.status === "released" ? { tool: row.tool } : {}
    ),
    "a record that belongs to whoever asks": answers(
      "claim",
      (reply, { tool }) => reply._tag === "Recorded" ? { ...reply, tool } : reply
    )
  },
  "a recorded key answers its record to everybody, whatever they ask with": {
    "a record that is outdated by another input": answers(
      "claim",
      (reply, { fingerprint }) =>
        reply._tag === "Recorded" && reply.fingerprint === "theirs" ? { ...reply, fingerprint } : reply
    ),
    "a record that its own claim does not get": answers(
      "claim",
      (reply, { claimId }, { row }) =>
        reply._tag === "Recorded" && row!.claimId === claimId && row!.outcome === "reconciled"
          ? grantOf(row!.token, row!.attempt)
          : reply
    ),
    "a record that ends": answers(
      "claim",
      (reply, _, { now, row }) =>
        reply._tag === "Recorded" && now - row!.updatedAt >= 1_000_000 ? grantOf(row!.token + 1, 1) : reply
    )
  },
  "of many claims at once one is granted": {
    "a claim that looks before it writes": looksFirst((row, { tool }, reply) =>
      row === undefined && reply._tag === "Held" && reply.tool === tool
    )
  },
  "of two tools that race for a key one gets it, whatever the lease": {
    "a tool that is looked up before the claim": looksFirst((row, { tool }, reply) =>
      row === undefined && reply._tag === "Held" && reply.tool !== tool
    )
  },
  "of many takeovers at once one is granted": {
    "a takeover that looks before it writes": looksFirst((row, _, __, now) => isOver(row, now))
  }
}
