/**
 * What a database has to say in its own words. The logic of the store is written once, over this.
 */
import type { CompleteItem, EffectRecord, ReleaseItem, RenewItem } from "../EffectRecord.ts"
import type { ListFilter } from "../store/IEffectStore.ts"

/** A statement's fixed text with its parameters, in the order of their placeholders. */
export interface Query {
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
}

/** A claim as the statement takes it. */
export interface ClaimRow {
  readonly key: string
  readonly tool: string
  readonly runId: string
  readonly owner: string
  readonly claimId: string
  readonly lease: number
  readonly fingerprint: string
  /** The lock that the holder's process keeps, where it keeps one. */
  readonly process: string | null
  /** The lock of a process that is known to be dead: its claims can be taken over before their leases end. */
  readonly deadProcess: string | null
}

/** What every database is asked in the same way. Each statement is one atomic step; all answer rows of values. */
export interface Statements {
  /** The columns of `EffectRecord` and the present time, or no row. */
  readonly get: (key: string) => Query
  /** Writes `next` if the row still is what `previous` says; a row if it was. */
  readonly replace: (previous: EffectRecord, next: EffectRecord) => Query
  /**
   * A text to go on after, and the columns of `EffectRecord`, for at most `limit` rows, oldest first: those after `after`,
   * or all.
   */
  readonly list: (filter: ListFilter, after: string | undefined, limit: number) => Query
  /** Removes the row, in a way that its token never comes back; a row if there was one. */
  readonly remove: (key: string) => Query
  /** Removes at most `limit` prunable rows, in a way that their tokens never come back; a row for each. */
  readonly prune: (olderThan: number, limit: number) => Query
}

/**
 * What a database is asked where it is in the process, so that several statements cost little.
 *
 * Every statement that decides about a lease reads the database's clock in the same step.
 */
export interface SingleStatements extends Statements {
  /** The columns of `Look`, or no row. Takes no lock that a writer would wait for. */
  readonly look: (key: string) => Query
  /** The columns of `Grant` if the claim is granted, else no row. The whole rule stands in this one statement. */
  readonly claim: (claim: ClaimRow) => Query
  /** A row if the claim was still held with this token. */
  readonly complete: (item: CompleteItem) => Query
  /** A row if the claim was still held with this token. */
  readonly release: (item: ReleaseItem) => Query
  /** A row if the claim was still held with this token. */
  readonly renew: (item: RenewItem) => Query
  /** Status and token of the row, or no row. */
  readonly fence: (key: string) => Query
  /** What tells one change of the row from the next, and the lock of the process that holds it, or no row. */
  readonly sign: (key: string) => Query
  /** One row of values that differ after other connections, or this one, have changed something. */
  readonly version: Query
}
