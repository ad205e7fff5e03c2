/**
 * Agents of the AI SDK (`ToolLoopAgent`, and whatever has its interface) run as Effects.
 *
 * @since 0.1.0
 */
import type { Agent, ToolSet } from "ai"
import { type Context, Effect } from "effect"
import { Ai } from "./Ai.ts"
import { agentForCall, ownTools } from "./ai/agentForCall.ts"
import { bindCall } from "./ai/bindCall.ts"
import type { CallbackError, CallbackServices, Effectful } from "./ai/callbackTypes.ts"
import type { CallServices } from "./ai/callTypes.ts"
import { withOriginals } from "./ai/originals.ts"
import type { AiError } from "./AiError.ts"

/**
 * An agent of the AI SDK: a `ToolLoopAgent`, or any object with its interface.
 *
 * @category models
 * @since 0.1.0
 */
export interface SdkAgent extends Pick<Agent, "version" | "id"> {
  readonly tools: ToolSet
  generate(options: never): PromiseLike<unknown>
  stream(options: never): PromiseLike<unknown>
}

/**
 * The options of an agent's `generate`, with callbacks that may answer Effects.
 *
 * @category models
 * @since 0.1.0
 */
export type RunAgentOptions<A extends SdkAgent> = Effectful<Parameters<A["generate"]>[0]>

/** Rejects misspelt options: an inferred `O` has no excess property check of its own. */
type OnlyOptions<O, A extends SdkAgent> = {
  readonly [K in Exclude<keyof O, keyof Parameters<A["generate"]>[0]>]: {
    readonly "is not an option of this agent": never
  }
}

/**
 * Runs an agent of the AI SDK to its end: `agent.generate(options)`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, interrupts the tools that run, and waits until their finalizers are done. An
 * `abortSignal` of your own works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`.
 * Callback options may answer Effects that cannot fail. `maxRetries` and `telemetry` are those of `Ai` where the agent has none
 * of its own.
 *
 * The tools of a `ToolLoopAgent` are bound to the call, as those of `generateText` are: the agent can be made once, with
 * effect tools as they are, and every run reconciles their calls over its own `EffectStore` and `ToolContext`. Effect tools
 * that `wrapToolsForRun` has wrapped stay bound to the run that they were wrapped for.
 *
 * **Gotchas**
 *
 * An agent of another make keeps its tools to itself. `tool`s work there, in the context in which they were made; effect
 * tools fail their calls with a clear error unless they were wrapped with `wrapToolsForRun`. The same holds for tools that a
 * `prepareCall` adds to those that it was given.
 *
 * **Example** (An agent that is made once, and an effect that is applied once)
 *
 * ```ts
 * import { Ai, defineEffectTool, EffectStore, runAgent, ToolContext } from "chamvi-effect"
 * import { ToolLoopAgent } from "ai"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Schema } from "effect"
 *
 * const usage = {
 *   inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *   outputTokens: { total: 1, text: 1, reasoning: undefined }
 * }
 * // calls the tool twice in one step, as providers sometimes do
 * const call = { type: "tool-call", toolCallId: "1", toolName: "label", input: `{"label":"bug"}` } as const
 * const model = new MockLanguageModelV4({
 *   doGenerate: [
 *     { content: [call, call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] },
 *     {
 *       content: [{ type: "text", text: "Labelled." }],
 *       finishReason: { unified: "stop", raw: undefined },
 *       usage,
 *       warnings: []
 *     }
 *   ]
 * })
 *
 * let applied = 0
 * const label = defineEffectTool({
 *   inputSchema: Schema.Struct({ label: Schema.String }),
 *   execute: ({ label }) => Effect.sync(() => `${label} #${++applied}`)
 * })
 *
 * const program = Effect.gen(function*() {
 *   const agent = new ToolLoopAgent({ model, tools: { label: yield* label } })
 *   const result = yield* runAgent(agent, { prompt: "Label issue 7." })
 *   return [result.text, applied]
 * })
 *
 * await Effect.runPromise(
 *   Effect.provide(program, [Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })])
 * ) // => ["Labelled.", 1]
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runAgent = <A extends SdkAgent, O extends RunAgentOptions<A>>(
  agent: A,
  options: O & OnlyOptions<O, A>
): Effect.Effect<
  Awaited<ReturnType<A["generate"]>>,
  AiError | CallbackError<O & { readonly tools: A["tools"] }>,
  Ai | CallServices<{ readonly tools: A["tools"] }> | CallbackServices<O>
> => Effect.contextWith((context: Context.Context<Ai>) => run(agent, options, context)) as never

const run = Effect.fnUntraced(function*(agent: SdkAgent, options: object, context: Context.Context<Ai>) {
  const { defaults } = yield* Ai
  return yield* bindCall(
    { ...options, tools: ownTools(agent) },
    context,
    ({ callbacks, signal, tools }) =>
      agentForCall(agent, defaults, tools).generate({
        ...options,
        ...callbacks,
        ...withOriginals(callbacks),
        abortSignal: signal
      } as never)
  )
})
