/**
 * The list of all runs: what the engine knows of a run beside its execution.
 */
import { Effect, Semaphore } from "effect"
import type { EngineStoreError, PendingApproval, RunFailure, RunTrouble } from "./errors.ts"
import type { RunTrace } from "./telemetry.ts"

/**
 * - `queued`: it has been started, or goes on, as soon as a process has room for it.
 * - `running`: a process works on it, or did when it died; then it is resumed.
 * - `waiting`: it waits for a person.
 * - `completed`, `failed`, `cancelled`: it has ended.
 *
 * @category models
 * @since 0.1.0
 */
export type RunStatus = "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled"

/** A row that is being pruned is gone for everybody, and what is left of its run is removed by whoever finds it. */
export type RowStatus = RunStatus | "pruning"

export interface RunRow {
  readonly runId: string
  readonly agent: string
  readonly incarnation: string
  readonly status: RowStatus
  /** The hash of trigger and prompt. */
  readonly fingerprint: string
  /** Trigger and prompt. */
  readonly input: string
  /** How often it was retried. */
  readonly retries: number
  /** For each retry, the step whose model answer was no good until then, and is generated again. */
  readonly redo: ReadonlyArray<number | null>
  /** The step that a retry would have to generate again. */
  readonly again: number | null
  readonly cancelling: boolean
  readonly approvals: ReadonlyArray<PendingApproval>
  readonly troubles: ReadonlyArray<RunTrouble>
  /** By the names of the calls that were in trouble: from which attempt on there is something to find of them. */
  readonly attempts: Readonly<Record<string, number>>
  readonly failure: RunFailure | undefined
  /** What came of it. */
  readonly outcome: string | undefined
  /** The span that it was started in, if there was one. */
  readonly trace: RunTrace | undefined
  /** Milliseconds. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt: number | undefined
}

/** The row of a run that is there. */
export type LiveRow = RunRow & { readonly status: RunStatus }

export const isLive = (row: RunRow): row is LiveRow => row.status !== "pruning"

/** Whether nothing can come of the run any more: a failed one can be retried. */
export const isOver = ({ status }: RunRow): boolean =>
  status === "completed" || status === "cancelled" || status === "pruning"

export interface RunFilter {
  readonly agent?: string | undefined
  readonly status?: RunStatus | ReadonlyArray<RunStatus> | undefined
  /** Runs that ended before this time, in milliseconds. */
  readonly endedBefore?: number | undefined
  /** The most that are listed, the newest first. Default: 100. */
  readonly limit?: number | undefined
}

/** Where it names no status, rows that are being pruned are left out. */
export interface RowFilter extends Omit<RunFilter, "status"> {
  readonly status?: RowStatus | ReadonlyArray<RowStatus> | undefined
}

export interface RunIndex {
  /** Adds the row, unless there is one of its id: then that one is the answer, and stays as it is. */
  readonly insert: (row: RunRow) => Effect.Effect<RunRow | undefined, EngineStoreError>
  readonly get: (runId: string) => Effect.Effect<RunRow | undefined, EngineStoreError>
  /** Replaces the row by what `change` makes of it, in one atomic step; `undefined` leaves it. Answers the row as it is then. */
  readonly update: (
    runId: string,
    change: (row: RunRow) => RunRow | undefined
  ) => Effect.Effect<RunRow | undefined, EngineStoreError>
  /** The newest first. */
  readonly list: (filter: RowFilter) => Effect.Effect<ReadonlyArray<RunRow>, EngineStoreError>
  /**
   * Removes a row that is being pruned, if it is of this incarnation still, and in the same atomic step what `rest` removes: a run
   * that gets the id afterwards loses nothing to it. Answers whether there was such a row.
   */
  readonly remove: (
    row: RunRow,
    rest: Effect.Effect<void, EngineStoreError>
  ) => Effect.Effect<boolean, EngineStoreError>
}

export const defaultLimit = 100

const matches = ({ agent, endedBefore, status }: RowFilter) => (row: RunRow): boolean =>
  (agent === undefined || row.agent === agent)
  && (status === undefined
    ? isLive(row)
    : (typeof status === "string" ? row.status === status : status.includes(row.status)))
  && (endedBefore === undefined || row.endedAt !== undefined && row.endedAt < endedBefore)

/** In this process's memory. */
export const makeMemory = Effect.sync((): RunIndex => {
  const rows = new Map<string, RunRow>()
  const removing = Semaphore.makeUnsafe(1)
  return {
    insert: (row) =>
      Effect.sync(() => {
        const known = rows.get(row.runId)
        if (known === undefined) rows.set(row.runId, row)
        return known
      }),
    get: (runId) => Effect.sync(() => rows.get(runId)),
    update: (runId, change) =>
      Effect.sync(() => {
        const row = rows.get(runId)
        const next = row && change(row)
        if (next !== undefined) rows.set(runId, next)
        return next ?? row
      }),
    list: (filter) =>
      Effect.sync(() => [...rows.values()].filter(matches(filter)).toReversed().slice(0, filter.limit ?? defaultLimit)),
    remove: ({ incarnation, runId }, rest) =>
      removing.withPermits(1)(Effect.suspend(() => {
        const row = rows.get(runId)
        return row?.incarnation === incarnation && !isLive(row)
          ? Effect.andThen(rest, Effect.sync(() => rows.delete(runId)))
          : Effect.succeed(false)
      }))
  }
})
