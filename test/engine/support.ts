/** Agents on an engine in memory. */
import type { EffectStore } from "chamvi-effect"
import { Engine, type EngineOptions } from "chamvi-effect"
import { Effect, Layer } from "effect"

interface Registers<R> {
  readonly layer: Layer.Layer<never, never, Engine | R>
}

/** Runs `use` on an engine in memory, with the agents registered. */
export const withAgents =
  (agents: ReadonlyArray<Registers<never>>, options?: EngineOptions) =>
  <A, E>(use: (engine: Engine["Service"]) => Effect.Effect<A, E, Engine | EffectStore>) =>
    Effect.flatMap(Engine, use).pipe(
      Effect.provide(
        agents.reduce<Layer.Layer<Engine | EffectStore>>(
          (below, { layer }) => layer.pipe(Layer.provideMerge(below)),
          Engine.layerMemory(options)
        )
      )
    )
