/**
 * What the hooks of an effect tool know about the run that they work for.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import * as Artifacts from "./toolContext/Artifacts.ts"
import { guardMoved } from "./toolContext/guards.ts"
import * as RunState from "./toolContext/RunState.ts"

export type { ArtifactInfo, Artifacts } from "./toolContext/Artifacts.ts"
export type { RunState } from "./toolContext/RunState.ts"

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
 * A run as it is given.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions {
  /** What makes two attempts the same run: take it from the job, the message or the event that started it. */
  readonly runId: string
  readonly agent?: string | undefined
  readonly trigger?: unknown
  /** Default: a signal that never aborts. */
  readonly signal?: AbortSignal | undefined
}

const runOf = ({ agent, runId, signal, trigger }: RunOptions): Effect.Effect<Run> => {
  // from JavaScript it may be anything
  const given: unknown = runId
  return typeof given === "string" && given.trim() !== "" && given.isWellFormed()
    ? Effect.succeed({ runId, agent, trigger, signal: signal ?? new AbortController().signal })
    : Effect.die(
      new TypeError(
        `A run needs a runId, and ${
          JSON.stringify(given) ?? String(given)
        } is none: give a string that is not blank and `
          + `stays the same when the run is tried again.`
      )
    )
}

/**
 * The value `ctx` of `effectKey`, `alreadyApplied` and `options.context` of `execute`, and an Effect service inside all of
 * them.
 *
 * **Details**
 *
 * - `run` says which run it is.
 * - `state` keeps values of the run, typed by schemas.
 * - `artifacts` keeps named bytes and texts of the run.
 *
 * **Gotchas**
 *
 * - `ctx.runId`, `ctx.agent`, `ctx.trigger` and `ctx.signal` throw an error that names the new place, `ctx.run.runId`: a key
 *   built from one of them would hold "undefined" and be shared by all runs.
 * - A blank `runId` is a defect when the layer is built.
 *
 * **Example** (State of a run)
 *
 * ```ts
 * import { ToolContext } from "chamvi-effect"
 * import { Effect, Schema } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { run, state } = yield* ToolContext
 *   yield* state.update("comments", Schema.Int, (count = 0) => count + 1)
 *   return `${run.runId}: ${yield* state.get("comments", Schema.Int)}`
 * }).pipe(Effect.provide(ToolContext.layer({ runId: "run-1" })))
 *
 * await Effect.runPromise(program) // => "run-1: 1"
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class ToolContext extends Context.Service<ToolContext, {
  readonly run: Run
  readonly state: RunState.RunState
  readonly artifacts: Artifacts.Artifacts
}>()("chamvi-effect/ToolContext") {
  /**
   * The context of a run, its state and artifacts in the `KeyValueStore` of the Effect's context, as a value.
   */
  static readonly make = (
    options: RunOptions
  ): Effect.Effect<ToolContext["Service"], never, KeyValueStore.KeyValueStore> =>
    Effect.zipWith(runOf(options), KeyValueStore.KeyValueStore, (run, store) =>
      guardMoved({
        run,
        state: RunState.make(store, run.runId),
        artifacts: Artifacts.make(store, run.runId)
      }))

  /**
   * The context of a run whose state and artifacts stand in any `KeyValueStore` of `effect/persistence`: in files, in a
   * database, in Redis. Runs in one store never see each other's, and a run that is continued finds its own.
   */
  static readonly layerKeyValueStore = (
    options: RunOptions
  ): Layer.Layer<ToolContext, never, KeyValueStore.KeyValueStore> =>
    Layer.effect(ToolContext, ToolContext.make(options))

  /**
   * The context of a run whose state and artifacts are in this process's memory, and gone with the layer.
   */
  static readonly layer = (options: RunOptions): Layer.Layer<ToolContext> =>
    Layer.provide(ToolContext.layerKeyValueStore(options), KeyValueStore.layerMemory)
}
