/**
 * Runs agents durably.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { EffectStore } from "./EffectStore.ts"
import type { IEngine } from "./engine/IEngine.ts"
import { approvalId } from "./engine/journal.ts"
import { type EngineOptions, make } from "./engine/make.ts"
import { layerMemory } from "./engine/port.ts"
import { makeMemory } from "./engine/RunIndex.ts"

export class Engine extends Context.Service<Engine, IEngine>()("chamvi-effect/Engine") {
  /** Runs in this process's memory, and effects in a ledger in memory: for tests. */
  static readonly layerMemory = (options: EngineOptions = {}): Layer.Layer<Engine | EffectStore> =>
    Layer.effect(
      Engine,
      Effect.flatMap(makeMemory, (index) => make({ ...options, index, pollInterval: undefined }))
    ).pipe(
      Layer.provideMerge(EffectStore.layerMemory),
      Layer.provide([layerMemory, KeyValueStore.layerMemory])
    )

  /** What `approve` and `deny` call a tool call, also before it waits. */
  static readonly approvalId = approvalId
}
