/**
 * The engine on one Postgres: any number of processes run agents together.
 *
 * @since 0.1.0
 */
import { PgClient } from "@effect/sql-pg"
import { Config, Context, Duration, Effect, Layer, type Redacted } from "effect"
import { KeyValueStore } from "effect/persistence"
import { SqlClient, type SqlError } from "effect/sql"
import type { EffectStore } from "./EffectStore.ts"
import { Engine } from "./Engine.ts"
import { EngineSettingError, EngineStoreError } from "./engine/errors.ts"
import { type EngineOptions, make } from "./engine/make.ts"
import type { Executions } from "./engine/port.ts"
import type { RunIndex } from "./engine/RunIndex.ts"
import * as RunParts from "./engine/RunParts.ts"
import { type Address, layerClient, layerWorker, prefix, type Transport } from "./engineSql/executions.ts"
import * as Notices from "./engineSql/notices.ts"
import * as RunIndexSql from "./engineSql/runIndex.ts"
import * as RunPartsSql from "./engineSql/runParts.ts"
import type { EffectStoreError } from "./errors.ts"
import { sha256 } from "./internal/sha256.ts"
import { checkName, quoted } from "./sql/names.ts"
import { schemaOf } from "./sql/postgres/migrate.ts"
import { SqlEffectStore } from "./SqlEffectStore.ts"

/**
 * The settings of a process that starts and watches runs, and executes none.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClusterEngineClientOptions extends Pick<EngineOptions, "maxRowSize"> {
  /** Where the Postgres is: `postgres://user:password@host/database`. */
  readonly url: Redacted.Redacted
  /**
   * The schema of all tables; it is made if it is missing. Each has an engine of its own. Default: the first schema of the
   * connection's search path.
   */
  readonly schema?: string | undefined
  /**
   * The most connections that this process takes. At least 2: a worker keeps one for its locks. From 4 on, one listens for
   * notices, so that nobody has to wait for `pollInterval`. Default: 10.
   */
  readonly maxConnections?: number | undefined
  /**
   * How often to look for what other processes have written, where no notice came; timers of runs are late by that much at most.
   * Default: 1 second.
   */
  readonly pollInterval?: Duration.Input | undefined
}

/**
 * The settings of a worker.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClusterEngineOptions extends EngineOptions, ClusterEngineClientOptions {
  /**
   * How long model calls and tool calls may go on while the layer closes, or while a run moves to a worker that has joined; then
   * they are interrupted, and another worker calls them again. Longer than the longest tool, and shorter than the time that
   * the platform leaves a process to stop. Default: 1 minute.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * After how long without a sign of life the runs of a worker go on elsewhere. At least 3 seconds. Default: 35 seconds.
   *
   * The shorter it is, the shorter a stall of the database, or of the process, that makes a worker give up its runs, which
   * interrupts their tools: a third of it is enough.
   */
  readonly takeover?: Duration.Input | undefined
  /**
   * Lets workers also ask each other whether they are alive, so that one that has died is noticed sooner. Without it they meet
   * in the database alone, and open no port.
   */
  readonly sockets?: ClusterSockets | undefined
}

/**
 * How workers reach each other.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClusterSockets extends Address {
  /** The module `NodeClusterSocket` of `@effect/platform-node`. */
  readonly transport: Transport
  /** Where others reach this worker: a name or an address of its own, never one that it shares with another worker. */
  readonly host: string
  readonly port: number
  /** Where it listens, if that is another address. Whoever can connect to it can send it messages: keep it private. */
  readonly listen?: Address | undefined
}

type Errors = EngineStoreError | EngineSettingError | EffectStoreError

const setting = (name: string, problem: string | undefined) =>
  problem === undefined ? Effect.void : Effect.fail(new EngineSettingError({ setting: name, problem }))

const defaultConnections = 10

/** The largest value of Postgres: a row that was written can be read, and none ends the connection that others need. */
const maxMessageSize = 1024 * 1024 * 1024

/** A row of messages holds a value as text in text. */
const maxMaxRowSize = 256 * 1024 * 1024

