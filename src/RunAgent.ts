/**
 * Agents of the AI SDK (`ToolLoopAgent`, and whatever has its interface) run as Effects.
 *
 * @since 0.1.0
 */
import type { Agent, OutputInterface, StreamTextResult as SdkStreamTextResult, ToolSet } from "ai"
import { type Context, Effect, type Scope } from "effect"
import { Ai } from "./Ai.ts"
import { agentCall, agentForCall, ownTools, settingsOf } from "./ai/agentForCall.ts"
import { bindCall } from "./ai/bindCall.ts"
import type { CallbackError, CallbackServices, Effectful } from "./ai/callbackTypes.ts"
import type { CallServices } from "./ai/callTypes.ts"
import { openWith } from "./ai/openStream.ts"
import { withOriginals } from "./ai/originals.ts"
import { streamResult } from "./ai/streamResult.ts"
import type { StreamTextResult } from "./ai/streamTypes.ts"
import { observed, type Observer } from "./ai/telemetry/observe.ts"
import { AiError } from "./AiError.ts"

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
type Only<O, Options> = {
  readonly [K in Exclude<keyof O, keyof Options>]: { readonly "is not an option of this agent": never }
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
  options: O & Only<O, Parameters<A["generate"]>[0]>
): Effect.Effect<
  Awaited<ReturnType<A["generate"]>>,
  AiError | CallbackError<O & { readonly tools: A["tools"] }>,
  Ai | CallServices<{ readonly tools: A["tools"] }> | CallbackServices<O>
> =>
  observed(
    (defaults) => agentCall("runAgent", agent, defaults),
    (observer) => Effect.contextWith((context: Context.Context<Ai>) => run(agent, options, context, observer))
  ) as never

const run = Effect.fnUntraced(
  function*(agent: SdkAgent, options: object, context: Context.Context<Ai>, observer: Observer) {
    const { defaults } = yield* Ai
    return yield* bindCall(
      { ...options, tools: ownTools(agent) },
      context,
      ({ callbacks, signal, tools }) =>
        observer.run(() =>
          agentForCall(agent, defaults, tools).generate({
            ...options,
            ...observer.watching({ ...callbacks, ...withOriginals(callbacks) }),
            abortSignal: signal
          } as never)
        )
    )
  }
)

/**
 * The options of an agent's `stream`, with callbacks that may answer Effects.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamAgentOptions<A extends SdkAgent> = Effectful<Parameters<A["stream"]>[0]>

/** The result of our `streamText`, for an agent whose `stream` answers the AI SDK's. */
type StreamedBy<A extends SdkAgent> = Awaited<ReturnType<A["stream"]>> extends
  SdkStreamTextResult<infer TOOLS, infer RC, infer OUT> ? StreamTextResult<TOOLS, RC, OUT> : never

/**
 * Runs an agent of the AI SDK as a stream: `agent.stream(options)`, with its options, and with the result of `streamText`.
 *
 * **Details**
 *
 * Tools, callbacks and defaults are as in `runAgent`, and readers, interruption and the end of the call as in `streamText`: the
 * call ends when its last reader leaves, or when the scope closes.
 *
 * **Example** (The text as it is written)
 *
 * ```ts
 * import { Ai, streamAgent } from "chamvi-effect"
 * import { simulateReadableStream, ToolLoopAgent } from "ai"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Stream } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doStream: async () => ({
 *     stream: simulateReadableStream({
 *       chunks: [
 *         { type: "text-start", id: "1" },
 *         { type: "text-delta", id: "1", delta: "Hello, " },
 *         { type: "text-delta", id: "1", delta: "Ada." },
 *         { type: "text-end", id: "1" },
 *         {
 *           type: "finish",
 *           finishReason: { unified: "stop", raw: undefined },
 *           usage: {
 *             inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *             outputTokens: { total: 1, text: 1, reasoning: undefined }
 *           }
 *         }
 *       ]
 *     })
 *   })
 * })
 *
 * const program = Effect.gen(function*() {
 *   const result = yield* streamAgent(new ToolLoopAgent({ model }), { prompt: "Greet Ada." })
 *   return yield* Stream.runCollect(result.textStream)
 * })
 *
 * await Effect.runPromise(Effect.provide(Effect.scoped(program), Ai.layer)) // => ["Hello, ", "Ada."]
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const streamAgent = <A extends SdkAgent, O extends StreamAgentOptions<A>>(
  agent: A,
  options: O & Only<O, Parameters<A["stream"]>[0]>
): Effect.Effect<
  StreamedBy<A>,
  AiError,
  Ai | Scope.Scope | CallServices<{ readonly tools: A["tools"] }> | CallbackServices<O>
> =>
  Effect.contextWith((context: Context.Context<Ai>) =>
    Effect.map(openAgent(agent, options, context), (live) =>
      streamResult(live, {
        tools: agent.tools,
        output: settingsOf(agent)?.["output"] as OutputInterface | undefined
      }))
  ) as never

const openAgent = (agent: SdkAgent, options: object, context: Context.Context<Ai>) =>
  openWith(
    { ...options, tools: ownTools(agent) },
    context,
    (defaults) => agentCall("streamAgent", agent, defaults),
    ({ defaults, observer, own, tools }) =>
      Effect.tryPromise({
        try: () =>
          observer.run(() =>
            agentForCall(agent, defaults, tools, stateCallbacks(agent, own)).stream({ ...options, ...own } as never)
          ) as PromiseLike<{ readonly stream: ReadableStream<never> }>,
        catch: (error) => AiError.from(error)
      }).pipe(Effect.map((result) => result.stream))
  )

/** Those that the call's state depends on, and that an agent takes in its settings only. */
const stateCallbacks = (agent: SdkAgent, own: Readonly<Record<string, unknown>>) => {
  const settings = settingsOf(agent)
  return Object.fromEntries((["onError", "onAbort"] as const).map((name) => {
    const theirs = settings?.[name]
    const ours = own[name]
    return [name, (event: unknown) => {
      if (typeof ours === "function") ours(event)
      return typeof theirs === "function" ? theirs(event) as unknown : undefined
    }]
  }))
}
