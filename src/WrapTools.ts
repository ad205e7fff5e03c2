/**
 * Effect tools bound to a run: the reconciled `execute` in place of the one that refuses.
 *
 * @since 0.1.0
 */
import { type Context, Effect, type Scope } from "effect"
import { bind, type Tools } from "./ai/bindEffectTools.ts"
import { bindService } from "./ai/callContext.ts"
import { isEffectTool } from "./ai/effectToolDefinition.ts"
import type { Allow } from "./ai/reconciledCall.ts"
import { carryable } from "./ai/ToolFailure.ts"
import type { IEffectStore } from "./EffectStore.ts"
import { mapTools } from "./internal/toolCopy.ts"
import { ToolContext } from "./ToolContext.ts"

export type { Allow } from "./ai/reconciledCall.ts"

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
export const wrapToolsForRun = <T extends Tools, R = never>(
  tools: T,
  ctx: ToolContext["Service"],
  store: IEffectStore,
  allow?: Allow<R>
): Effect.Effect<T, never, R | Scope.Scope> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const allowed = allow && ((name: string) => withServices(allow(name), context))
    const track = <A>(start: () => Promise<A>): Promise<A> => start()
    const caller = { context, ai: undefined, track, call: undefined }
    return Effect.map(
      bind<T>(tools, { context, ctx, store, allow: allowed, track, rejection: carryable }),
      (wrapped) =>
        mapTools(
          wrapped,
          // the hooks beside execute belong to the run too
          (tool) => isEffectTool(tool) ? bindService(tool, caller, ToolContext, ctx) : tool
        ) as T
    )
  })

const withServices = <R>(answer: ReturnType<Allow<R>>, context: Context.Context<R>): ReturnType<Allow> =>
  Effect.isEffect(answer) ? Effect.provideContext(answer, context) : answer
