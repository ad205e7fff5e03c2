/**
 * The ledger's row of one effect key, and what stores are asked and answer. The rules are in `EffectRecord`.
 */
/**
 * What is known about earlier attempts.
 *
 * @category models
 * @since 0.1.0
 */
export type Doubt = "none" | "tried" | "inDoubt"

/**
 * @category models
 * @since 0.1.0
 */
export type Status = "held" | "released" | "recorded"

/**
 * How a record came to be: `execute` ran, the remote check found it, or a person resolved the key.
 *
 * @category models
 * @since 0.1.0
 */
export type RecordedOutcome = "executed" | "reconciled" | "resolved"

/**
 * How a claim ends without a record: `clean` (`execute` never started), `tried` (it failed, by its own word without having
 * applied anything) or `inDoubt` (it was cut off, or does not know).
 *
 * @category models
 * @since 0.1.0
 */
export type Verdict = "clean" | "tried" | "inDoubt"

/**
 * When an earlier attempt that is not cleared can last have done something, and the fingerprint of its input.
 *
 * @category models
 * @since 0.1.0
 */
export interface Earlier {
  readonly seenAt: number
  readonly fingerprint: string
}

/**
 * One row of the ledger. All times are milliseconds on the store's clock.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectRecord {
  readonly key: string
  /** The tool that the key belongs to, for as long as the row exists. */
  readonly tool: string
  readonly runId: string
  readonly status: Status
  readonly doubt: Doubt
  /** The fencing token: it grows with every claim and never repeats for a key. */
  readonly token: number
  readonly claimId: string
  /** How many claims were granted, this one counted. */
  readonly attempt: number
  /** Whether the present claim was taken from a holder that had not released it. */
  readonly takenOver: boolean
  readonly owner: string
  readonly leaseEnd: number
  /** SHA-256 of the canonical input of the attempt that the row speaks of. */
  readonly fingerprint: string
  readonly earlier: Earlier | undefined
  /** The text of `RecordedResult`, once recorded. */
  readonly result: string | undefined
  readonly outcome: RecordedOutcome | undefined
  readonly createdAt: number
  readonly updatedAt: number
  /** The last sign of life of the attempt that the row speaks of. */
  readonly seenAt: number
}

/**
 * @category models
 * @since 0.1.0
 */
export interface ClaimRequest {
  readonly key: string
  readonly tool: string
  readonly runId: string
  /** Who asks, for people: it stands in `Held` and in `EffectInProgressError`. */
  readonly owner: string
  /** Unique per claim. Asking again with the same one answers the same token. */
  readonly claimId: string
  /** Milliseconds. */
  readonly lease: number
  readonly fingerprint: string
}

/**
 * The key is done: answer `result`, run nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recorded {
  readonly _tag: "Recorded"
  readonly tool: string
  readonly result: string
  readonly outcome: RecordedOutcome
  readonly fingerprint: string
}

/**
 * The claim is granted.
 *
 * @category models
 * @since 0.1.0
 */
export interface Claimed {
  readonly _tag: "Claimed"
  readonly token: number
  readonly attempt: number
  readonly doubt: Doubt
  readonly takenOver: boolean
  /** Milliseconds since the earlier attempt can last have been alive, and its input; where `doubt` is not `none`. */
  readonly earlier: { readonly age: number; readonly fingerprint: string } | undefined
}

/**
 * Somebody holds the key, or it belongs to another tool.
 *
 * @category models
 * @since 0.1.0
 */
export interface Held {
  readonly _tag: "Held"
  readonly tool: string
  readonly owner: string
  /** Milliseconds until the lease ends; 0 where nobody holds it. */
  readonly remaining: number
}

/**
 * The row cannot be read. It is never treated as absent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Unreadable {
  readonly _tag: "Unreadable"
  readonly tool: string
  readonly problem: string
}

/**
 * @category models
 * @since 0.1.0
 */
export type ClaimReply = Recorded | Claimed | Held | Unreadable

/**
 * @category models
 * @since 0.1.0
 */
export interface CompleteItem {
  readonly key: string
  readonly token: number
  /** The text of `RecordedResult`. */
  readonly result: string
  readonly outcome: RecordedOutcome
  /** The fingerprint of the input whose effect the result is. */
  readonly fingerprint: string
}

/**
 * @category models
 * @since 0.1.0
 */
export interface ReleaseItem {
  readonly key: string
  readonly token: number
  readonly verdict: Verdict
  /** Whether a "no" of the remote was believed: then the doubt of earlier attempts is gone. */
  readonly cleared: boolean
}

/**
 * @category models
 * @since 0.1.0
 */
export interface RenewItem {
  readonly key: string
  readonly token: number
  /** Milliseconds from now, on the store's clock. */
  readonly lease: number
}

/**
 * Whether a claim's holder still was its holder.
 *
 * @category models
 * @since 0.1.0
 */
export type Fenced = "ok" | "lost"

/**
 * What became of a person's verdict: `held` (a live holder has the key; wait for it), `recorded` (there is a record, which
 * is never overwritten) and `missing` (no such key) change nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type ResolveReply = "ok" | "held" | "recorded" | "missing"

/**
 * A row after a step, `undefined` where the step changes nothing, and the reply.
 *
 * @category models
 * @since 0.1.0
 */
export type Step<Reply> = readonly [next: EffectRecord | undefined, reply: Reply]
