/**
 * The engine on one SQLite file: the default for one machine.
 *
 * @since 0.1.0
 */
import { Duration, Effect, Layer, type Scope } from "effect"
import { KeyValueStore } from "effect/persistence"
import { SqlClient, type SqlError } from "effect/sql"
import { realpathSync } from "node:fs"
import type { EffectStore } from "./EffectStore.ts"
import { Engine } from "./Engine.ts"
import { EngineLockedError, EngineSettingError, EngineStoreError } from "./engine/errors.ts"
import { type EngineOptions, make, type MakeOptions } from "./engine/make.ts"
import type { Executions } from "./engine/port.ts"
import { layerSingle, layerSingleClient } from "./engineSql/executions.ts"
import * as RunIndex from "./engineSql/runIndex.ts"
import * as RunParts from "./engineSql/runParts.ts"
import type { EffectStoreError } from "./errors.ts"
import { isBusy } from "./sqlite/database.ts"
import * as ExclusiveLock from "./sqlite/exclusiveLock.ts"
import * as SqliteClient from "./SqliteClient.ts"
import { SqliteEffectStore } from "./SqliteEffectStore.ts"

interface FileOptions {
  /**
   * `"durable"` (the default) flushes each step to the disk. With `"fast"` a power loss may take the last steps back, and their
   * tools are then called again; the death of the process alone does not.
   */
  readonly mode?: "durable" | "fast" | undefined
}

/**
 * @category models
 * @since 0.1.0
 */
export interface SqliteEngineOptions extends EngineOptions, FileOptions {
  /** The file, which is made if it is missing (its directory is not), or `:memory:`. */
  readonly filename: string
  /**
   * How long model calls and tool calls may go on while the layer closes, before they are interrupted; the next process calls
   * those again. Default: 15 seconds.
   */
  readonly drain?: Duration.Input | undefined
}

/**
 * The settings of a process that starts, watches and answers the runs of another process on the same file.
 *
 * @category models
 * @since 0.1.0
 */
export interface SqliteEngineClientOptions extends Pick<EngineOptions, "maxRowSize">, FileOptions {
  /** The file of the process that executes. It is made if it is missing (its directory is not). */
  readonly filename: string
  /** How often to look for what the other process has written. Default: 200 milliseconds. */
  readonly pollInterval?: Duration.Input | undefined
}

const failure = (filename: string) => (cause: SqlError.SqlError) =>
  new EngineStoreError({
    operation: `open ${filename}`,
    problem: `${
      cause.reason.message ?? cause.message
    } (its folder must exist on a local disk, and the file must be a SQLite database)`,
    cause
  })

/** Beside the real file, so that processes that reach it over different links agree. */
const lock = Effect.fnUntraced(function*(filename: string) {
  if (filename === ":memory:") return
  yield* Effect.mapError(
    ExclusiveLock.take(`${realpathSync(filename)}.engine`),
    (error) => isBusy(error) ? new EngineLockedError({ filename }) : failure(filename)(error)
  )
})

const open = ({ filename, mode }: Pick<SqliteEngineOptions, "filename" | "mode">) =>
  Effect.mapError(SqliteClient.make({ filename, mode }), failure(filename))

const checked = Effect.fnUntraced(function*(options: SqliteEngineClientOptions) {
  const { filename, pollInterval = "200 millis" } = options
  const refused = (setting: string, problem: string) => Effect.fail(new EngineSettingError({ setting, problem }))
  if (filename === ":memory:") {
    return yield* refused(
      "filename",
      "is :memory:, which no other process reaches; name the file that the engine is on"
    )
  }
  if (!Duration.isGreaterThan(Duration.fromInputUnsafe(pollInterval), Duration.zero)) {
    return yield* refused("pollInterval", "is no time; take 200 milliseconds or so")
  }
  return { ...options, pollInterval }
})

const layerOn = <E>(
  client: Effect.Effect<SqlClient.SqlClient, E, Scope.Scope>,
  options: Omit<MakeOptions, "index" | "parts"> & Pick<SqliteEngineOptions, "filename" | "mode">,
  executions: Layer.Layer<Executions, never, SqlClient.SqlClient>
) =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const index = yield* RunIndex.make
      const parts = yield* RunParts.make
      return yield* make({ ...options, index, parts })
    })
  ).pipe(
    Layer.provide([executions, KeyValueStore.layerSql({ table: "chamvi_key_values" })]),
    Layer.provideMerge(SqliteEffectStore.layer({ filename: options.filename, mode: options.mode })),
    Layer.provide(Layer.effect(SqlClient.SqlClient, client))
  )

/**
 * The engine and the ledger of effects in one SQLite file, over Node's built-in `node:sqlite`.
 *
 * **Details**
 *
 * - One process runs an engine on a file. A second one fails with `EngineLockedError`: the first holds a lock beside the file,
 *   in `<filename>.engine`, which the kernel frees when it ends. Others use `layerClient`: they start, watch, answer, cancel and
 *   retry its runs through the file.
 * - Runs go on by themselves when the next process provides the layer and those of their agents: model calls and tool calls that
 *   were finished answer from the file.
 * - What a run keeps in `ctx.state` and `ctx.artifacts` is in the same file.
 *
 * **Gotchas**
 *
 * The file and its directory must be on a local disk: SQLite's locks do not hold on network file systems.
 *
 * **Example** (A run in a file)
 *
 * ```ts
 * import { defineAgent, Engine } from "chamvi-effect"
 * import { SqliteEngine } from "chamvi-effect/SqliteEngine"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Layer } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "text", text: "Hello!" }],
 *     finishReason: { unified: "stop", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 1, text: 1, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 * const greeter = defineAgent({ name: "greeter", model })
 *
 * const program = Engine.run(greeter, { runId: "1", prompt: "Say hello." })
 * const Live = greeter.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename: ":memory:" })))
 *
 * await Effect.runPromise(Effect.map(Effect.provide(program, Live), (result) => result.text)) // => "Hello!"
 * ```
 *
 * **Example** (A process beside the one that executes)
 *
 * ```ts no-run
 * import { Engine } from "chamvi-effect"
 * import { SqliteEngine } from "chamvi-effect/SqliteEngine"
 * import { Effect } from "effect"
 *
 * const waiting = Effect.flatMap(Engine, (engine) => engine.list({ status: "waiting" })).pipe(
 *   Effect.provide(SqliteEngine.layerClient({ filename: "support.sqlite" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const SqliteEngine = {
  /** The engine, and the ledger that its effect tools use. */
  layer: (
    options: SqliteEngineOptions
  ): Layer.Layer<Engine | EffectStore, EngineStoreError | EngineLockedError | EffectStoreError> =>
    layerOn(
      Effect.tap(open(options), () => lock(options.filename)),
      { ...options, pollInterval: "1 second" },
      layerSingle({ drain: options.drain ?? "15 seconds" })
    ),
  /**
   * The engine of a process that starts, watches and answers the runs of the one that provides `layer`, and executes none: it
   * registers no agents. It takes no lock, and what it asks for waits in the file while nobody executes.
   */
  layerClient: (
    options: SqliteEngineClientOptions
  ): Layer.Layer<Engine | EffectStore, EngineStoreError | EngineSettingError | EffectStoreError> =>
    Layer.unwrap(Effect.map(
      checked(options),
      (options) => layerOn(open(options), { ...options, elsewhere: true }, layerSingleClient)
    ))
} as const
