/**
 * The ledger's row of one effect key, as a pure state machine.
 *
 * Every rule about claims, leases, fencing tokens and doubt is decided here, without a clock and without a store: each
 * function takes the row and the store's time and answers the next row and the reply. The memory store runs it as it is; a
 * store with a language of its own (SQL, Lua) states the same rules. All of them, this machine too, are held to a plain
 * model that was written apart from it (`storeModel` of `chamvi-effect/testing`).
 *
 * **Details**
 *
 * - A row is *held* (somebody has a claim), *released* (nobody has, and there is no result) or *recorded* (done for good).
 * - `doubt` says what is known of earlier attempts: `none` (nothing can have been applied), `tried` (an `execute` failed
 *   and by its own word applied nothing) or `inDoubt` (an attempt was cut off).
 * - Only the newest `token` may complete, release or renew. A lease ends at `leaseEnd`: at that very millisecond the claim
 *   can be taken over.
 *
 * @since 0.1.0
 */
import type { EffectResolution } from "./EffectResolution.ts"
import type {
  Claimed,
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  Doubt,
  EffectRecord,
  Fenced,
  ReleaseItem,
  RenewItem,
  ResolveReply,
  Step,
  Verdict
} from "./record/model.ts"
import * as RecordedResult from "./RecordedResult.ts"

export type * from "./record/model.ts"

const claimed = (record: EffectRecord, now: number): Claimed => ({
  _tag: "Claimed",
  token: record.token,
  attempt: record.attempt,
  doubt: record.doubt,
  takenOver: record.takenOver,
  earlier: record.earlier === undefined
    ? undefined
    : { age: Math.max(0, now - record.earlier.seenAt), fingerprint: record.earlier.fingerprint }
})

/**
 * When the attempt that the row speaks of can last have done something: a holder that did not release may have lived, and
 * sent its request, until the end of its lease.
 */
const lastAlive = (record: EffectRecord, now: number): number =>
  record.status === "held" ? Math.min(record.leaseEnd, now) : record.seenAt

/**
 * Claims the key.
 *
 * **Details**
 *
 * `firstToken` is the token of a key that has no row; a store keeps it above every token of a removed row. `holderIsDead`
 * says that the present holder cannot be running any more, whatever its lease says.
 *
 * @category transitions
 * @since 0.1.0
 */
export const claim = (
  record: EffectRecord | undefined,
  request: ClaimRequest,
  now: number,
  firstToken: number,
  holderIsDead = false
): Step<ClaimReply> => {
  const { claimId, fingerprint, key, lease, owner, runId, tool } = request
  if (record === undefined) {
    const next: EffectRecord = {
      key,
      tool,
      runId,
      status: "held",
      doubt: "none",
      token: firstToken,
      claimId,
      attempt: 1,
      takenOver: false,
      owner,
      leaseEnd: now + lease,
      fingerprint,
      earlier: undefined,
      result: undefined,
      outcome: undefined,
      createdAt: now,
      updatedAt: now,
      seenAt: now
    }
    return [next, claimed(next, now)]
  }
  if (record.status === "recorded") {
    return [undefined, {
      _tag: "Recorded",
      tool: record.tool,
      result: record.result!,
      outcome: record.outcome!,
      fingerprint: record.fingerprint
    }]
  }
  const held = record.status === "held"
  if (held && record.claimId === claimId && record.tool === tool) {
    const next: EffectRecord = { ...record, leaseEnd: now + lease, updatedAt: now, seenAt: now }
    return [next, claimed(next, now)]
  }
  const remaining = held ? Math.max(0, record.leaseEnd - now) : 0
  if (record.tool !== tool || (remaining > 0 && !holderIsDead)) {
    return [undefined, { _tag: "Held", tool: record.tool, owner: record.owner, remaining }]
  }
  const doubt = held ? "inDoubt" : record.doubt
  const next: EffectRecord = {
    ...record,
    runId,
    status: "held",
    doubt,
    token: record.token + 1,
    claimId,
    attempt: record.attempt + 1,
    takenOver: held,
    owner,
    leaseEnd: now + lease,
    fingerprint,
    earlier: doubt === "none" ? undefined : { seenAt: lastAlive(record, now), fingerprint: record.fingerprint },
    updatedAt: now,
    seenAt: now
  }
  return [next, claimed(next, now)]
}

/**
 * Records the result. Repeated with the same token it answers "ok" again.
 *
 * @category transitions
 * @since 0.1.0
 */
