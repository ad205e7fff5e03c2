/**
 * Executions over `effect/cluster`, whose modules are marked unstable: the only place that knows of them, beside
 * `engine/port.ts`.
 */
import { Cause, Context, Duration, Effect, Layer, Option } from "effect"
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
  SocketRunner,
  SqlMessageStorage,
  SqlRunnerStorage
} from "effect/cluster"
import { Digest } from "effect/crypto"
import { RpcSerialization } from "effect/rpc"
import type { SocketServer } from "effect/socket"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { EngineSettingError, type EngineStoreError } from "../engine/errors.ts"
import { Executions, type Kept, make, type Storage } from "../engine/port.ts"
import { Notices } from "./notices.ts"

/** What the names of the tables begin with. */
export const prefix = "chamvi_engine"

/** The longest that a timer can be: a message for an agent that is registered later must wait for it. */
const untilRegistered = Duration.days(24)

/** Where the executions of a cluster are kept. */
const storageOf = Effect.map(
  Effect.context<Sharding.Sharding | MessageStorage.MessageStorage>(),
  (context): Storage => {
    const sharding = Context.get(context, Sharding.Sharding)
    const storage = Context.get(context, MessageStorage.MessageStorage)
    const placeOf = ({ executionId, workflow }: Kept) => {
      const entityId = EntityId.make(executionId)
      const group = Context.get(workflow.annotations, ClusterSchema.ShardGroup)(entityId)
      return { entityId, shardId: sharding.getShardId(entityId, group) }
    }
    return {
      forget: (kept) =>
        Effect.orDie(Effect.forEach(
          [`Workflow/${kept.workflow._tag}`, "Workflow/-/DurableClock"],
          (type) => storage.clearAddress(EntityAddress.make({ entityType: EntityType.make(type), ...placeOf(kept) })),
          { discard: true }
        )),
      owned: (kept) => Effect.suspend(() => sharding.hasShardId(placeOf(kept).shardId) ? Effect.void : abandoned)
    }
  }
)

/** Makes Effect's cluster keep no answer, and give the execution to whoever has its shard then. */
const abandoned = Effect.failCause(Cause.annotate(Cause.interrupt(), ClusterSchema.Abandon.annotation))

const fromSharding = Layer.effect(Executions, Effect.flatMap(storageOf, make)).pipe(
  Layer.provide(ClusterWorkflowEngine.layer)
)

const messages = (prefix: string) => SqlMessageStorage.layerWith({ prefix }).pipe(Layer.provide(Digest.layerWebCrypto))

/**
 * Messages in a SQLite database.
 *
 * Each process numbers its messages by itself, so that two of them can take one number, if hardly ever. Where the number is taken
 * Effect's statement does nothing on SQLite, as if the message were there already: here it fails, and whoever sends tells.
 */
const messagesInSqlite = (prefix: string) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const table = sql(`${prefix}_messages`)
    yield* sql`CREATE TRIGGER IF NOT EXISTS ${sql(`${prefix}_messages_number`)} BEFORE INSERT ON ${table}
      WHEN EXISTS (SELECT 1 FROM ${table} WHERE id = NEW.id AND message_id IS NOT NEW.message_id)
      BEGIN SELECT RAISE(ABORT, 'another process has taken the number of this message'); END`
  })).pipe(Layer.orDie, Layer.provideMerge(messages(prefix)))

/**
 * Executions of one process, on the SQLite database of its `SqlClient`. Nobody else may execute on that database: its owner's lock
 * sees to that, so that the shards need no locks of their own.
 */
