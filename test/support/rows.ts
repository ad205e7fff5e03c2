/**
 * Rows of the ledger in every state, for the tests of the state machine.
 */
import { assert } from "@effect/vitest"
import * as Row from "../../src/EffectRecord.ts"
import * as RecordedResult from "../../src/RecordedResult.ts"

export const lease = 1_000
export const request: Row.ClaimRequest = {
  key: "k",
  tool: "comment",
  runId: "run-1",
  owner: "process 1",
  claimId: "claim-1",
  lease,
  fingerprint: "print-1"
}
export const second: Row.ClaimRequest = {
  ...request,
  runId: "run-2",
  owner: "process 2",
  claimId: "claim-2",
  fingerprint: "print-2"
}
export const result = RecordedResult.fromJson("1")
export const unavailable = RecordedResult.unavailable("too large")
export const completion = { key: "k", result, outcome: "executed", fingerprint: "print-1" } as const

export const rowOf = <A>([row]: Row.Step<A>): Row.EffectRecord => row ?? assert.fail("the step changed nothing")
export const replyOf = <A>([, reply]: Row.Step<A>): A => reply
export const claimedOf = ([, reply]: Row.Step<Row.ClaimReply>): Row.Claimed =>
  reply._tag === "Claimed" ? reply : assert.fail(`the claim was answered ${reply._tag}`)

/** Claimed at 100 with token 7, until 1,100. */
export const held = rowOf(Row.claim(undefined, request, 100, 7))
export const release = (row: Row.EffectRecord, verdict: Row.Verdict, cleared = false, now = 500) =>
  rowOf(Row.release(row, { key: row.key, token: row.token, verdict, cleared }, now))
export const released = {
  none: release(held, "clean"),
  tried: release(held, "tried"),
  inDoubt: release(held, "inDoubt")
}
export const recorded = rowOf(Row.complete(held, { ...completion, token: 7 }, 500))
export const without = rowOf(Row.complete(held, { ...completion, token: 7, result: unavailable }, 500))

/** Time 600: the lease of `held` is not over. */
export const states: { readonly [name: string]: Row.EffectRecord | undefined } = {
  absent: undefined,
  held,
  expired: { ...held, leaseEnd: 600 },
  "released, none": released.none,
  "released, tried": released.tried,
  "released, inDoubt": released.inDoubt,
  recorded,
  "recorded without a result": without
}
export const now = 600
