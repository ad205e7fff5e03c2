/**
 * Effect tools bound to a run: the reconciled `execute` in place of the one that refuses.
 *
 * @since 0.1.0
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Context, Effect, Fiber, type Scope } from "effect"
import { contextOf } from "./ai/callContext.ts"
import { type EffectToolDefinition, getEffectToolDefinition } from "./ai/effectToolDefinition.ts"
import { type Allow, reconciledCall } from "./ai/reconciledCall.ts"
import { carryable } from "./ai/ToolFailure.ts"
import { EffectStore, type IEffectStore } from "./EffectStore.ts"
import type { GentleFiber } from "./internal/gentleInterrupt.ts"
import { runCall } from "./internal/promiseBridge.ts"
import { copyTool, mapTools } from "./internal/toolCopy.ts"
import { retain } from "./store/lifetime.ts"
import { ToolContext } from "./ToolContext.ts"

export type { Allow } from "./ai/reconciledCall.ts"

/**
 * What binding needs to know about the call that the tools are bound for.
 *
 * @internal
 */
export interface BindOptions {
  /** The context of the fiber that calls: it may hold an `EffectStore` and a `ToolContext`. */
  readonly context: Context.Context<never>
  /** Starts an execution and keeps an eye on it, so that none outlives the call. */
  readonly track: <A>(start: () => Promise<A>) => Promise<A>
  /** Makes what an execution rejects with, out of the value that it failed with. */
  readonly rejection: (failure: unknown) => unknown
}

type Tools = Readonly<Record<string, object>>
type Execute = (input: unknown, options: ToolExecutionOptions<unknown>) => Promise<unknown>

/** The calls of one wrap that are under way; closing the scope takes each off its application's waiters. */
const callsInScope = Effect.acquireRelease(
  Effect.sync(() => new Set<GentleFiber<unknown, unknown>>()),
  (calls) =>
    Effect.forEach(Array.from(calls), ({ fiber, interrupt }) => {
      interrupt()
      return Fiber.await(fiber)
    }, { concurrency: "unbounded", discard: true })
)

interface Bind extends BindOptions {
  readonly ctx: ToolContext["Service"]
  readonly store: IEffectStore
  readonly allow: Allow | undefined
}

const bind = <T extends Tools>(tools: T, options: Bind): Effect.Effect<T, never, Scope.Scope> =>
  Effect.gen(function*() {
    yield* retain(options.store)
    const calls = yield* callsInScope
    const stop = () => calls.forEach(({ interrupt }) => interrupt())
    const { signal } = options.ctx.run
    signal.addEventListener("abort", stop)
    yield* Effect.addFinalizer(() => Effect.sync(() => signal.removeEventListener("abort", stop)))
    return mapTools(tools, (tool, name) => {
      const definition = getEffectToolDefinition(tool)
      return definition === undefined ? tool : copyTool(tool, { execute: executor(name, definition, options, calls) } as object)
    }) as T
  })

const executor = (
  name: string,
  definition: EffectToolDefinition,
  options: Bind,
  calls: Set<GentleFiber<unknown, unknown>>
): Execute => {
  const { ctx, rejection, track } = options
  const call = reconciledCall({ name, definition, ctx, store: options.store, allow: options.allow })
  const runIn = (caller: Context.Context<never>) =>
    runCall(Context.add(contextOf(definition.captured, caller), ToolContext, ctx) as Context.Context<never>)
  const bound = runIn(options.context)
  const started = (running: GentleFiber<unknown, unknown>) => {
    calls.add(running)
    running.fiber.addObserver(() => calls.delete(running))
  }
  return (input, callOptions) => {
    const stopped = ctx.run.signal
    if (stopped.aborted) return Promise.reject(stopped.reason)
    // a call from inside an Effect belongs to that fiber; one that the AI SDK makes, to the fiber that wrapped
    const caller = Fiber.getCurrent()
    const run = caller === undefined ? bound : runIn(caller.context)
    return track(() => run(call(input, callOptions), callOptions.abortSignal, started))
      .catch((error: unknown) => Promise.reject(stopped.aborted ? stopped.reason : rejection(error)))
  }
}

/**
 * Reconciles the effect tools of a set outside `generateText` and the engine: for plain `ai`, for `ToolLoopAgent`, for a
 * loop of your own, for a test.
 *
 * **Details**
 *
 * `store` is any `IEffectStore`. Tools that are not effect tools come back as the identical object; effect tools come back
 * as copies that keep every other property and call options. A wrapped tool that is wrapped again is wrapped anew from
 * the original.
 *
 * `allow(toolName)` is asked before each call of an effect tool; anything but `true`, or a failure, refuses it with
 * `ToolNotAllowedError` before any hook runs.
 *
 * When the scope closes, calls that are under way leave: the last one waiting for an effect interrupts it, and closing
 * waits for its finalizers.
 *
 * **Example** (Plain `ai`, reconciled)
 *
 * ```ts
 * import { defineEffectTool, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
 * import { Effect, Schema } from "effect"
 *
 * let applied = 0
 * const label = defineEffectTool({
 *   description: "Adds a label.",
 *   inputSchema: Schema.Struct({ label: Schema.String }),
 *   execute: ({ label }) => Effect.sync(() => `${label} #${++applied}`)
 * })
 *
 * const program = Effect.gen(function*() {
 *   const tools = yield* wrapToolsForRun({ label: yield* label }, yield* ToolContext, yield* EffectStore)
 *   const call = (toolCallId: string) =>
 *     Effect.promise(() => tools.label.execute({ label: "bug" }, { toolCallId, messages: [], context: {} }))
 *   return yield* Effect.all([call("1"), call("2")])
 * }).pipe(Effect.scoped, Effect.provide([EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })]))
 *
 * await Effect.runPromise(program) // => ["bug #1", "bug #1"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const wrapToolsForRun = <T extends Tools>(
  tools: T,
  ctx: ToolContext["Service"],
  store: IEffectStore,
  allow?: Allow
): Effect.Effect<T, never, Scope.Scope> =>
  Effect.contextWith((context: Context.Context<never>) =>
    bind(tools, { context, ctx, store, allow, track: (start) => start(), rejection: carryable })
  )

/**
 * Binds the effect tools of a set to the caller's store and run. Other tools come back as the identical object.
 *
 * @internal
 */
export const bindEffectTools = <T extends Tools>(
  tools: T,
  options: BindOptions
): Effect.Effect<T, never, Scope.Scope> => {
  const store = Context.getOrUndefined(options.context, EffectStore as Context.Key<EffectStore, IEffectStore>)
  const ctx = Context.getOrUndefined(options.context, ToolContext as Context.Key<ToolContext, ToolContext["Service"]>)
  if (Object.values(tools).every((tool) => getEffectToolDefinition(tool) === undefined)) return Effect.succeed(tools)
  return store !== undefined && ctx !== undefined
    ? bind(tools, { ...options, store, ctx, allow: undefined })
    : Effect.succeed(refusing(tools, options, store === undefined ? "EffectStore" : "ToolContext"))
}

// The types ask for both services; tools that are typed as a loose set come here without.
const refusing = <T extends Tools>(tools: T, options: BindOptions, missing: string): T =>
  mapTools(tools, (tool, name) =>
    getEffectToolDefinition(tool) === undefined ? tool : copyTool(tool, {
      execute: () =>
        Promise.reject(
          options.rejection(
            new Error(
              `The effect tool "${name}" was called without ${missing}, and nothing was executed. Provide ${missing} `
                + `around generateText.`
            )
          )
        )
    } as object)) as T