const checked = Effect.fnUntraced(function*(options: ClusterEngineClientOptions & Partial<ClusterEngineOptions>) {
  const { maxConnections = defaultConnections, maxRowSize, pollInterval = "1 second", takeover = "35 seconds" } =
    options
  yield* setting(
    "maxConnections",
    Number.isInteger(maxConnections) && maxConnections >= 2
      ? undefined
      : `is ${maxConnections}; it takes at least 2, since one connection is kept for locks`
  )
  yield* setting(
    "maxRowSize",
    maxRowSize === undefined || maxRowSize <= maxMaxRowSize
      ? undefined
      : `is ${maxRowSize}, and Postgres keeps at most ${maxMaxRowSize} bytes of a run in a row`
  )
  if (options.schema !== undefined) yield* checkName("schema", options.schema)
  const [poll, over, drain] = [pollInterval, takeover, options.drain ?? "1 minute"].map(Duration.fromInputUnsafe)
  yield* setting(
    "pollInterval",
    Duration.isGreaterThan(poll!, Duration.zero) ? undefined : "is no time; take a second or so"
  )
  yield* setting(
    "takeover",
    Duration.isGreaterThanOrEqualTo(over!, Duration.seconds(3)) && Duration.isFinite(over!)
      ? undefined
      : `is ${Duration.format(over!)}; below 3 seconds each hiccup of the database would interrupt tools`
  )
  return { ...options, sockets: options.sockets, maxConnections, pollInterval: poll!, takeover: over!, drain: drain! }
})

type Checked = Effect.Success<ReturnType<typeof checked>>

const failure = (cause: SqlError.SqlError) =>
  new EngineStoreError({ operation: "reach its Postgres", problem: cause.reason.message ?? cause.message, cause })

const database = ({ maxConnections, schema, url }: Checked) =>
  PgClient.layerFrom(Effect.mapError(
    Effect.tap(
      PgClient.make({
        url,
        maxConnections,
        maxMessageSize,
        applicationName: "chamvi-effect engine",
        // the heartbeats of workers are local times: they must not jump with the clocks of a country
        startupParameters: { timezone: "UTC", ...schema === undefined ? {} : { search_path: quoted(schema) } }
      }),
      (sql) => sql`SELECT 1`
    ),
    failure
  ))

/** Makes its table one process at a time: Postgres fails those that make one at once. */
const makeKeyValues = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope
  const store = Layer.buildWithScope(KeyValueStore.layerSql({ table: "chamvi_key_values" }), scope)
  const built = yield* Effect.mapError(
    sql.withTransaction(Effect.andThen(sql`SELECT pg_advisory_xact_lock(hashtext('chamvi_key_values'))`, store)),
    failure
  )
  return Context.get(built, KeyValueStore.KeyValueStore)
})

/** Locks and notices belong to the whole database, and not to a schema. */
const prefixOf = (schema: string | undefined) =>
  Effect.map(
    schema === undefined
      ? Effect.flatMap(SqlClient.SqlClient, (sql) => schemaOf(sql, undefined))
      : Effect.succeed(schema),
    (schema) => schema === "public" ? prefix : `${prefix}_${sha256(schema).slice(0, 8)}`
  )

/** The index, which tells other processes of changes. */
const telling = (index: RunIndex, { changed }: Notices.Notices["Service"]): RunIndex => ({
  ...index,
  update: (runId, change) => Effect.tap(index.update(runId, change), () => changed(runId)),
  remove: (row, rest) => Effect.tap(index.remove(row, rest), () => changed(row.runId))
})

const layerOf = (
  options: Checked,
  executions: (
    prefix: string
  ) => Layer.Layer<Executions, EngineSettingError, SqlClient.SqlClient | Notices.Notices>
): Layer.Layer<Engine | EffectStore, Errors> =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const notices = yield* Notices.Notices
      const index = telling(yield* RunIndexSql.make, notices)
      const parts = RunParts.telling(yield* RunPartsSql.make, notices.changed)
      return yield* make({ ...options, index, parts, elsewhere: true, onChanged: notices.onChanged })
    })
  ).pipe(
    Layer.provide([
      Layer.unwrap(Effect.map(prefixOf(options.schema), executions)),
      Layer.effect(KeyValueStore.KeyValueStore, makeKeyValues)
    ]),
    Layer.provide(Layer.effect(
      Notices.Notices,
      Effect.gen(function*() {
        const channel = yield* prefixOf(options.schema)
        return yield* Notices.make(yield* PgClient.PgClient, channel, options.maxConnections)
      })
    )),
    // it makes the schema
    Layer.provideMerge(SqlEffectStore.layer({ schema: options.schema })),
    Layer.provide(database(options))
  )

const worker = (options: ClusterEngineOptions) =>
  Effect.map(checked(options), (options) => layerOf(options, (prefix) => layerWorker({ ...options, prefix })))

const client = (options: ClusterEngineClientOptions) =>
  Effect.map(checked(options), (options) => layerOf(options, (prefix) => layerClient({ prefix })))

