/**
 * What a ledger does, written down once more and as plainly as can be: rows in a Map, and if-statements.
 *
 * It shares nothing with `EffectRecord` but the shapes of what goes in and comes out. Each says what a store must do in
 * its own way: there by what a row remembers of the attempt before, here by a list of all attempts that are under
 * suspicion. That a store agrees with both is worth something only because neither was copied from the other.
 */
import type {
  ClaimReply,
  ClaimRequest,
  CompleteItem,
  Doubt,
  EffectRecord,
  Fenced,
  RecordedOutcome,
  ReleaseItem,
  RenewItem,
  ResolveReply,
  Status
} from "../../record/model.ts"
import type { ListFilter } from "../../store/IEffectStore.ts"

/** An attempt, and when it can last have done something. */
interface Attempt {
  readonly fingerprint: string
  readonly seenAt: number
}

/** An attempt that may have applied the effect, as far as the ledger knows. */
interface Suspect extends Attempt {
  readonly doubt: "tried" | "inDoubt"
}

interface Row {
  readonly key: string
  readonly tool: string
  readonly createdAt: number
  status: Status
  runId: string
  owner: string
  claimId: string
  token: number
  attempt: number
  takenOver: boolean
  leaseEnd: number
  updatedAt: number
  /** The attempt that the row speaks of. */
  about: Attempt
  /** Oldest first. The attempt that is under way is not among them. */
  suspects: ReadonlyArray<Suspect>
  result: string | undefined
  outcome: RecordedOutcome | undefined
}

/** What a person says of a key; `result` is the text of a recorded result. */
export type Resolved =
  | { readonly as: "applied"; readonly result: string; readonly available: boolean }
  | { readonly as: "notApplied" }
  | { readonly as: "unknown" }

const isUnavailable = (result: string | undefined): boolean => result?.startsWith(`{"unavailable":`) === true

/** The suspect that the next attempt must hear of: the last one in doubt, before all that only tried. */
const worst = (suspects: ReadonlyArray<Suspect>): Suspect | undefined =>
  suspects.findLast(({ doubt }) => doubt === "inDoubt") ?? suspects.at(-1)

const doubtOf = (row: Row): Doubt => worst(row.suspects)?.doubt ?? "none"

/** The holder was cut off, and may have lived until its lease was over. */
const cutOff = (row: Row): Suspect => ({ fingerprint: row.about.fingerprint, seenAt: row.leaseEnd, doubt: "inDoubt" })

/** The row as a store shows it. */
const shown = (row: Row): EffectRecord => {
  const suspect = row.status === "held" ? worst(row.suspects) : undefined
  return {
    key: row.key,
    tool: row.tool,
    runId: row.runId,
    status: row.status,
    doubt: doubtOf(row),
    token: row.token,
    claimId: row.claimId,
    attempt: row.attempt,
    takenOver: row.takenOver,
    owner: row.owner,
    leaseEnd: row.leaseEnd,
    fingerprint: row.about.fingerprint,
    earlier: suspect === undefined ? undefined : { seenAt: suspect.seenAt, fingerprint: suspect.fingerprint },
    result: row.result,
    outcome: row.outcome,
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    seenAt: row.about.seenAt
  }
}

const matches = (record: EffectRecord, filter: ListFilter): boolean => {
  if (filter.runId !== undefined && record.runId !== filter.runId) return false
  if (filter.tool !== undefined && record.tool !== filter.tool) return false
  if (filter.status !== undefined && record.status !== filter.status) return false
  if (filter.doubt !== undefined && record.doubt !== filter.doubt) return false
  if (filter.updatedSince !== undefined && record.updatedAt < filter.updatedSince) return false
  if (filter.updatedBefore !== undefined && record.updatedAt >= filter.updatedBefore) return false
  return true
}

/**
 * A ledger that is told the time of each step, and the token where the store chose a new one: which numbers a store gives
 * is its own affair, as long as they grow.
 */
export class Ledger {
  private readonly rows = new Map<string, Row>()

  get(key: string): EffectRecord | undefined {
    const row = this.rows.get(key)
    return row === undefined ? undefined : shown(row)
  }

  list(filter: ListFilter): ReadonlyArray<EffectRecord> {
    return [...this.rows.values()].map(shown).filter((record) => matches(record, filter))
  }

