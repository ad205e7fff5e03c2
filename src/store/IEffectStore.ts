import type { Context, Duration, Effect, Stream } from "effect"
import type { EffectRecord } from "../EffectRecord.ts"
import type * as Record from "../EffectRecord.ts"
import type { EffectResolution } from "../EffectResolution.ts"
import type { EffectRecordError, EffectStoreError } from "../errors.ts"

/**
 * Which rows `list` answers; what is left out does not filter.
 *
 * @category models
 * @since 0.1.0
 */
export interface ListFilter {
  readonly runId?: string | undefined
  readonly tool?: string | undefined
  readonly status?: Record.Status | undefined
  readonly doubt?: Record.Doubt | undefined
  /** Rows last changed at or after this time, in milliseconds on the store's clock. */
  readonly updatedSince?: number | undefined
  /** Rows last changed before this time, in milliseconds on the store's clock. */
  readonly updatedBefore?: number | undefined
}

/**
 * Which rows `prune` removes: recorded ones and released ones that are not in doubt, unchanged for `olderThan`.
 *
 * @category models
 * @since 0.1.0
 */
export interface PruneOptions {
  readonly olderThan: Duration.Input
}

/**
 * The ledger inside of one transaction.
 *
 * @category models
 * @since 0.1.0
 */
export interface LedgerInTransaction {
  /**
   * Claims the key until the transaction ends. While another transaction has it, waits for the end of that one; can be
   * interrupted while it waits.
   */
  readonly claim: (request: Record.ClaimRequest) => Effect.Effect<Record.ClaimReply, EffectStoreError>
  /** Records the result, if the transaction commits. */
  readonly complete: (item: Record.CompleteItem) => Effect.Effect<Record.Fenced, EffectStoreError>
}

/**
 * Transactions of a store that lives in a database of the program's own.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectTransactions {
  /** Whether a fiber with these services is inside a transaction of the database. */
  readonly isInside: (services: Context.Context<never>) => boolean
  /** Whether the database of these services is another one than the ledger's, as far as can be told. */
  readonly isElsewhere: (services: Context.Context<never>) => boolean
  /**
   * Runs `work` in a transaction: what it writes over the same client is committed with its records if it succeeds, and
   * rolled back if it fails, dies or is interrupted.
   *
   * **Details**
   *
   * It fails as `work` does, with the identical cause, and with `EffectStoreError` where the transaction cannot begin or
   * commit. Only `work` can be interrupted, where it allows it.
   */
  readonly run: <A, E>(
    work: (ledger: LedgerInTransaction) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | EffectStoreError>
}

/**
 * The port of a store. Arrays are batches: answers come in order, one per item, and items of one batch do not affect each
 * other. Every operation is atomic per key.
 *
 * **Details**
 *
 * - `claim`: a crash before it leaves nothing; after it, a claim that is held until its lease ends.
 * - `complete`: a crash before it leaves the claim; after it, the record.
 * - `release`, `renew`: a crash before them leaves the claim with the lease that it had.
 * - An operation whose reply was lost may be repeated: `claim` with its `claimId`, the others with their token.
 *
 * @category models
 * @since 0.1.0
 */
export interface IEffectStore {
  /** Whether calls that arrive together are worth a common round trip (a network store). */
  readonly batch: boolean
  /** Claims keys, or says why not. */
  readonly claim: (
    requests: ReadonlyArray<Record.ClaimRequest>
  ) => Effect.Effect<ReadonlyArray<Record.ClaimReply>, EffectStoreError>
  /** Records results; "lost" where the claim was taken over, and then nothing is changed. */
  readonly complete: (
    items: ReadonlyArray<Record.CompleteItem>
  ) => Effect.Effect<ReadonlyArray<Record.Fenced>, EffectStoreError>
  /** Gives claims up, each with a verdict. */
  readonly release: (
    items: ReadonlyArray<Record.ReleaseItem>
  ) => Effect.Effect<ReadonlyArray<Record.Fenced>, EffectStoreError>
  /** Extends leases. */
  readonly renew: (
    items: ReadonlyArray<Record.RenewItem>
  ) => Effect.Effect<ReadonlyArray<Record.Fenced>, EffectStoreError>
  /** The row of a key. */
  readonly get: (key: string) => Effect.Effect<EffectRecord | undefined, EffectStoreError | EffectRecordError>
  /** The rows that match, in the order of their creation. */
  readonly list: (filter?: ListFilter) => Stream.Stream<EffectRecord, EffectStoreError | EffectRecordError>
  /**
   * A person's verdict on a key. The result of `EffectResolution.applied(result)` is taken in JSON form (what the tool's
   * `outputSchema` encodes to); what JSON cannot carry fails with `EffectStoreError`.
   */
  readonly resolve: (
    key: string,
    resolution: EffectResolution
  ) => Effect.Effect<Record.ResolveReply, EffectStoreError>
  /** Forgets the key: the next call applies its effect anew. Answers whether there was a row. */
  readonly remove: (key: string) => Effect.Effect<boolean, EffectStoreError>
  /** Removes old rows, never held or in-doubt ones, and answers how many. */
  readonly prune: (options: PruneOptions) => Effect.Effect<number, EffectStoreError>
  /** Wakes whoever waits for a change of the key; it may wake without a cause, and never ends by itself. */
  readonly changes: (key: string) => Stream.Stream<void, EffectStoreError>
  /** For tools with `transactional: true`, where the program writes to the ledger's own database; else left out. */
  readonly transactions?: EffectTransactions | undefined
}