/**
 * The engine and the ledger of effects on one Postgres, for any number of processes.
 *
 * **Details**
 *
 * - Workers (`layer`) share the runs among them. They meet in the database alone: they open no port, and each has an address that
 *   is new and random. `HOST` and `PORT` of the environment mean nothing.
 * - A worker that dies is missed after `takeover`; another one then goes on with its runs. Model calls and tool calls that were
 *   finished answer from the database; those that were cut off are made again, and reconciliation keeps their effects single.
 * - A worker that stops (its layer closes) lets calls end for `drain`, and hands its runs over at once. So does one that gives
 *   runs to a worker that has joined.
 * - An effect key that a dead worker held stays held until its lease ends, however soon another worker has the run: that nobody has
 *   heard of a process does not mean that it does nothing. The run sleeps meanwhile, and the model never hears of it.
 * - A worker that freezes, and thaws after others have its runs, interrupts their tools; their keys are in doubt. A request that had
 *   left by then may come to a second application where the lease is over too: the events say `takenOver` and `claimLost`.
 * - Clients (`layerClient`) start, watch, approve, deny, cancel and retry runs, and execute none. Agents are named there, not
 *   registered; a registration has no effect.
 * - Who waits for a run hears of its changes by notices of Postgres, and looks every `pollInterval`.
 * - Postgres may be away for a while: calls of the engine fail with `EngineStoreError`, runs stand still, and go on by
 *   themselves.
 *
 * **Gotchas**
 *
 * - All workers should register the same agents. A run belongs to a worker by its id: where that one does not know the agent, the
 *   run (and each answer to it) waits until a worker that does has taken over. A rolling deploy loses nothing.
 * - A worker keeps a session of Postgres for its locks and one to listen: a pooler that hands out connections by the
 *   transaction does not do. Give it the server itself, or a pooler in session mode.
 * - Postgres 15 and 18 are tested. Before 14 a frozen worker keeps its runs until its connection ends.
 *
 * **Example** (A worker)
 *
 * ```ts no-run
 * import { defineAgent } from "chamvi-effect"
 * import { ClusterEngine } from "chamvi-effect/ClusterEngine"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Config, Layer } from "effect"
 *
 * const support = defineAgent({ name: "support", model: "openai/gpt-5" })
 *
 * const Worker = support.layer.pipe(
 *   Layer.provide(ClusterEngine.layerConfig({
 *     url: Config.Redacted("DATABASE_URL"),
 *     takeover: Config.Duration("TAKEOVER").pipe(Config.withDefault("35 seconds"))
 *   }))
 * )
 *
 * NodeRuntime.runMain(Layer.launch(Worker))
 * ```
 *
 * **Example** (A client)
 *
 * ```ts no-run
 * import { defineAgent, Engine } from "chamvi-effect"
 * import { ClusterEngine } from "chamvi-effect/ClusterEngine"
 * import { Config, Effect } from "effect"
 *
 * const support = defineAgent({ name: "support", model: "openai/gpt-5" })
 *
 * const program = Engine.run(support, { runId: "ticket-7", prompt: "The parcel never came." }).pipe(
 *   Effect.provide(ClusterEngine.layerClientConfig({ url: Config.Redacted("DATABASE_URL") }))
 * )
 * ```
 *
 * **Example** (Workers that ask each other whether they are alive)
 *
 * ```ts no-run
 * import { ClusterEngine } from "chamvi-effect/ClusterEngine"
 * import { NodeClusterSocket } from "@effect/platform-node"
 * import { Redacted } from "effect"
 *
 * const Connected = ClusterEngine.layer({
 *   url: Redacted.make("postgres://localhost/agents"),
 *   sockets: {
 *     transport: NodeClusterSocket,
 *     host: "worker-1.internal",
 *     port: 34431,
 *     listen: { host: "0.0.0.0", port: 34431 }
 *   }
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const ClusterEngine = {
  /** A worker: the engine, and the ledger that its effect tools use. It executes the runs of the agents that it registers. */
  layer: (options: ClusterEngineOptions): Layer.Layer<Engine | EffectStore, Errors> => Layer.unwrap(worker(options)),
  /** A worker whose settings come from the program's configuration. */
  layerConfig: (
    config: Config.Wrap<ClusterEngineOptions>
  ): Layer.Layer<Engine | EffectStore, Errors | Config.ConfigError> =>
    Layer.unwrap(Effect.flatMap(Config.unwrap(config), worker)),
  /** The engine of a process that starts, watches and answers runs, and executes none: it registers no agents. */
  layerClient: (options: ClusterEngineClientOptions): Layer.Layer<Engine | EffectStore, Errors> =>
    Layer.unwrap(client(options)),
  /** A client whose settings come from the program's configuration. */
  layerClientConfig: (
    config: Config.Wrap<ClusterEngineClientOptions>
  ): Layer.Layer<Engine | EffectStore, Errors | Config.ConfigError> =>
    Layer.unwrap(Effect.flatMap(Config.unwrap(config), client))
} as const
