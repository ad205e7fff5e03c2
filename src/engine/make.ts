/**
 * The engine over its storage and its executions.
 */
import { Duration, Effect, type Scope } from "effect"
import { KeyValueStore } from "effect/persistence"
import { EffectStore } from "../EffectStore.ts"
import type { AgentDefinition, RunInput } from "./agentTypes.ts"
import * as Begin from "./begin.ts"
import { AgentNotRegisteredError } from "./errors.ts"
import type { Ground } from "./execute.ts"
import * as Gate from "./Gate.ts"
import type { AnyAgent, IEngine } from "./IEngine.ts"
import * as Operate from "./operate.ts"
import { Executions } from "./port.ts"
import * as Registry from "./registry.ts"
import * as Results from "./results.ts"
import { isOver, type RunIndex } from "./RunIndex.ts"
import * as RunParts from "./RunParts.ts"
import * as Runs from "./runs.ts"
import * as StreamReader from "./StreamReader.ts"
import { defaultMaxRowSize } from "./values.ts"
import { watched } from "./watched.ts"

/**
 * The settings of an engine.
 *
 * @category models
 * @since 0.1.0
 */
export interface EngineOptions {
  /** How many runs this process executes at once; others wait in order of arrival, agents in turn. Default: 50. */
  readonly concurrency?: number | undefined
  /** The largest row that the engine keeps of a run, in bytes. Default: 1 MiB. */
  readonly maxRowSize?: number | undefined
}

export interface MakeOptions extends EngineOptions {
  readonly index: RunIndex
  readonly parts: RunParts.RunParts
  /** How often to look for changes that other processes made to a run that somebody waits for. */
  readonly pollInterval: Duration.Input | undefined
  /** Whether other processes run agents too, so that one that is not registered here may be registered there. */
  readonly elsewhere?: boolean | undefined
  /** Calls what it is given with the runs that other processes have changed. */
  readonly onChanged?: ((hear: (runId: string) => void) => Effect.Effect<void, never, Scope.Scope>) | undefined
  /** How long a tool call bears trouble of its effect store before its run sleeps. Default: 3 seconds. */
  readonly patience?: Duration.Input | undefined
}

/** What an agent's layer does with an engine. */
export type Internals = Pick<Registry.Registry, "register">

const internals = new WeakMap<IEngine, Internals>()

/** Registers an agent with an engine of this project's making. */
export const register = (engine: IEngine, definition: AgentDefinition): Effect.Effect<void, never, Scope.Scope> =>
  internals.get(engine)?.register(definition)
    ?? Effect.die(
      new TypeError("This Engine was not made by a layer of the library, and no agent can be registered with it.")
    )

export const make = Effect.fnUntraced(function*(options: MakeOptions) {
  const executions = yield* Executions
  const { changed, hear, index } = watched(options.index)
  yield* options.onChanged?.(hear) ?? Effect.void
  const ground: Ground = {
    index,
    parts: RunParts.telling(options.parts, (runId) => Effect.sync(() => hear(runId))),
    store: yield* EffectStore,
    keyValues: yield* KeyValueStore.KeyValueStore,
    gate: Gate.make(options.concurrency ?? 50),
    maxRowSize: options.maxRowSize ?? defaultMaxRowSize,
    patience: Duration.toMillis(options.patience ?? "3 seconds")
  }
  const runs = Runs.make({ ground, executions, changed, pollInterval: options.pollInterval })
  const registry = Registry.make(ground, executions, runs)
  const begin = Begin.make(runs, index)
  const resultOf = Results.make(runs, ground.store)

  const checkReached = (agent: string) =>
    Effect.suspend(() =>
      options.elsewhere === true || registry.has(agent)
        ? Effect.void
        : Effect.fail(new AgentNotRegisteredError({ agent }))
    )
  const start = (agent: AnyAgent, input: unknown) =>
    Effect.andThen(checkReached(agent.name), begin(agent, input as RunInput<unknown>))

  const engine: IEngine = {
    run: (agent, input) => Effect.andThen(start(agent, input), resultOf(agent, input.runId)) as never,
    start,
    resume: (agent, runId) =>
      Effect.gen(function*() {
        const row = yield* runs.rowOf(runId)
        yield* runs.checkOwner(agent, row)
        if (!isOver(row) && row.status !== "failed") {
          yield* checkReached(agent.name)
          yield* runs.goOn(row)
          if (!row.cancelling) yield* runs.resume(row)
        }
        return yield* resultOf(agent, runId)
      }) as never,
    stream: StreamReader.make({ runs, parts: ground.parts }),
    ...Operate.make({ runs, index, store: ground.store, checkReached, isHere: registry.has })
  }
  internals.set(engine, registry)
  return engine
})
