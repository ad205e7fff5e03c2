/**
 * The runs of an engine: their rows, their executions, and who waits for them.
 */
import { Clock, type Duration, Effect, Option, type Scope } from "effect"
import { runPrefix } from "../toolContext/runKeys.ts"
import * as Blobs from "./blobs.ts"
import { EngineStoreError, RunNotFoundError, RunOfAnotherAgentError } from "./errors.ts"
import type { Ground } from "./execute.ts"
import type { AnyAgent } from "./IEngine.ts"
import type { ExecutionId, Executions } from "./port.ts"
import { retrySignal } from "./journal.ts"
import { isLive, type LiveRow, type RunRow } from "./RunIndex.ts"
import { make as makeValues, type Values } from "./values.ts"

export interface Runs {
  readonly rowOf: (runId: string) => Effect.Effect<LiveRow, RunNotFoundError | EngineStoreError>
  /** Changes the row in one atomic step, unless `change` answers nothing. Answers the row as it is then. */
  readonly update: (
    runId: string,
    change: (row: LiveRow, now: number) => Partial<RunRow> | undefined
  ) => Effect.Effect<LiveRow, RunNotFoundError | EngineStoreError>
  /** The first of the answers that `look` gives on a row; it looks again after each change of the run. */
  readonly found: <A, E>(
    runId: string,
    look: (row: LiveRow) => Effect.Effect<Option.Option<A>, E>
  ) => Effect.Effect<A, E | RunNotFoundError | EngineStoreError>
  /** As `found`, where the row alone tells whether there is an answer. */
  readonly when: <A, E>(
    runId: string,
    look: (row: LiveRow) => Effect.Effect<A, E> | undefined
  ) => Effect.Effect<A, E | RunNotFoundError | EngineStoreError>
  readonly checkOwner: (agent: AnyAgent, row: RunRow) => Effect.Effect<void, RunOfAnotherAgentError>
  readonly valuesOf: (runId: string) => Values
  /** Makes sure that a row that shall go on does: its process may have died between two writes. */
  readonly push: (row: RunRow) => Effect.Effect<void, EngineStoreError>
  /** As `push`; one that was told to be cancelled ends. */
  readonly goOn: (row: RunRow) => Effect.Effect<void, EngineStoreError>
  /** Cancels what the run does; what is left of it ends. */
  readonly interrupt: (row: RunRow) => Effect.Effect<void, EngineStoreError>
  readonly resume: (row: RunRow) => Effect.Effect<void, EngineStoreError>
  readonly send: (row: RunRow, signal: string, value: string) => Effect.Effect<void, EngineStoreError>
  /**
   * Forgets all that is kept of a run that is being pruned, but its effects. Whoever is cut off leaves the row, for the next one to
   * go on. Answers whether it was the one that removed the row.
   */
  readonly remove: (row: RunRow) => Effect.Effect<boolean, EngineStoreError>
}

export interface RunsOptions {
  readonly ground: Pick<Ground, "index" | "keyValues" | "maxRowSize" | "parts">
  readonly executions: Executions["Service"]
  readonly changed: (runId: string) => Effect.Effect<Effect.Effect<void>, never, Scope.Scope>
  readonly pollInterval: Duration.Input | undefined
}

const idOf = ({ agent, incarnation, runId }: RunRow): ExecutionId => ({ agent, incarnation, runId })
const startOf = (row: RunRow) => ({ ...idOf(row), input: row.input })

export const ownedByAnother = (agent: AnyAgent, { agent: startedBy, runId }: RunRow): RunOfAnotherAgentError =>
  new RunOfAnotherAgentError({ runId, agent: agent.name, startedBy })

export const make = (
  { changed, executions, ground: { index, keyValues, maxRowSize, parts }, pollInterval }: RunsOptions
): Runs => {
  const existing = (runId: string) => (row: RunRow | undefined) =>
    row === undefined || !isLive(row) ? Effect.fail(new RunNotFoundError({ runId })) : Effect.succeed(row)
  const rowOf = (runId: string) => Effect.flatMap(index.get(runId), existing(runId))
  const awaited = (change: Effect.Effect<void>) =>
    pollInterval === undefined ? change : Effect.raceFirst(change, Effect.sleep(pollInterval))
  const found = Effect.fnUntraced(function*<A, E>(
    runId: string,
    look: (row: LiveRow) => Effect.Effect<Option.Option<A>, E>
  ) {
    while (true) {
      const found = yield* Effect.scoped(Effect.gen(function*() {
        // who watches before it looks misses nothing
        const change = yield* changed(runId)
        const found = yield* look(yield* rowOf(runId))
        if (Option.isNone(found)) yield* awaited(change)
        return found
      }))
      if (Option.isSome(found)) return found.value
    }
  })
  const push = (row: RunRow) =>
    Effect.andThen(
      executions.start(startOf(row)),
      row.retries > 0 ? executions.send(idOf(row), retrySignal(row.retries - 1), "") : Effect.void
    )
  const interrupt = (row: RunRow) => Effect.andThen(executions.start(startOf(row)), executions.interrupt(idOf(row)))
  return {
    rowOf,
    update: (runId, change) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.flatMap(
          index.update(runId, (row) => {
            const changed = isLive(row) ? change(row, now) : undefined
            return changed === undefined ? undefined : { ...row, updatedAt: now, ...changed }
          }),
          existing(runId)
        )),
    found,
    when: (runId, look) => Effect.flatten(found(runId, (row) => Effect.succeed(Option.fromUndefinedOr(look(row))))),
    checkOwner: (agent, row) => row.agent === agent.name ? Effect.void : Effect.fail(ownedByAnother(agent, row)),
    valuesOf: (runId) => makeValues(Blobs.make(keyValues, runId), maxRowSize),
    push,
    goOn: (row) => row.cancelling ? interrupt(row) : push(row),
    interrupt,
    resume: (row) => executions.resume(idOf(row)),
    send: (row, signal, value) => executions.send(idOf(row), signal, value),
    remove: Effect.fnUntraced(function*(row: RunRow) {
      yield* executions.forget(idOf(row))
      const values = Effect.mapError(
        keyValues.clearPrefix(runPrefix(row.runId)),
        (cause) => new EngineStoreError({ operation: `forget run ${row.runId}`, problem: cause.message, cause })
      )
      return yield* index.remove(row, Effect.andThen(values, parts.remove(row.runId)))
    })
  }
}
