/**
 * What came of a run, for those who wait for it.
 */
import type { OutputInterface } from "ai"
import { Effect } from "effect"
import { AiError } from "../AiError.ts"
import type { IEffectStore } from "../EffectStore.ts"
import { definitionOf, type RunResult } from "./agentTypes.ts"
import { keysInDoubt } from "./doubt.ts"
import {
  type EngineStoreError,
  RunCancelledError,
  RunFailedError,
  type RunNotFoundError,
  type RunOfAnotherAgentError,
  RunWaitingError
} from "./errors.ts"
import type { Outcome } from "./execute.ts"
import type { AnyAgent, RunError } from "./IEngine.ts"
import type { RunRow } from "./RunIndex.ts"
import { ownedByAnother, type Runs } from "./runs.ts"

/** Waits for the run, and answers its recorded result. */
export const make = (runs: Runs, store: IEffectStore) => {
  const inDoubt = (runId: string) => Effect.map(keysInDoubt(store, runId), (records) => records.map(({ key }) => key))

  const recorded = Effect.fnUntraced(function*(agent: AnyAgent, row: RunRow) {
    const values = runs.valuesOf(row.runId)
    const { last, ...outcome } = (yield* values.read(row.outcome!)) as Outcome
    const output = yield* outputOf(definitionOf(agent).output, outcome, last)
    return { runId: row.runId, ...outcome, output } satisfies RunResult<unknown>
  })

  const look = (
    agent: AnyAgent,
    row: RunRow
  ): Effect.Effect<RunResult<unknown>, RunError | AiError | EngineStoreError> | undefined => {
    const { runId } = row
    switch (row.status) {
      case "completed":
        return recorded(agent, row)
      case "failed":
        return Effect.flatMap(
          inDoubt(runId),
          (keysInDoubt) => new RunFailedError({ runId, agent: row.agent, failure: row.failure!, keysInDoubt })
        )
      case "cancelled":
        return Effect.flatMap(
          inDoubt(runId),
          (keysInDoubt) => new RunCancelledError({ runId, agent: row.agent, keysInDoubt })
        )
      case "waiting":
        // one that is told to be cancelled waits for nobody
        return row.cancelling
          ? undefined
          : Effect.fail(new RunWaitingError({ runId, agent: row.agent, approvals: row.approvals }))
    }
    return undefined
  }

  return (
    agent: AnyAgent,
    runId: string
  ): Effect.Effect<
    RunResult<unknown>,
    RunNotFoundError | EngineStoreError | RunOfAnotherAgentError | RunError | AiError
  > =>
    runs.when<RunResult<unknown>, RunOfAnotherAgentError | RunError | AiError | EngineStoreError>(
      runId,
      (row) => row.agent === agent.name ? look(agent, row) : Effect.fail(ownedByAnother(agent, row))
    )
}

/** The output of a completed run, read again from the text: so it is the same value each time. */
const outputOf = (
  output: OutputInterface | undefined,
  { finishReason, text }: Pick<Outcome, "finishReason" | "text">,
  { response, usage }: Outcome["last"]
): Effect.Effect<unknown, AiError> =>
  output === undefined ? Effect.succeed(text) : Effect.tryPromise({
    try: () => output.parseCompleteOutput({ text }, { response, usage, finishReason }),
    catch: (error) => AiError.from(error)
  })
