/**
 * Runs agents durably.
 *
 * @since 0.1.0
 */
import { Context, Effect, Layer, Stream } from "effect"
import { KeyValueStore } from "effect/persistence"
import { EffectStore } from "./EffectStore.ts"
import type { Agent, RunInput } from "./engine/agentTypes.ts"
import type { IEngine } from "./engine/IEngine.ts"
import { approvalId } from "./engine/journal.ts"
import { type EngineOptions, make } from "./engine/make.ts"
import { layerMemory } from "./engine/port.ts"
import * as RunIndex from "./engine/RunIndex.ts"
import * as RunParts from "./engine/RunParts.ts"

/**
 * Runs agents, and goes on with their runs after a crash.
 *
 * **Details**
 *
 * A run is a durable workflow of Effect; each model call and each tool call in it is a step of its own, whose answer is stored
 * before the next one begins. A run that was cut off begins anew, and what was finished answers from storage. A tool call
 * that was cut off is called again, and reconciliation keeps its effect single; a model call that was cut off is generated again,
 * maybe in other words.
 *
 * - The same run id continues the run. One that is over answers what is recorded; another trigger or prompt is a conflict.
 * - A tool call that needs approval (`toolApproval`, `needsApproval`) suspends the run, and holds no process. The calls beside it go
 *   on, and are not called again later.
 * - A ledger that cannot be reached, and a key that another process holds, put the run to sleep after a few seconds, and the tool call
 *   is made again by itself, up to a minute apart. The model never hears of it. (So a call in a run waits for a key for 3 seconds at most,
 *   unless its tool has a `waitFor` of its own.)
 * - A run that fails keeps what it failed with in words; `retry` goes on from its last good step.
 *
 * `layerMemory` is for tests. `SqliteEngine.layer` (`chamvi-effect/SqliteEngine`) keeps runs in a file. Both bring the
 * `EffectStore` that effect tools record in.
 *
 * **Example** (A test of an agent)
 *
 * ```ts
 * import { defineAgent, Engine, tool } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Layer, Schema } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "tool-call", toolCallId: "1", toolName: "deploy", input: "{}" }],
 *     finishReason: { unified: "tool-calls", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 1, text: 1, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 * const deploy = tool({
 *   inputSchema: Schema.Struct({}),
 *   needsApproval: true,
 *   execute: () => Effect.succeed("deployed")
 * })
 * const agent = defineAgent({ name: "deployer", model, tools: { deploy } })
 *
 * const program = Effect.gen(function*() {
 *   const error = yield* Effect.flip(Engine.run(agent, { runId: "run-1", prompt: "Deploy." }))
 *   const { approvals, status } = yield* Engine.get("run-1")
 *   return [error._tag, status, approvals.map(({ toolName }) => toolName)]
 * })
 *
 * const Live = agent.layer.pipe(Layer.provideMerge(Engine.layerMemory()))
 *
 * await Effect.runPromise(Effect.provide(program, Live)) // => ["RunWaitingError", "waiting", ["deploy"]]
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Engine extends Context.Service<Engine, IEngine>()("chamvi-effect/Engine") {
  /** Runs in this process's memory, and effects in a ledger in memory: for tests. */
  static readonly layerMemory = (options: EngineOptions = {}): Layer.Layer<Engine | EffectStore> =>
    Layer.effect(
      Engine,
      Effect.gen(function*() {
        const index = yield* RunIndex.makeMemory
        const parts = yield* RunParts.makeMemory
        return yield* make({ ...options, index, parts, pollInterval: undefined })
      })
    ).pipe(
      Layer.provideMerge(EffectStore.layerMemory),
      Layer.provide([layerMemory, KeyValueStore.layerMemory])
    )

  /** What `approve` and `deny` call a tool call, also before it waits. */
  static readonly approvalId = approvalId

  /** `run` of the engine in context. */
  static readonly run = <Trigger, Output>(agent: Agent<string, Trigger, Output, unknown>, input: RunInput<Trigger>) =>
    Effect.flatMap(Engine, (engine) => engine.run(agent, input))

  /** `start` of the engine in context. */
  static readonly start = <Trigger, Output>(agent: Agent<string, Trigger, Output, unknown>, input: RunInput<Trigger>) =>
    Effect.flatMap(Engine, (engine) => engine.start(agent, input))

  /** `resume` of the engine in context. */
  static readonly resume = <Trigger, Output>(agent: Agent<string, Trigger, Output, unknown>, runId: string) =>
    Effect.flatMap(Engine, (engine) => engine.resume(agent, runId))

  /**
   * `stream` of the engine in context.
   *
   * **Example** (A late reader, and one that comes back)
   *
   * ```ts
   * import { defineAgent, Engine } from "chamvi-effect"
   * import { ScriptedModel } from "chamvi-effect/testing"
   * import { Effect, Layer, Stream } from "effect"
   *
   * const model = ScriptedModel.make([ScriptedModel.text("Good morning!")])
   * const agent = defineAgent({ name: "greeter", model, stream: true })
   *
   * const program = Effect.gen(function*() {
   *   yield* Engine.run(agent, { runId: "1", prompt: "Say hello." })
   *   const parts = yield* Stream.runCollect(Engine.stream("1"))
   *   const last = yield* Stream.runCollect(Engine.stream("1", { after: parts.at(-2)?.cursor }))
   *   const text = parts.flatMap(({ part }) => part.type === "text-delta" ? [part.text] : []).join("")
   *   return [text, last.map(({ part }) => part.type)]
   * })
   *
   * const Live = agent.layer.pipe(Layer.provideMerge(Engine.layerMemory()))
   *
   * await Effect.runPromise(Effect.provide(program, Live)) // => ["Good morning!", ["run-completed"]]
   * ```
   */
  static readonly stream = (...args: Parameters<IEngine["stream"]>) =>
    Stream.unwrap(Effect.map(Engine, (engine) => engine.stream(...args)))

  /** `retry` of the engine in context. */
  static readonly retry = (...args: Parameters<IEngine["retry"]>) =>
    Effect.flatMap(Engine, (engine) => engine.retry(...args))

  /** `approve` of the engine in context. */
  static readonly approve = (...args: Parameters<IEngine["approve"]>) =>
    Effect.flatMap(Engine, (engine) => engine.approve(...args))

  /** `deny` of the engine in context. */
  static readonly deny = (...args: Parameters<IEngine["deny"]>) =>
    Effect.flatMap(Engine, (engine) => engine.deny(...args))

  /** `cancel` of the engine in context. */
  static readonly cancel = (...args: Parameters<IEngine["cancel"]>) =>
    Effect.flatMap(Engine, (engine) => engine.cancel(...args))

  /** `get` of the engine in context. */
  static readonly get = (...args: Parameters<IEngine["get"]>) => Effect.flatMap(Engine, (engine) => engine.get(...args))

  /** `list` of the engine in context. */
  static readonly list = (...args: Parameters<IEngine["list"]>) =>
    Effect.flatMap(Engine, (engine) => engine.list(...args))

  /** `prune` of the engine in context. */
  static readonly prune = (...args: Parameters<IEngine["prune"]>) =>
    Effect.flatMap(Engine, (engine) => engine.prune(...args))
}
