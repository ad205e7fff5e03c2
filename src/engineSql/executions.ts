/**
 * Executions over `effect/cluster`, whose modules are marked unstable: the only place that knows of them, beside
 * `engine/port.ts`.
 */
import { Context, Duration, Effect, Layer, Option } from "effect"
import {
  ClusterSchema,
  ClusterWorkflowEngine,
  EntityAddress,
  EntityId,
  EntityType,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  RunnerStorage,
  Sharding,
  ShardingConfig,
  SqlMessageStorage
} from "effect/cluster"
import { Digest } from "effect/crypto"
import type { SqlClient } from "effect/sql"
import { Executions, type Kept, make } from "../engine/port.ts"

/** Removes all messages of an execution, and what it has to wake it. */
const forget = Effect.map(
  Effect.context<Sharding.Sharding | MessageStorage.MessageStorage>(),
  (context) => ({ executionId, workflow }: Kept) => {
    const sharding = Context.get(context, Sharding.Sharding)
    const storage = Context.get(context, MessageStorage.MessageStorage)
    const entityId = EntityId.make(executionId)
    const shardId = sharding.getShardId(
      entityId,
      Context.get(workflow.annotations, ClusterSchema.ShardGroup)(entityId)
    )
    return Effect.orDie(Effect.forEach(
      [`Workflow/${workflow._tag}`, "Workflow/-/DurableClock"],
      (type) => storage.clearAddress(EntityAddress.make({ entityType: EntityType.make(type), entityId, shardId })),
      { discard: true }
    ))
  }
)

/** Executions on any cluster. */
export const layerCluster: Layer.Layer<Executions, never, Sharding.Sharding | MessageStorage.MessageStorage> = Layer
  .effect(Executions, Effect.flatMap(forget, make)).pipe(Layer.provide(ClusterWorkflowEngine.layer))

/**
 * Executions of one process, on the database of its `SqlClient`. Nobody else may execute on that database: its owner's lock
 * sees to that, so that the shards need no locks of their own.
 */
export const layerSingle = (options: {
  /** How long what runs may go on while the layer closes, before it is interrupted. */
  readonly drain: Duration.Input
}): Layer.Layer<Executions, never, SqlClient.SqlClient> =>
  layerCluster.pipe(
    Layer.provide(Sharding.layer),
    Layer.provide(Runners.layerNoop),
    Layer.provideMerge(SqlMessageStorage.layerWith({ prefix: "chamvi_engine" })),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop, Digest.layerWebCrypto]),
    Layer.provide(ShardingConfig.layer({
      entityTerminationTimeout: options.drain,
      // never from HOST and PORT: what a new process takes over is what it finds under its own name
      runnerAddress: Option.some(RunnerAddress.make("chamvi-engine", 1)),
      // a message for an agent that is registered later must wait for it; this is the longest that a timer can
      entityRegistrationTimeout: Duration.days(24),
      entityMessagePollInterval: Duration.seconds(1),
      simulateRemoteSerialization: false
    }))
  )
