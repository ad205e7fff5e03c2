/**
 * Every way in which the engine answers without a result.
 *
 * @since 0.1.0
 */
import { Schema } from "effect"
import { abbreviate, oneLine } from "../internal/abbreviate.ts"

const id = <Name extends string>(name: Name): `chamvi-effect/${Name}` => `chamvi-effect/${name}`

const shown = (name: string): string => `"${abbreviate(name)}"`

/**
 * No run has this id: none was started, or it was pruned.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunNotFoundError extends Schema.TaggedError<RunNotFoundError>(id("RunNotFoundError"))("RunNotFoundError", {
  runId: Schema.String
}) {
  override get message(): string {
    return `There is no run ${shown(this.runId)}: it was never started, or it was pruned.`
  }
}

/**
 * No layer of this program registers the agent with its engine, and no other process could. Nothing was started or sent.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentNotRegisteredError
  extends Schema.TaggedError<AgentNotRegisteredError>(id("AgentNotRegisteredError"))("AgentNotRegisteredError", {
    agent: Schema.String
  })
{
  override get message(): string {
    return `No agent ${shown(this.agent)} is registered with this engine. Provide its layer beside the engine's.`
  }
}

/**
 * The run belongs to another agent. Nothing was started.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunOfAnotherAgentError
  extends Schema.TaggedError<RunOfAnotherAgentError>(id("RunOfAnotherAgentError"))("RunOfAnotherAgentError", {
    runId: Schema.String,
    agent: Schema.String,
    /** The agent whose run it is. */
    startedBy: Schema.String
  })
{
  override get message(): string {
    return `Run ${shown(this.runId)} was asked for with agent ${shown(this.agent)}, and is one of agent ${
      shown(this.startedBy)
    }. Put the agent's name into the run's id.`
  }
}

/**
 * The run was started with another trigger or another prompt. Nothing was started.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunConflictError extends Schema.TaggedError<RunConflictError>(id("RunConflictError"))("RunConflictError", {
  runId: Schema.String,
  agent: Schema.String
}) {
  override get message(): string {
    return `Run ${shown(this.runId)} of agent ${
      shown(this.agent)
    } was started with another trigger or prompt. Take an id `
      + `that is new, or resume the run as it is.`
  }
}

/**
 * What a run was started with does not fit: the trigger's schema refuses it, or it cannot be stored. Nothing was started.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunInputError extends Schema.TaggedError<RunInputError>(id("RunInputError"))("RunInputError", {
  runId: Schema.String,
  agent: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `Run ${shown(this.runId)} of agent ${shown(this.agent)} was not started: ${oneLine(this.problem)}.`
  }
}

/**
 * What a run failed with, as it is kept.
 *
 * @category models
 * @since 0.1.0
 */
export const RunFailure = Schema.Struct({
  /** The tag or the name of the failure: `AiError`, `RunRowTooLargeError`, ... */
  name: Schema.String,
  message: Schema.String,
  /** The step in which it failed, from 0. */
  step: Schema.Int
})

/** @since 0.1.0 */
export type RunFailure = typeof RunFailure.Type

const inDoubt = (keys: ReadonlyArray<string>): string =>
  keys.length === 0
    ? ""
    : ` Whether ${
      keys.length === 1
        ? `its effect ${shown(keys[0]!)} was applied is`
        : `${keys.length} of its effects were applied is`
    } in doubt.`

/**
 * The run has failed. What it failed with is kept in words. `Engine.retry` goes on from its last good step.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunFailedError extends Schema.TaggedError<RunFailedError>(id("RunFailedError"))("RunFailedError", {
  runId: Schema.String,
  agent: Schema.String,
  failure: RunFailure,
  /** Its effect keys that may or may not have been applied. */
  keysInDoubt: Schema.Array(Schema.String)
}) {
  override get message(): string {
    return `Run ${shown(this.runId)} of agent ${shown(this.agent)} failed in step ${this.failure.step}: ${
      oneLine(this.failure.message)
    }${inDoubt(this.keysInDoubt)}`
  }
}

/**
 * The run was cancelled.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunCancelledError
  extends Schema.TaggedError<RunCancelledError>(id("RunCancelledError"))("RunCancelledError", {
    runId: Schema.String,
    agent: Schema.String,
    /** Its effect keys that may or may not have been applied. */
    keysInDoubt: Schema.Array(Schema.String)
  })
{
  override get message(): string {
    return `Run ${shown(this.runId)} of agent ${shown(this.agent)} was cancelled.${inDoubt(this.keysInDoubt)}`
  }
}

/**
 * A tool call that waits for a person.
 *
 * @category models
 * @since 0.1.0
 */
export const PendingApproval = Schema.Struct({
  /** What `Engine.approve` and `Engine.deny` take. */
  id: Schema.String,
  step: Schema.Int,
  toolCallId: Schema.String,
  toolName: Schema.String,
  /** The tool's input as JSON. */
  input: Schema.String
})

/** @since 0.1.0 */
export type PendingApproval = typeof PendingApproval.Type

/**
 * A tool call that sleeps: the ledger cannot be reached, or somebody else holds its effect key. It is made again by itself.
 *
 * @category models
 * @since 0.1.0
 */
