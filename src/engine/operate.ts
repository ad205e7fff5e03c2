/**
 * What an operator does with runs: look at them, answer them, retry, cancel and forget them.
 */
import { Clock, Duration, Effect } from "effect"
import type { EffectRecord } from "../EffectRecord.ts"
import type { IEffectStore } from "../EffectStore.ts"
import { keysInDoubt, keysInDoubtByRun } from "./doubt.ts"
import { type AgentNotRegisteredError, ApprovalIdError, RunNotFailedError } from "./errors.ts"
import type { IEngine, RunInfo } from "./IEngine.ts"
import { approvalSignal, isApprovalId } from "./journal.ts"
import { isLive, isOver, type LiveRow, type RunFilter, type RunIndex, type RunRow } from "./RunIndex.ts"
import type { Runs } from "./runs.ts"
import { countRetry } from "./telemetry.ts"

export interface OperateOptions {
  readonly runs: Runs
  readonly index: RunIndex
  readonly store: IEffectStore
  /** Whether anybody hears what is sent to runs of the agent. */
  readonly checkReached: (agent: string) => Effect.Effect<void, AgentNotRegisteredError>
  /** Whether the runs of the agent execute in this process. */
  readonly isHere: (agent: string) => boolean
}

type Operator = Pick<IEngine, "retry" | "approve" | "deny" | "cancel" | "get" | "list" | "prune">

export const make = ({ checkReached, index, isHere, runs, store }: OperateOptions): Operator => {
  const respond = (type: "approved" | "denied"): IEngine["approve"] =>
    Effect.fnUntraced(function*(runId: string, id: string, { reason }: { readonly reason?: string | undefined } = {}) {
      if (!isApprovalId(id)) return yield* new ApprovalIdError({ runId, id })
      const row = yield* runs.rowOf(runId)
      if (isOver(row)) return
      yield* checkReached(row.agent)
      yield* runs.send(row, approvalSignal(id), JSON.stringify({ type, reason }))
      yield* runs.update(runId, (row) => {
        const approvals = row.approvals.filter((approval) => approval.id !== id)
        return approvals.length === row.approvals.length ? undefined : {
          approvals,
          status: row.status === "waiting" && approvals.length === 0 ? "queued" : row.status
        }
      })
    })

  /** From then on the run is gone. One that was retried since it was listed stays. */
  const condemn = (listed: RunRow) =>
    index.update(
      listed.runId,
      (row) =>
        row.incarnation === listed.incarnation && row.status === listed.status && row.endedAt === listed.endedAt
          ? { ...row, status: "pruning" }
          : undefined
    )

  return {
    retry: Effect.fnUntraced(function*(runId: string) {
      const before = yield* runs.rowOf(runId)
      if (before.status === "failed" || before.status === "queued") yield* checkReached(before.agent)
      const row = before.status !== "failed"
        ? before
        : yield* runs.update(runId, (row) =>
          row.status !== "failed" ? undefined : {
            status: "queued",
            failure: undefined,
            endedAt: undefined,
            retries: row.retries + 1,
            redo: [...row.redo, row.again],
            again: null
          })
      // one that is queued may be a retry that was cut off between its two writes
      if (row.status !== "queued" || row.retries === 0) {
        return yield* new RunNotFailedError({ runId, status: row.status })
      }
      yield* countRetry(row.agent, "run")
      yield* runs.push(row)
    }),
    approve: respond("approved"),
    deny: respond("denied"),
    cancel: Effect.fnUntraced(function*(runId: string) {
      const before = yield* runs.rowOf(runId)
      if (!isOver(before) && before.status !== "failed") yield* checkReached(before.agent)
      const row = yield* runs.update(runId, (row, now) =>
        isOver(row)
          ? undefined
          : row.status === "failed"
          ? { status: "cancelled", endedAt: now }
          : { cancelling: true })
      if (isOver(row)) return
      yield* runs.interrupt(row)
      if (isHere(row.agent)) {
        yield* Effect.ignore(runs.when(runId, (row) => isOver(row) ? Effect.void : undefined))
      }
    }),
    get: Effect.fnUntraced(function*(runId: string) {
      const row = yield* runs.rowOf(runId)
      return infoOf(row, yield* keysInDoubt(store, runId))
    }),
    list: Effect.fnUntraced(function*(filter: RunFilter = {}) {
      const rows = (yield* index.list(filter)).filter(isLive)
      const keys = rows.length === 0 ? {} : yield* keysInDoubtByRun(store)
      return rows.map((row) => infoOf(row, Object.hasOwn(keys, row.runId) ? keys[row.runId]! : []))
    }),
    prune: Effect.fnUntraced(function*({ olderThan }: { readonly olderThan: Duration.Input }) {
      const endedBefore = (yield* Clock.currentTimeMillis) - Duration.toMillis(olderThan)
      let count = 0
      while (true) {
        const rows = yield* index.list({ status: ["completed", "failed", "cancelled"], endedBefore, limit: 100 })
        yield* Effect.forEach(rows, condemn, { discard: true })
        // those too that somebody condemned who was cut off
        const condemned = yield* index.list({ status: "pruning", limit: 100 })
        if (rows.length + condemned.length === 0) return count
        count += (yield* Effect.forEach(condemned, runs.remove)).filter(Boolean).length
      }
    })
  }
}

const infoOf = (
  { agent, approvals, cancelling, createdAt, endedAt, failure, retries, runId, status, troubles, updatedAt }: LiveRow,
  keysInDoubt: ReadonlyArray<EffectRecord>
): RunInfo => ({
  runId,
  agent,
  status,
  cancelling: cancelling && status !== "cancelled" && status !== "completed",
  retries,
  approvals,
  troubles,
  keysInDoubt,
  failure,
  createdAt,
  updatedAt,
  endedAt
})
