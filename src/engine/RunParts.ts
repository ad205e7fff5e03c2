/**
 * The storage of the parts of runs: a log for each run, which one writer at a time appends to.
 *
 * Each row says at which place of the log it stands, and no place is taken twice. A writer begins with a row of its own at the
 * end; from then on an earlier writer, which may have been frozen, finds its next place taken, and knows that it is one no more.
 */
import { type Duration, Effect } from "effect"
import type { EngineStoreError } from "./errors.ts"

/** The run whose log it is. A pruned run's id may be used again. */
export interface LogOf {
  readonly runId: string
  readonly incarnation: string
}

export interface PartsRow {
  /** From 1, without gaps. */
  readonly seq: number
  /** Who wrote it. */
  readonly writer: string
  /** What is complete with this row, as `StreamLog` writes it; `""` where nothing is. */
  readonly marks: string
  /** The parts: a JSON array of values that `StoredValue` wrote. */
  readonly data: string
}

export interface RunParts {
  /**
   * Adds the row in one atomic step, unless another writer has taken its place: then it answers `false`. The same row again, from
   * a writer that did not hear the answer, is no other one.
   */
  readonly append: (log: LogOf, row: PartsRow) => Effect.Effect<boolean, EngineStoreError>
  /** The rows behind `after`, in order, `limit` at most. */
  readonly read: (
    log: LogOf,
    after: number,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Pick<PartsRow, "seq" | "data">>, EngineStoreError>
  /** The number of the last row, 0 where there is none, and the marks of all rows in order. */
  readonly marks: (
    log: LogOf
  ) => Effect.Effect<{ readonly last: number; readonly marks: ReadonlyArray<string> }, EngineStoreError>
  /** Removes the logs of all runs of this id. */
  readonly remove: (runId: string) => Effect.Effect<void, EngineStoreError>
  /** How long a writer collects parts between two rows, unless somebody waits for them to be stored. */
  readonly interval: Duration.Input
}

/** The logs, which tell of each run that has new parts. */
export const telling = (parts: RunParts, tell: (runId: string) => Effect.Effect<void>): RunParts => ({
  ...parts,
  append: (log, row) => Effect.tap(parts.append(log, row), () => tell(log.runId))
})

/** In this process's memory. */
export const makeMemory = Effect.sync((): RunParts => {
  const logs = new Map<string, Map<string, Array<PartsRow>>>()
  const rowsOf = ({ incarnation, runId }: LogOf): ReadonlyArray<PartsRow> => logs.get(runId)?.get(incarnation) ?? []
  return {
    append: ({ incarnation, runId }, row) =>
      Effect.sync(() => {
        const ofRun = logs.get(runId) ?? new Map<string, Array<PartsRow>>()
        const rows = ofRun.get(incarnation) ?? []
        const taken = rows[row.seq - 1]
        if (taken !== undefined) return taken.writer === row.writer
        logs.set(runId, ofRun.set(incarnation, rows))
        rows.push(row)
        return true
      }),
    read: (log, after, limit) => Effect.sync(() => rowsOf(log).slice(after, after + limit)),
    marks: (log) =>
      Effect.sync(() => ({
        last: rowsOf(log).length,
        marks: rowsOf(log).flatMap(({ marks }) => marks === "" ? [] : [marks])
      })),
    remove: (runId) => Effect.sync(() => void logs.delete(runId)),
    interval: 0
  }
})