export const layerSingle = (options: {
  /** How long what runs may go on while the layer closes, before it is interrupted. */
  readonly drain: Duration.Input
}): Layer.Layer<Executions, never, SqlClient.SqlClient> =>
  // its parts are known by their names alone to whoever builds layers: those of another engine would be taken for them
  Layer.fresh(fromSharding.pipe(
    Layer.provide(Sharding.layer),
    Layer.provide(Runners.layerNoop),
    Layer.provideMerge(messagesInSqlite(prefix)),
    Layer.provide([RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(ShardingConfig.layer({
      entityTerminationTimeout: options.drain,
      // never from HOST and PORT: what a new process takes over is what it finds under its own name
      runnerAddress: Option.some(RunnerAddress.make("chamvi-engine", 1)),
      entityRegistrationTimeout: untilRegistered,
      entityMessagePollInterval: Duration.seconds(1),
      simulateRemoteSerialization: false
    }))
  ))

/** The modules of a platform that connect processes, such as `NodeClusterSocket` of `@effect/platform-node`. */
export interface Transport {
  readonly layerClientProtocol: Layer.Layer<Runners.RpcClientProtocol, never, RpcSerialization.RpcSerialization>
  readonly layerSocketServer: Layer.Layer<
    SocketServer.SocketServer,
    SocketServer.SocketServerError,
    ShardingConfig.ShardingConfig
  >
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** Where other processes reach this one, and where it listens for them. */
export interface Sockets extends Address {
  readonly transport: Transport
  readonly listen?: Address | undefined
}

export interface ClientOptions {
  /** What the names of the tables begin with, and what the locks are named after, which are those of the whole database. */
  readonly prefix: string
}

export interface WorkerOptions extends ClientOptions {
  /** How often the process looks for messages that it was not told of. */
  readonly pollInterval: Duration.Duration
  /** How long a process that is not heard of keeps its runs. */
  readonly takeover: Duration.Duration
  /** How long what runs may go on where the layer closes, or the run moves to another process, before it is interrupted. */
  readonly drain: Duration.Duration
  readonly sockets: Sockets | undefined
}

const timing = ({ pollInterval, takeover }: WorkerOptions) => ({
  shardLockExpiration: takeover,
  shardLockRefreshInterval: Duration.min(Duration.seconds(10), Duration.divideUnsafe(takeover, 3)),
  refreshAssignmentsInterval: Duration.min(Duration.seconds(3), Duration.divideUnsafe(takeover, 10)),
  runnerHealthCheckInterval: Duration.min(Duration.minutes(1), takeover),
  entityMessagePollInterval: pollInterval
})

/** Executions in other processes: all that is sent to them is written to the messages. Nothing can be registered. */
const written = <R>(messages: Layer.Layer<MessageStorage.MessageStorage, never, R | ShardingConfig.ShardingConfig>) =>
  Layer.fresh(fromSharding.pipe(
    Layer.provide(Sharding.layer),
    // who only writes need not know who reads
    Layer.provide([Runners.layerNoop, RunnerHealth.layerNoop, RunnerStorage.layerMemory]),
    Layer.provideMerge(messages),
    Layer.provide(ShardingConfig.layer({ runnerAddress: Option.none() }))
  ))

/** Executions in the one process that executes on the SQLite database of the `SqlClient`, and looks for messages by itself. */
export const layerSingleClient: Layer.Layer<Executions, never, SqlClient.SqlClient> = written(messagesInSqlite(prefix))

/** Executions in other processes, on the database of the `SqlClient`. */
export const layerClient = (
  { prefix }: ClientOptions
): Layer.Layer<Executions, never, SqlClient.SqlClient | Notices> =>
  Layer.effect(
    Executions,
    Effect.gen(function*() {
      const executions = yield* Executions
      const { written } = yield* Notices
      const told =
        <Args extends ReadonlyArray<unknown>>(send: (...args: Args) => Effect.Effect<void, EngineStoreError>) =>
        (...args: Args) => Effect.andThen(send(...args), written)
      return {
        ...executions,
        start: told(executions.start),
        resume: told(executions.resume),
        send: told(executions.send),
        interrupt: told(executions.interrupt)
      }
    })
  ).pipe(Layer.provide(written(messages(prefix))))

/**
 * Executions of one of several processes, on the database of the `SqlClient`.
 *
 * What is sent to an execution is written to the database by a client, also where this very process executes it: else whoever
 * sends would wait for an agent that only other processes have.
 */
export const layerWorker = (
  options: WorkerOptions
): Layer.Layer<Executions, EngineSettingError, SqlClient.SqlClient | Notices> => {
  const { prefix, sockets } = options
  const worker = Layer.effect(
    Executions,
    Effect.gen(function*() {
      yield* (yield* Notices).onWritten((yield* Sharding.Sharding).pollStorage)
      return yield* Executions
    })
  ).pipe(
    Layer.provide(fromSharding),
    Layer.provide(sockets === undefined ? alone : connected(sockets.transport)),
    Layer.provide(Layer.orDie(SqlRunnerStorage.layerWith({ prefix }))),
    Layer.provideMerge(messages(prefix)),
    Layer.provide(ShardingConfig.layer({
      ...timing(options),
      entityRegistrationTimeout: untilRegistered,
      entityTerminationTimeout: options.drain,
      simulateRemoteSerialization: false,
      // a new one in each process, and never from HOST and PORT, which are the same in many
      runnerAddress: Option.some(
        sockets === undefined ? RunnerAddress.make(randomUUID(), 1) : RunnerAddress.make(sockets.host, sockets.port)
      ),
      runnerListenAddress: Option.map(
        Option.fromUndefinedOr(sockets?.listen),
        ({ host, port }) => RunnerAddress.make(host, port)
      )
    }))
  )
  return Layer.effect(
    Executions,
    Effect.gen(function*() {
      const built = yield* Effect.mapError(
        Layer.build(Layer.fresh(worker)),
        ({ reason }) => new EngineSettingError({ setting: "sockets", problem: `cannot be used: ${reason.message}` })
      )
      return { ...yield* Executions, register: Context.get(built, Executions).register }
    })
  ).pipe(Layer.provide(layerClient(options)))
}

/** Processes that meet in the database only. */
const alone = Sharding.layer.pipe(Layer.provide([Runners.layerNoop, RunnerHealth.layerNoop]))

/** Processes that also ask each other whether they are alive. */
const connected = ({ layerClientProtocol, layerSocketServer }: Transport) =>
  SocketRunner.layer.pipe(
    Layer.provide(RunnerHealth.layerPing.pipe(Layer.provide(Runners.layerRpc))),
    Layer.provide([layerSocketServer, layerClientProtocol]),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )
