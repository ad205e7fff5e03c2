/**
 * An index of runs that counts what begins and ends, and then wakes who waits for a run of this process.
 */
import { Deferred, Effect, type Scope } from "effect"
import { isLive, isOver, type LiveRow, type RowStatus, type RunIndex, type RunRow } from "./RunIndex.ts"
import { countEnded, countStarted } from "./telemetry.ts"

export interface Watched {
  readonly index: RunIndex
  /** From when it answers, what it answers ends with the next change of the run. */
  readonly changed: (runId: string) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  /** Wakes who waits for a run that another process has changed. */
  readonly hear: (runId: string) => void
}

const hasEnded = (row: RunRow): row is LiveRow => isLive(row) && (isOver(row) || row.status === "failed")

export const watched = (index: RunIndex): Watched => {
  const watchers = new Map<string, Set<Deferred.Deferred<void>>>()
  const hear = (runId: string) => {
    const waiting = watchers.get(runId)
    watchers.delete(runId)
    waiting?.forEach((one) => Deferred.doneUnsafe(one, Effect.void))
  }
  const tell = (runId: string) => Effect.sync(() => hear(runId))
  return {
    hear,
    index: {
      ...index,
      insert: (row) =>
        Effect.tap(
          index.insert(row),
          (known) => Effect.andThen(known === undefined ? countStarted(row.agent) : Effect.void, tell(row.runId))
        ),
      update: (runId, change) =>
        Effect.suspend(() => {
          let before: RowStatus | undefined
          const noted = (row: RunRow) => {
            before = row.status
            return change(row)
          }
          return Effect.tap(index.update(runId, noted), (row) =>
            Effect.andThen(
              row !== undefined && row.status !== before && hasEnded(row)
                ? countEnded(row.agent, row.status)
                : Effect.void,
              tell(runId)
            ))
        }),
      remove: (row, rest) => Effect.tap(index.remove(row, rest), () => tell(row.runId))
    },
    changed: (runId) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const one = Deferred.makeUnsafe<void>()
            const waiting = watchers.get(runId) ?? new Set()
            watchers.set(runId, waiting.add(one))
            return one
          }),
          (one) =>
            Effect.sync(() => {
              const waiting = watchers.get(runId)
              waiting?.delete(one)
              if (waiting?.size === 0) watchers.delete(runId)
            })
        ),
        Deferred.await
      )
  }
}
