/**
 * What an engine does.
 *
 * @since 0.1.0
 */
import type { Duration, Effect, Stream } from "effect"
import type { EffectRecord } from "../EffectRecord.ts"
import type { Agent, RunInput, RunResult } from "./agentTypes.ts"
import type {
  AgentNotRegisteredError,
  ApprovalIdError,
  EngineStoreError,
  PendingApproval,
  RunCancelledError,
  RunConflictError,
  RunFailedError,
  RunFailure,
  RunInputError,
  RunNotFailedError,
  RunNotFoundError,
  RunOfAnotherAgentError,
  RunTrouble,
  RunWaitingError
} from "./errors.ts"
import type { RunFilter, RunStatus } from "./RunIndex.ts"
import type { StreamedPart } from "./RunPart.ts"
import type { StreamOptions } from "./StreamReader.ts"
import type { AiError } from "../AiError.ts"

/**
 * A run as `Engine.get` and `Engine.list` tell of it. Times are milliseconds since 1970.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunInfo {
  readonly runId: string
  readonly agent: string
  readonly status: RunStatus
  /** Whether `Engine.cancel` was called and what it stops has not ended yet. */
  readonly cancelling: boolean
  /** How often it was retried. */
  readonly retries: number
  /** The tool calls that wait for a person. */
  readonly approvals: ReadonlyArray<PendingApproval>
  /** The tool calls that sleep until their effect store, or the key that somebody else holds, is there again. */
  readonly troubles: ReadonlyArray<RunTrouble>
  /** Its effect keys that may or may not have been applied. `EffectStore.resolve` says what became of them. */
  readonly keysInDoubt: ReadonlyArray<EffectRecord>
  /** What it failed with, if it has failed. */
  readonly failure: RunFailure | undefined
  readonly createdAt: number
  readonly updatedAt: number
  readonly endedAt: number | undefined
}

/**
 * What a run that was started fails with where it comes to no result.
 *
 * @category errors
 * @since 0.1.0
 */
export type RunError = RunFailedError | RunCancelledError | RunWaitingError

/**
 * What refuses to start a run.
 *
 * @category errors
 * @since 0.1.0
 */
export type StartError =
  | AgentNotRegisteredError
  | RunOfAnotherAgentError
  | RunConflictError
  | RunInputError
  | EngineStoreError

/** An agent with any trigger and any output. */
export interface AnyAgent {
  readonly name: string
}

/**
 * The functions of `Engine`.
 *
 * @category models
 * @since 0.1.0
 */
export interface IEngine {
  /**
   * Runs an agent to its result. The same run id again continues the run, and a completed one answers its recorded result
   * without calling the model. Interrupting the Effect leaves the run alone.
   */
  readonly run: <Trigger, Output>(
    agent: Agent<string, Trigger, Output, unknown>,
    input: RunInput<Trigger>
  ) => Effect.Effect<RunResult<Output>, StartError | RunError | AiError>
  /** Starts a run, or finds it started, and does not wait for it. */
  readonly start: <Trigger, Output>(
    agent: Agent<string, Trigger, Output, unknown>,
    input: RunInput<Trigger>
  ) => Effect.Effect<void, StartError>
  /** Waits for the result of a run that was started, and wakes it if it sleeps. */
  readonly resume: <Trigger, Output>(
    agent: Agent<string, Trigger, Output, unknown>,
    runId: string
  ) => Effect.Effect<
    RunResult<Output>,
    RunNotFoundError | RunOfAnotherAgentError | AgentNotRegisteredError | EngineStoreError | RunError | AiError
  >
  /**
   * The parts of a run, from the first one or from behind a cursor: those that are stored, and then the others as they come. It ends
   * with how the run came to rest: completed, cancelled, failed, or waiting for a person.
   *
   * - In order, none missing and none twice, for any number of readers, in any process, at any time until the run is pruned.
   * - It reads from storage, at the reader's pace; a slow reader holds up nobody. Its agent need not be registered here.
   * - Texts come as they are written where the agent says `stream: true`, and otherwise as a whole, step by step.
   * - A step that is generated again says so with `step-restarted`; its parts before that count no more.
   */
  readonly stream: (
    runId: string,
    options?: StreamOptions
  ) => Stream.Stream<StreamedPart, RunNotFoundError | EngineStoreError>
  /** Starts a failed run again, from its last good step. What was finished is not done again. */
  readonly retry: (
    runId: string
  ) => Effect.Effect<void, RunNotFoundError | RunNotFailedError | AgentNotRegisteredError | EngineStoreError>
  /**
   * Lets a tool call go ahead. `id` is that of a pending approval, or of one to come (`Engine.approvalId`). The first answer
   * counts.
   *
   * What was asked about is what is executed. `repairToolCall` and `experimental_refineToolInput` are asked once about an input; a
   * call that has another one afterwards all the same, out of another schema in a new version of the agent, is not executed, and
   * the run fails with an `ApprovedInputChangedError`. Of calls with one id in one answer of a model, the later ones are renamed:
   * `call`, `call-2`.
   */
  readonly approve: (
    runId: string,
    id: string,
    options?: { readonly reason?: string | undefined }
  ) => Effect.Effect<void, RunNotFoundError | ApprovalIdError | AgentNotRegisteredError | EngineStoreError>
  /** Refuses a tool call; the model reads so, and goes on. The first answer counts. */
  readonly deny: (
    runId: string,
    id: string,
    options?: { readonly reason?: string | undefined }
  ) => Effect.Effect<void, RunNotFoundError | ApprovalIdError | AgentNotRegisteredError | EngineStoreError>
  /**
   * Ends a run that has not ended: aborts its model call, interrupts its tools and waits for their finalizers. Where the
   * agent is registered with this engine, it answers when the run has ended.
   */
  readonly cancel: (runId: string) => Effect.Effect<void, RunNotFoundError | AgentNotRegisteredError | EngineStoreError>
  readonly get: (
    runId: string
  ) => Effect.Effect<RunInfo, RunNotFoundError | EngineStoreError>
  /** Runs, the newest first. */
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunInfo>, EngineStoreError>
  /**
   * Forgets runs that ended long ago, with their state, artifacts and parts, and answers how many. Their ids can be used again.
   *
   * Their effects stay recorded: a run of the same id does not apply them a second time. Records have a retention of their own
   * (`prune` of the `EffectStore`), which should be as long as an id may come again.
   */
  readonly prune: (options: { readonly olderThan: Duration.Input }) => Effect.Effect<number, EngineStoreError>
}
