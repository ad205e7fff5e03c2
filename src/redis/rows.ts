/**
 * What the scripts answer, as values, checked: a row that this version cannot read is never taken for an absent one.
 */
import { Result, Schema } from "effect"
import type { ClaimReply, Doubt, EffectRecord, RecordedOutcome, Status, Unreadable } from "../EffectRecord.ts"
import { names } from "./scripts.ts"

/** All that a script answers: texts, the first of which says what the others are. */
export type Answer = ReadonlyArray<string>

const unreadable = (tool: string | undefined, problem: string | undefined): Unreadable => ({
  _tag: "Unreadable",
  tool: tool ?? "",
  problem: problem ?? "the server's answer is not known"
})

/** The reply to a claim. */
export const claimReply = ([kind, ...rest]: Answer): ClaimReply => {
  switch (kind) {
    case "R": {
      const [tool, result, outcome, fingerprint] = rest as [string, string, RecordedOutcome, string]
      return { _tag: "Recorded", tool, result, outcome, fingerprint }
    }
    case "C": {
      const [token, attempt, doubt, takenOver, age, fingerprint] = rest as [
        string,
        string,
        Doubt,
        string,
        string,
        string
      ]
      return {
        _tag: "Claimed",
        token: Number(token),
        attempt: Number(attempt),
        doubt,
        takenOver: takenOver === "1",
        earlier: age === "" ? undefined : { age: Number(age), fingerprint }
      }
    }
    case "H": {
      const [tool, owner, remaining] = rest as [string, string, string]
      return { _tag: "Held", tool, owner, remaining: Number(remaining) }
    }
    default:
      return unreadable(rest[0], rest[1])
  }
}

/** What a row is found to be at `now`, on the store's clock. `born` orders rows by their creation; `revision` is for `replace`. */
export interface Found {
  readonly now: number
  readonly record: EffectRecord
  readonly born: number
  readonly revision: string
}

/** The row that `get` answered, `undefined` where there is none, or why it cannot be read. */
export const found = (key: string, [kind, ...rest]: Answer): Result.Result<Found | undefined, Unreadable> => {
  if (kind === "N") return Result.succeed(undefined)
  if (kind !== "V") return Result.fail(unreadable(rest[0], rest[1]))
  const [now, status, result, ...values] = rest as [string, string, string, ...Array<string>]
  const row = Object.fromEntries(names.map((name, index) => [name, values[index]!])) as Record<
    typeof names[number],
    string
  >
  return Result.succeed({
    now: Number(now),
    born: Number(row.born),
    revision: `${row.token}:${row.rev}`,
    record: {
      key,
      tool: row.tool,
      runId: row.run,
      status: status as Status,
      doubt: row.doubt as Doubt,
      token: Number(row.token),
      claimId: row.claim,
      attempt: Number(row.attempt),
      takenOver: row.taken === "1",
      owner: row.owner,
      leaseEnd: Number(row.lease),
      fingerprint: row.print,
      earlier: row.eseen === "-1" ? undefined : { seenAt: Number(row.eseen), fingerprint: row.eprint },
      result: result === "" ? undefined : result,
      outcome: row.outcome === "" ? undefined : row.outcome as RecordedOutcome,
      createdAt: Number(row.created),
      updatedAt: Number(row.updated),
      seenAt: Number(row.seen)
    }
  })
}

/** What `replace` writes of a row, in its order. */
export const written = (record: EffectRecord): ReadonlyArray<string> => [
  record.status,
  record.doubt,
  String(record.token),
  record.takenOver ? "1" : "0",
  String(record.leaseEnd),
  record.fingerprint,
  record.earlier === undefined ? "-1" : String(record.earlier.seenAt),
  record.earlier?.fingerprint ?? "",
  record.result ?? "",
  record.outcome ?? "",
  String(record.updatedAt),
  String(record.seenAt)
]

/** What a script answered, checked: a proxy or another server may answer anything. */
export const isAnswer: (value: unknown) => value is Answer = Schema.is(Schema.Array(Schema.String))
