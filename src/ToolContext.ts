/**
 * What the hooks of an effect tool know about the run that they work for.
 *
 * @since 0.1.0
 */
import { Context } from "effect"
import type { Artifacts } from "./toolContext/Artifacts.ts"
import type { RunState } from "./toolContext/RunState.ts"

/**
 * The run of a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Run {
  /** The run's id; the first part of every default effect key. */
  readonly runId: string
  /** The name of the agent that runs, or `undefined` outside of one. */
  readonly agent: string | undefined
  /** What started the run, or `undefined`. */
  readonly trigger: unknown
  /** Aborts when the run is stopped. */
  readonly signal: AbortSignal
}

/**
 * The value `ctx` of `effectKey`, `alreadyApplied` and `options.context` of `execute`, and an Effect service inside all of
 * them.
 *
 * @category services
 * @since 0.1.0
 */
export class ToolContext extends Context.Service<ToolContext, {
  readonly run: Run
  readonly state: RunState
  readonly artifacts: Artifacts
}>()("chamvi-effect/ToolContext") {}
