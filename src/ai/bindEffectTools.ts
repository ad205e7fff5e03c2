/**
 * Puts the reconciled `execute` into effect tools, for one run and one scope.
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Context, Effect, Fiber, type Scope } from "effect"
import { EffectStore, type IEffectStore } from "../EffectStore.ts"
import type { GentleFiber } from "../internal/gentleInterrupt.ts"
import { runCall } from "../internal/promiseBridge.ts"
import { copyTool, mapTools } from "../internal/toolCopy.ts"
import { retain } from "../store/lifetime.ts"
import { ToolContext } from "../ToolContext.ts"
import { contextOf } from "./callContext.ts"
import { type EffectToolDefinition, getEffectToolDefinition, refusal } from "./effectToolDefinition.ts"
import { type Allow, reconciledCall } from "./reconciledCall.ts"
import { ToolOutput } from "./streamToolOutput.ts"

/** What binding needs to know about the call that the tools are bound for. */
export interface BindOptions {
  /** The context of the fiber that calls: it may hold an `EffectStore` and a `ToolContext`. */
  readonly context: Context.Context<never>
  /** Starts an execution and keeps an eye on it, so that none outlives the call. */
  readonly track: <A>(start: () => Promise<A>) => Promise<A>
  /** Makes what an execution rejects with, out of the value that it failed with. */
  readonly rejection: (failure: unknown) => unknown
}

/**
 * A set of tools of any kind. None is still the Effect that makes a tool, which has a `pipe`: write `yield*` before it.
 */
export type Tools = Readonly<Record<string, { readonly inputSchema: unknown; readonly pipe?: never }>>
type Execute = (input: unknown, options: ToolExecutionOptions<unknown>) => Promise<unknown> | ToolOutput

/** The calls of one wrap that are under way. */
interface Calls {
  readonly running: Set<GentleFiber<unknown, unknown>>
  closed: boolean
}

/** Closing the scope takes each call off its application's waiters, and refuses those that come later. */
const callsInScope = Effect.acquireRelease(
  Effect.sync((): Calls => ({ running: new Set(), closed: false })),
  (calls) =>
    Effect.suspend(() => {
      calls.closed = true
      return Effect.forEach(Array.from(calls.running), ({ fiber, interrupt }) => {
        interrupt()
        return Fiber.await(fiber)
      }, { concurrency: "unbounded", discard: true })
    })
)

interface Bind extends BindOptions {
  readonly ctx: ToolContext["Service"]
  readonly store: IEffectStore
  readonly allow: Allow | undefined
}

export const bind = <T extends Tools>(tools: T, options: Bind): Effect.Effect<T, never, Scope.Scope> =>
  Effect.gen(function*() {
    yield* checkMade(tools)
    yield* retain(options.store)
    const calls = yield* callsInScope
    const stop = () => calls.running.forEach(({ interrupt }) => interrupt())
    const { signal } = options.ctx.run
    signal.addEventListener("abort", stop)
    yield* Effect.addFinalizer(() => Effect.sync(() => signal.removeEventListener("abort", stop)))
    return mapTools(tools, (tool, name) => {
      const definition = getEffectToolDefinition(tool)
      return definition === undefined
        ? tool
        : copyTool(tool, { execute: executor(name, definition, options, calls) } as object)
    }) as T
  })

/** `tool` and `defineEffectTool` answer Effects: unmade, a tool has no `execute`, and its calls would vanish. */
const checkMade = (tools: Tools): Effect.Effect<void> => {
  const unmade = Object.entries(tools).find(([, tool]) => Effect.isEffect(tool))
  return unmade === undefined
    ? Effect.void
    : Effect.die(
      new TypeError(
        `The tool "${unmade[0]}" is an Effect that makes a tool, not a tool yet: write { ${unmade[0]}: yield* ${
          unmade[0]
        } }.`
      )
    )
}

const closed = (name: string) =>
  new Error(
    `The effect tool "${name}" was called after the scope of its wrap had closed, and nothing was executed. Keep the scope `
      + `of wrapToolsForRun open for as long as the tools are used.`
  )

const executor = (
  name: string,
  definition: EffectToolDefinition,
  options: Bind,
  calls: Calls
): Execute => {
  const { ctx, rejection, track } = options
  const call = reconciledCall({ name, definition, ctx, store: options.store, allow: options.allow })
  const runIn = (caller: Context.Context<never>) =>
    runCall(Context.add(contextOf(definition.captured, caller), ToolContext, ctx) as Context.Context<never>)
  const bound = runIn(options.context)
  const started = (running: GentleFiber<unknown, unknown>) => {
    calls.running.add(running)
    running.fiber.addObserver(() => calls.running.delete(running))
  }
  const stopped = ctx.run.signal
  const start = (
    caller: Fiber.Fiber<unknown, unknown> | undefined,
    input: unknown,
    callOptions: ToolExecutionOptions<unknown>,
    signal: AbortSignal | undefined,
    output?: ToolOutput
  ): Promise<unknown> => {
    if (stopped.aborted) return Promise.reject(stopped.reason)
    if (calls.closed) return Promise.reject(rejection(closed(name)))
    const run = caller === undefined ? bound : runIn(caller.context)
    return track(() => run(call(input, callOptions, output), signal, started))
      .catch((error: unknown) => Promise.reject(stopped.aborted ? stopped.reason : rejection(error)))
  }
  // a call from inside an Effect belongs to that fiber; one that the AI SDK makes, to the fiber that wrapped
  if (!definition.streaming) {
    return (input, callOptions) => start(Fiber.getCurrent(), input, callOptions, callOptions.abortSignal)
  }
  return (input, callOptions) => {
    const caller = Fiber.getCurrent()
    return new ToolOutput(
      (output, signal) => start(caller, input, callOptions, signal, output),
      callOptions.abortSignal,
      stopped
    )
  }
}

/**
 * Binds the effect tools of a set to the caller's store and run. Other tools come back as the identical object.
 */
export const bindEffectTools = <T extends Tools>(
  tools: T,
  options: BindOptions
): Effect.Effect<T, never, Scope.Scope> => {
  const store = Context.getOrUndefined(options.context, EffectStore as Context.Key<EffectStore, IEffectStore>)
  const ctx = Context.getOrUndefined(options.context, ToolContext as Context.Key<ToolContext, ToolContext["Service"]>)
  if (Object.values(tools).every((tool) => getEffectToolDefinition(tool) === undefined)) {
    return Effect.as(checkMade(tools), tools)
  }
  return store !== undefined && ctx !== undefined
    ? bind(tools, { ...options, store, ctx, allow: undefined })
    : Effect.succeed(refusing(tools, options, store === undefined ? "EffectStore" : "ToolContext"))
}

// The types ask for both services; tools that are typed as a loose set come here without.
const refusing = <T extends Tools>(tools: T, options: BindOptions, missing: string): T =>
  mapTools(tools, (tool, name) => {
    const definition = getEffectToolDefinition(tool)
    return definition === undefined ? tool : copyTool(tool, {
      execute: refusal(definition.streaming, () =>
        options.rejection(
          new Error(
            `The effect tool "${name}" was called without ${missing}, and nothing was executed. Provide ${missing} `
              + `around generateText.`
          )
        ))
    } as object)
  }) as T