export const RunTrouble = Schema.Struct({
  step: Schema.Int,
  toolCallId: Schema.String,
  toolName: Schema.String,
  /** What it met, for example `EffectStoreError`. */
  name: Schema.String,
  message: Schema.String,
  /** How often it was made, each time with several tries. */
  attempts: Schema.Int,
  /** When it is made again, in milliseconds since 1970. */
  nextAt: Schema.Finite
})

/** @since 0.1.0 */
export type RunTrouble = typeof RunTrouble.Type

/**
 * The run waits for a person, and nothing of it runs. It goes on by itself once `Engine.approve` or `Engine.deny` has been called.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunWaitingError extends Schema.TaggedError<RunWaitingError>(id("RunWaitingError"))("RunWaitingError", {
  runId: Schema.String,
  agent: Schema.String,
  approvals: Schema.Array(PendingApproval)
}) {
  override get message(): string {
    return `Run ${shown(this.runId)} of agent ${shown(this.agent)} waits for an answer about ${
      this.approvals.map(({ toolName }) => shown(toolName)).join(", ")
    }. Call Engine.approve or Engine.deny, and then Engine.resume for its result.`
  }
}

/**
 * A value of the run is larger than what the engine keeps in one row. It is what the run fails with; other runs go on.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunRowTooLargeError
  extends Schema.TaggedError<RunRowTooLargeError>(id("RunRowTooLargeError"))("RunRowTooLargeError", {
    /** What the value is: `step-0/model`, `step-0/tool/...`, `outcome`. */
    name: Schema.String,
    /** Bytes. */
    size: Schema.Int,
    limit: Schema.Int
  })
{
  override get message(): string {
    return `${this.name} takes ${this.size} bytes, and the engine keeps at most ${this.limit} in a row. Let the tool put what is `
      + `large into ctx.artifacts and answer its name, or raise the engine's maxRowSize.`
  }
}

/**
 * An answer was given to what is no id of an approval. Nothing was approved or denied.
 *
 * @category errors
 * @since 0.1.0
 */
export class ApprovalIdError extends Schema.TaggedError<ApprovalIdError>(id("ApprovalIdError"))("ApprovalIdError", {
  runId: Schema.String,
  id: Schema.String
}) {
  override get message(): string {
    return `${shown(this.id)} is no id of an approval of run ${
      shown(this.runId)
    }. Take one of the approvals that Engine.get and `
      + `RunWaitingError tell of, or make it with Engine.approvalId: it has the form <step>/<occurrence>/<toolCallId>.`
  }
}

/**
 * A call that was made before, or may have been, cannot be made any more: the tool is not there in its step, or takes less than it
 * did. It is what the run fails with, for the model would take the call for one that was never made.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunCallGoneError extends Schema.TaggedError<RunCallGoneError>(id("RunCallGoneError"))("RunCallGoneError", {
  step: Schema.Int,
  toolCallId: Schema.String,
  toolName: Schema.String
}) {
  override get message(): string {
    const call = `Call ${shown(this.toolCallId)} of tool ${shown(this.toolName)} in step ${this.step}`
    return `${call} was made before, or may have been, and the agent has no such tool in that step any more, or one whose `
      + `inputSchema refuses the call's input. Give the agent the tool back as it was (its name, its inputSchema, activeTools) and `
      + `retry the run, or start a new run.`
  }
}

/**
 * A run cannot be retried: it has not failed.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunNotFailedError
  extends Schema.TaggedError<RunNotFailedError>(id("RunNotFailedError"))("RunNotFailedError", {
    runId: Schema.String,
    status: Schema.String
  })
{
  override get message(): string {
    return `Run ${shown(this.runId)} is ${this.status}; only a failed run can be retried.`
  }
}

/**
 * The engine's storage cannot be reached or read.
 *
 * @category errors
 * @since 0.1.0
 */
export class EngineStoreError extends Schema.TaggedError<EngineStoreError>(id("EngineStoreError"))("EngineStoreError", {
  operation: Schema.String,
  problem: Schema.String,
  cause: Schema.optional(Schema.Defect())
}) {
  override get message(): string {
    return `The engine could not ${this.operation}: ${oneLine(this.problem)}`
  }
}

/**
 * Another process runs an engine on this file. `SqliteEngine.layerClient` opens it all the same.
 *
 * @category errors
 * @since 0.1.0
 */
export class EngineLockedError
  extends Schema.TaggedError<EngineLockedError>(id("EngineLockedError"))("EngineLockedError", {
    filename: Schema.String
  })
{
  override get message(): string {
    return `Another process runs an engine on ${this.filename}, and only one may. It is free again as soon as that process ends. `
      + `To start, watch and answer its runs from here use SqliteEngine.layerClient; for several processes that execute use `
      + `ClusterEngine, on Postgres.`
  }
}
/**
 * The engine cannot work with one of its settings. Nothing was started.
 *
 * @category errors
 * @since 0.1.0
 */
export class EngineSettingError
  extends Schema.TaggedError<EngineSettingError>(id("EngineSettingError"))("EngineSettingError", {
    setting: Schema.String,
    problem: Schema.String
  })
{
  override get message(): string {
    return `The engine's setting ${this.setting} ${oneLine(this.problem)}`
  }
}
