/** Agents on an engine. */
import { type EffectStore, Engine, type EngineOptions } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Layer } from "effect"

interface Registers<R> {
  readonly layer: Layer.Layer<never, never, Engine | R>
}

/** Runs `use` on an engine, with the agents registered. */
const on =
  (engine: (options: EngineOptions) => Layer.Layer<Engine | EffectStore, unknown>) =>
  (agents: ReadonlyArray<Registers<never>>, options: EngineOptions = {}) =>
  <A, E>(use: (engine: Engine["Service"]) => Effect.Effect<A, E, Engine | EffectStore>): Effect.Effect<A, unknown> =>
    Effect.flatMap(Engine, use).pipe(
      Effect.provide(
        agents.reduce<Layer.Layer<Engine | EffectStore, unknown>>(
          (below, { layer }) => layer.pipe(Layer.provideMerge(below)),
          engine(options)
        )
      )
    )

export const withAgents = on(Engine.layerMemory)

/** The engines that run in one process. */
export const engines = [
  { where: "in memory", withAgents },
  {
    where: "on SQLite",
    withAgents: on((options) => SqliteEngine.layer({ ...options, filename: ":memory:", drain: 0 }))
  }
] as const
