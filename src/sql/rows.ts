/**
 * The rows of the ledger's table as values, checked: a row that this version cannot read is never taken for an absent one.
 */
import { Result, Schema } from "effect"
import type { Claimed, ClaimReply, Doubt, EffectRecord, RecordedOutcome, Status, Unreadable } from "../EffectRecord.ts"

export type Row = ReadonlyArray<unknown>

/** The columns of a whole row, in the order in which statements select and `record` reads them. */
export const columns = [
  "key",
  "tool",
  "run_id",
  "status",
  "doubt",
  "token",
  "claim_id",
  "attempt",
  "taken_over",
  "owner",
  "lease_end",
  "fingerprint",
  "earlier_seen_at",
  "earlier_fingerprint",
  "result",
  "outcome",
  "created_at",
  "updated_at",
  "seen_at"
] as const

export const statuses: ReadonlyArray<Status> = ["held", "released", "recorded"]
export const doubts: ReadonlyArray<Doubt> = ["none", "tried", "inDoubt"]
export const outcomes: ReadonlyArray<RecordedOutcome> = ["executed", "reconciled", "resolved"]

const Integer = Schema.Finite.check(Schema.isInt())

const StoredRecord = Schema.Struct({
  key: Schema.String,
  tool: Schema.String,
  run_id: Schema.String,
  status: Schema.Literals(statuses),
  doubt: Schema.Literals(doubts),
  token: Integer,
  claim_id: Schema.String,
  attempt: Integer,
  taken_over: Integer,
  owner: Schema.String,
  lease_end: Integer,
  fingerprint: Schema.String,
  earlier_seen_at: Schema.NullOr(Integer),
  earlier_fingerprint: Schema.NullOr(Schema.String),
  result: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Schema.Literals(outcomes)),
  created_at: Integer,
  updated_at: Integer,
  seen_at: Integer
})

const decode = Schema.decodeUnknownResult(StoredRecord)

const integers: ReadonlySet<string> = new Set(
  Object.keys(StoredRecord.fields).filter((name) => /^(token|attempt|taken_over|lease_end|.*_at)$/.test(name))
)

/** Drivers give large integers as numbers, strings or BigInts. */
const number = (value: unknown): unknown => value === null ? null : Number(value)

const unreadable = (tool: unknown, problem: string): Unreadable => ({
  _tag: "Unreadable",
  tool: typeof tool === "string" ? tool : "",
  problem
})

/** A whole row of the key, or why it cannot be read. */
export const record = (row: Row, key?: string): Result.Result<EffectRecord, Unreadable> => {
  const named = Object.fromEntries(
    columns.map((name, index) => [name, integers.has(name) ? number(row[index]) : row[index]])
  )
  return Result.flatMap(
    Result.mapError(decode(named), (error) => unreadable(named["tool"], `the row is not valid: ${error.message}`)),
    (stored) => {
      if (key !== undefined && stored.key !== key) {
        return Result.fail(unreadable(stored.tool, "the row is filed under another key"))
      }
      if (stored.status === "recorded" && (stored.result === null || stored.outcome === null)) {
        return Result.fail(unreadable(stored.tool, "the row is recorded, and its result is missing"))
      }
      return Result.succeed({
        key: stored.key,
        tool: stored.tool,
        runId: stored.run_id,
        status: stored.status,
        doubt: stored.doubt,
        token: stored.token,
        claimId: stored.claim_id,
        attempt: stored.attempt,
        takenOver: stored.taken_over !== 0,
        owner: stored.owner,
        leaseEnd: stored.lease_end,
        fingerprint: stored.fingerprint,
        earlier: stored.earlier_seen_at === null
          ? undefined
          : { seenAt: stored.earlier_seen_at, fingerprint: stored.earlier_fingerprint ?? "" },
        result: stored.result ?? undefined,
        outcome: stored.outcome ?? undefined,
        createdAt: stored.created_at,
        updatedAt: stored.updated_at,
        seenAt: stored.seen_at
      })
    }
  )
}

/** The columns that decide a claim, in order. `remaining` is the lease's rest in milliseconds where the key is held. */
export const lookColumns = [
  "status",
  "key",
  "tool",
  "result",
  "outcome",
  "fingerprint",
  "doubt",
  "owner",
  "claim_id",
  "process",
  "remaining"
] as const

/** What `look` found: an answer, or a row that can be claimed, perhaps only if its holder's process is dead. */
export type Look =
  | { readonly _tag: "Answer"; readonly reply: Exclude<ClaimReply, Claimed> }
  | { readonly _tag: "Claimable" }
  | { readonly _tag: "IfDead"; readonly process: string; readonly reply: Exclude<ClaimReply, Claimed> }

const claimable: Look = { _tag: "Claimable" }

const answer = (reply: Exclude<ClaimReply, Claimed>): Look => ({ _tag: "Answer", reply })

/** Reads what `look` selected for the key: written out by hand, since every replay goes through it. */
export const look = (rows: ReadonlyArray<Row>, key: string, tool: string, claimId: string): Look => {
  const row = rows[0]
  if (row === undefined) return claimable
  const [status, storedKey, storedTool, result, outcome, fingerprint, doubt, owner, storedClaimId, process, rest] = row
  if (storedKey !== key) return answer(unreadable(storedTool, "the row is filed under another key"))
  if (typeof storedTool !== "string" || typeof fingerprint !== "string") {
    return answer(unreadable(storedTool, "the row is not valid"))
  }
  if (status === "recorded") {
    return typeof result === "string" && outcomes.includes(outcome as RecordedOutcome)
      ? answer({
        _tag: "Recorded",
        tool: storedTool,
        result,
        outcome: outcome as RecordedOutcome,
        fingerprint
      })
      : answer(unreadable(storedTool, "the row is recorded, and its result or its outcome is missing or unknown"))
  }
  if (!statuses.includes(status as Status)) return answer(unreadable(storedTool, `its status is ${String(status)}`))
  if (!doubts.includes(doubt as Doubt)) return answer(unreadable(storedTool, `its doubt is ${String(doubt)}`))
  const held = status === "held"
  if (storedTool === tool && (!held || storedClaimId === claimId)) return claimable
  const remaining = held ? Math.max(0, Number(rest)) : 0
  if (storedTool === tool && remaining === 0) return claimable
  const reply = { _tag: "Held", tool: storedTool, owner: String(owner), remaining } as const
  return storedTool === tool && typeof process === "string" ? { _tag: "IfDead", process, reply } : answer(reply)
}

/** The columns that a granted claim returns, in order. */
export const grantColumns = [
  "token",
  "attempt",
  "doubt",
  "taken_over",
  "earlier_seen_at",
  "earlier_fingerprint",
  "seen_at"
] as const

/** The first claim of a key that had no row. */
export const grantedNew = (token: unknown): Claimed => ({
  _tag: "Claimed",
  token: Number(token),
  attempt: 1,
  doubt: "none",
  takenOver: false,
  earlier: undefined
})

/** Reads what a granted claim returned. `seen_at` is the time of the claim. */
export const granted = (row: Row): Claimed => {
  const [token, attempt, doubt, takenOver, earlierSeenAt, earlierFingerprint, seenAt] = row
  return {
    _tag: "Claimed",
    token: Number(token),
    attempt: Number(attempt),
    doubt: doubt as Doubt,
    takenOver: Number(takenOver) !== 0,
    earlier: earlierSeenAt === null
      ? undefined
      : {
        age: Math.max(0, Number(seenAt) - Number(earlierSeenAt)),
        fingerprint: String(earlierFingerprint)
      }
  }
}