  claim(request: ClaimRequest, at: number, newToken: number): ClaimReply {
    const { claimId, fingerprint, key, lease, owner, runId, tool } = request
    const row = this.rows.get(key)
    if (row === undefined) {
      const made: Row = {
        key,
        tool,
        runId,
        owner,
        claimId,
        status: "held",
        token: newToken,
        attempt: 1,
        takenOver: false,
        leaseEnd: at + lease,
        about: { fingerprint, seenAt: at },
        suspects: [],
        result: undefined,
        outcome: undefined,
        createdAt: at,
        updatedAt: at
      }
      this.rows.set(key, made)
      return this.granted(made, at)
    }
    if (row.status === "recorded") {
      return {
        _tag: "Recorded",
        tool: row.tool,
        result: row.result!,
        outcome: row.outcome!,
        fingerprint: row.about.fingerprint
      }
    }
    const remaining = row.status === "held" ? Math.max(0, row.leaseEnd - at) : 0
    const held: ClaimReply = { _tag: "Held", tool: row.tool, owner: row.owner, remaining }
    if (row.tool !== tool) return held
    if (row.status === "held" && row.claimId === claimId) {
      // its own claim, asked for again
      row.leaseEnd = at + lease
      row.updatedAt = at
      row.about = { fingerprint: row.about.fingerprint, seenAt: at }
      return this.granted(row, at)
    }
    if (remaining > 0) return held
    row.takenOver = row.status === "held"
    if (row.takenOver) row.suspects = [...row.suspects, cutOff(row)]
    row.status = "held"
    row.runId = runId
    row.owner = owner
    row.claimId = claimId
    row.token = newToken
    row.attempt += 1
    row.leaseEnd = at + lease
    row.updatedAt = at
    row.about = { fingerprint, seenAt: at }
    return this.granted(row, at)
  }

  private granted(row: Row, at: number): ClaimReply {
    const suspect = worst(row.suspects)
    return {
      _tag: "Claimed",
      token: row.token,
      attempt: row.attempt,
      doubt: doubtOf(row),
      takenOver: row.takenOver,
      earlier: suspect === undefined ? undefined : { age: at - suspect.seenAt, fingerprint: suspect.fingerprint }
    }
  }

  complete(item: CompleteItem, at: number): Fenced {
    const row = this.rows.get(item.key)
    if (row === undefined || row.token !== item.token || row.status === "released") return "lost"
    if (row.status === "recorded") return "ok"
    row.status = "recorded"
    row.suspects = []
    row.result = item.result
    row.outcome = item.outcome
    row.about = { fingerprint: item.fingerprint, seenAt: at }
    row.updatedAt = at
    return "ok"
  }

  release(item: ReleaseItem, at: number): Fenced {
    const row = this.rows.get(item.key)
    if (row === undefined || row.token !== item.token || row.status === "recorded") return "lost"
    if (row.status === "released") return "ok"
    const { fingerprint } = row.about
    if (item.cleared) row.suspects = []
    if (item.verdict !== "clean") row.suspects = [...row.suspects, { fingerprint, seenAt: at, doubt: item.verdict }]
    row.about = worst(row.suspects) ?? { fingerprint, seenAt: at }
    row.status = "released"
    row.takenOver = false
    row.leaseEnd = at
    row.updatedAt = at
    return "ok"
  }

  renew(item: RenewItem, at: number): Fenced {
    const row = this.rows.get(item.key)
    if (row === undefined || row.token !== item.token || row.status !== "held") return "lost"
    row.leaseEnd = at + item.lease
    row.updatedAt = at
    row.about = { fingerprint: row.about.fingerprint, seenAt: at }
    return "ok"
  }

  resolve(key: string, resolved: Resolved, at: number, newToken: number): ResolveReply {
    const row = this.rows.get(key)
    if (row === undefined) return "missing"
    if (row.status === "recorded") {
      // a record stands, but for one thing: what was applied without a result may still get it
      if (resolved.as !== "applied" || !resolved.available || !isUnavailable(row.result)) return "recorded"
      row.result = resolved.result
      row.outcome = "resolved"
      row.updatedAt = at
      return "ok"
    }
    if (row.status === "held" && row.leaseEnd > at) return "held"
    if (row.status === "held") row.about = cutOff(row)
    row.token = newToken
    row.takenOver = false
    row.leaseEnd = at
    row.updatedAt = at
    row.suspects = resolved.as === "unknown" ? [{ ...row.about, doubt: "inDoubt" }] : []
    if (resolved.as === "applied") {
      row.status = "recorded"
      row.result = resolved.result
      row.outcome = "resolved"
    } else {
      row.status = "released"
    }
    return "ok"
  }

  remove(key: string): boolean {
    return this.rows.delete(key)
  }

  /** Removes what may go that was last changed before this time, and says which. */
  prune(before: number, also: (key: string) => boolean = () => true): ReadonlyArray<string> {
    const old = [...this.rows.values()].filter((row) =>
      row.status !== "held" && doubtOf(row) !== "inDoubt" && row.updatedAt < before && also(row.key)
    )
    old.forEach(({ key }) => this.rows.delete(key))
    return old.map(({ key }) => key)
  }
}