export const complete = (record: EffectRecord | undefined, item: CompleteItem, now: number): Step<Fenced> => {
  if (record === undefined || record.token !== item.token || record.status === "released") return [undefined, "lost"]
  if (record.status === "recorded") return [undefined, "ok"]
  return [{
    ...record,
    status: "recorded",
    doubt: "none",
    result: item.result,
    outcome: item.outcome,
    fingerprint: item.fingerprint,
    earlier: undefined,
    updatedAt: now,
    seenAt: now
  }, "ok"]
}

const releasedDoubt = (before: Doubt, verdict: Verdict): Doubt =>
  verdict === "inDoubt" || before === "inDoubt" ? "inDoubt" : verdict === "tried" ? "tried" : before

/**
 * Gives the claim up with a verdict. Repeated with the same token it answers "ok" again.
 *
 * **Details**
 *
 * A failed attempt speaks for itself only: a key that was in doubt before stays in doubt, unless `cleared`.
 *
 * @category transitions
 * @since 0.1.0
 */
export const release = (record: EffectRecord | undefined, item: ReleaseItem, now: number): Step<Fenced> => {
  if (record === undefined || record.token !== item.token || record.status === "recorded") return [undefined, "lost"]
  if (record.status === "released") return [undefined, "ok"]
  const earlier = item.cleared ? undefined : record.earlier
  // The row goes on speaking of the attempt before, where this one only looked, or failed without anything applied and
  // left the doubt of that one as it was.
  const looked = item.verdict === "clean" || (item.verdict === "tried" && record.doubt === "inDoubt")
  const speaksOf = looked && earlier !== undefined
    ? earlier
    : { seenAt: now, fingerprint: record.fingerprint }
  return [{
    ...record,
    status: "released",
    doubt: releasedDoubt(item.cleared ? "none" : record.doubt, item.verdict),
    takenOver: false,
    leaseEnd: now,
    earlier: undefined,
    updatedAt: now,
    ...speaksOf
  }, "ok"]
}

/**
 * Extends the lease. A claim whose lease ran out can still be renewed, as long as nobody took it over.
 *
 * @category transitions
 * @since 0.1.0
 */
export const renew = (record: EffectRecord | undefined, item: RenewItem, now: number): Step<Fenced> =>
  record === undefined || record.token !== item.token || record.status !== "held"
    ? [undefined, "lost"]
    : [{ ...record, leaseEnd: now + item.lease, updatedAt: now, seenAt: now }, "ok"]

/**
 * Applies a person's verdict to a key that nobody holds, or whose holder's lease is over.
 *
 * **Details**
 *
 * `json` is the JSON text of the resolution's result; `undefined` stands for the result `undefined`. A record is never
 * overwritten, but one without a result can be given one.
 *
 * @category transitions
 * @since 0.1.0
 */
export const resolve = (
  record: EffectRecord | undefined,
  resolution: EffectResolution,
  json: string | undefined,
  now: number
): Step<ResolveReply> => {
  if (record === undefined) return [undefined, "missing"]
  const result = resolution._tag === "Applied"
    ? resolution.result === undefined
      ? RecordedResult.unavailable("the key was resolved as applied, without a result")
      : RecordedResult.fromJson(json)
    : undefined
  if (record.status === "recorded") {
    return result !== undefined && !RecordedResult.isUnavailable(result) && RecordedResult.isUnavailable(record.result!)
      ? [{ ...record, result, outcome: "resolved", updatedAt: now }, "ok"]
      : [undefined, "recorded"]
  }
  if (record.status === "held" && record.leaseEnd > now) return [undefined, "held"]
  const settled: EffectRecord = {
    ...record,
    // a holder that thaws after this finds its claim lost
    token: record.token + 1,
    takenOver: false,
    leaseEnd: now,
    earlier: undefined,
    updatedAt: now,
    // a holder that did not release is no less to be waited for because a person spoke
    seenAt: lastAlive(record, now)
  }
  return result === undefined
    ? [{ ...settled, status: "released", doubt: resolution._tag === "Unknown" ? "inDoubt" : "none" }, "ok"]
    : [{ ...settled, status: "recorded", doubt: "none", result, outcome: "resolved" }, "ok"]
}

/**
 * Whether retention may drop the row: held and in-doubt keys are kept for ever.
 *
 * @category retention
 * @since 0.1.0
 */
export const isPrunable = (record: EffectRecord, before: number): boolean =>
  record.status !== "held" && record.doubt !== "inDoubt" && record.updatedAt < before
