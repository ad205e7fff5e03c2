/**
 * Agents that the engine runs.
 *
 * @since 0.1.0
 */
import { type Instructions, isStepCount, type OutputInterface, type ToolSet } from "ai"
import { Effect, Layer, type Schema, type Scope } from "effect"
import type { Ai } from "./Ai.ts"
import type { CallbackServices } from "./ai/callbackTypes.ts"
import type { BaseOptions, GenerateTextSdkOptions, NoUnknownOptions, RunContext, SomeOutput } from "./ai/callTypes.ts"
import type { EffectStore } from "./EffectStore.ts"
import { type Agent, type AgentContext, type AgentDefinition, definitions } from "./engine/agentTypes.ts"
import { register } from "./engine/make.ts"
import { Engine } from "./Engine.ts"
import type { ToolContext } from "./ToolContext.ts"

export type { Agent, AgentContext } from "./engine/agentTypes.ts"

/** A set of tools; each may still be the Effect that makes it. */
type ToolsInput<TOOLS> = {
  readonly [K in keyof TOOLS]: TOOLS[K] | Effect.Effect<TOOLS[K], never, unknown>
}

/** The names that the AI SDK does not know, or that are a run's and not an agent's. */
type Own = { readonly name?: unknown; readonly trigger?: unknown; readonly allow?: unknown; readonly stream?: unknown }
type OfTheRun = { readonly prompt?: never; readonly messages?: never; readonly abortSignal?: never }

/** What an option answers: itself, or what its function does. */
type Answered<T> = T extends (...args: never) => infer V ? V : T
type ServicesOf<V> = V extends Effect.Effect<unknown, unknown, infer R> ? unknown extends R ? never : R : never
type ToolsServices<T> = T extends object ? { [K in keyof T]: ServicesOf<T[K]> }[keyof T] : never

/** The services that an agent's options need where it runs; those that the engine brings are not among them. */
type AgentServices<O> =
  | Exclude<
    | CallbackServices<O>
    | (O extends { readonly instructions?: infer I } ? ServicesOf<Answered<I>> : never)
    | (O extends { readonly allow?: infer A } ? ServicesOf<Answered<A>> : never),
    ToolContext | EffectStore | Ai | Scope.Scope
  >
  | (O extends { readonly tools?: infer T } ? ToolServices<T> : never)

/** Tools of a set are made once, before there is a run; a function of the run's context makes them inside of it. */
type ToolServices<T> = Exclude<
  ToolsServices<Answered<T>>,
  EffectStore | Ai | Scope.Scope | (T extends (...args: never) => unknown ? ToolContext : never)
>

/** Storages keep it in a column of their own. */
const longestName = 100

type OutputOf<OUT> = OUT extends { readonly parseCompleteOutput: (...args: never) => PromiseLike<infer A> } ? A : never

/**
 * Defines an agent, at module scope: a model, what it is told, its tools, and how its loop goes. `Engine` runs it.
 *
 * **Details**
 *
 * All options of the AI SDK's loop pass through, with callbacks that may answer Effects, as in `generateText`. `stopWhen` is
 * `isStepCount(20)` unless it is given.
 *
 * - `tools` holds tools, or the Effects that make them (`tool`, `defineEffectTool`), mixed at will. They are made once, where
 *   `layer` is built. A function of the run's context makes them for each run; a plain tool that uses `ToolContext` needs it.
 * - `instructions` may be a function of the run's context too, and answer an Effect.
 * - `trigger` is the schema of what starts a run. It is kept as JSON, and read as the decoded value in `ctx.run.trigger`.
 * - `output` types the result of a run.
 * - `stream: true` has models stream their answers, so that `Engine.stream` gives texts as they are written. An answer is stored as a
 *   whole all the same, before a tool of it starts. The default is `false`: then texts come as a whole.
 * - `allow` is asked at every execution of every tool. Anything but `true` refuses it, and the model reads so.
 *
 * A run is executed at least once from its start after each crash, suspension or retry, with every model call and every tool
 * call that was finished answered from storage. So callbacks are called again for steps that are long over, and `prepareStep`,
 * `stopWhen` and functions of `instructions` and `tools` must answer the same again. A tool call that was cut off is
 * called again: effect tools stay single through it, and other tools run once more.
 *
 * **Gotchas**
 *
 * What a tool failed with is kept in words. Callbacks see those words, the first time too.
 *
 * `timeout.totalMs` bounds what a run does at a stretch: it starts anew after a crash, a retry, and a sleep (for a person, or for a
 * ledger that is away). A run that it ends, or `stepMs`, has failed: what it cut off is made again by `Engine.retry`, and the model does
 * not read of it. `toolMs` is a failure of the tool, which the model reads.
 *
 * The result of a tool of the AI SDK's own making (code mode, tool search) is not kept; the tools that it calls are reconciled
 * as ever.
 *
 * **Example** (An agent, and a run that is asked for twice)
 *
 * ```ts
 * import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Layer, Schema } from "effect"
 *
 * const usage = {
 *   inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *   outputTokens: { total: 1, text: 1, reasoning: undefined }
 * }
 * const model = new MockLanguageModelV4({
 *   doGenerate: [
 *     {
 *       content: [{ type: "tool-call", toolCallId: "1", toolName: "label", input: `{"label":"bug"}` }],
 *       finishReason: { unified: "tool-calls", raw: undefined },
 *       usage,
 *       warnings: []
 *     },
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
 * const triage = defineAgent({
 *   name: "triage",
 *   model,
 *   trigger: Schema.Struct({ issue: Schema.Int }),
 *   instructions: (ctx) => `You triage issue ${ctx.run.trigger.issue}.`,
 *   tools: {
 *     label: defineEffectTool({
 *       inputSchema: Schema.Struct({ label: Schema.String }),
 *       execute: ({ label }) => Effect.sync(() => `${label} #${++applied}`)
 *     })
 *   }
 * })
 *
 * const program = Effect.gen(function*() {
 *   const run = Engine.run(triage, { runId: "issue-7", trigger: { issue: 7 }, prompt: "A new issue came in." })
 *   const first = yield* run
 *   const second = yield* run
 *   return [first.text, second.text, applied, model.doGenerateCalls.length]
 * })
 *
 * await Effect.runPromise(
 *   Effect.provide(program, triage.layer.pipe(Layer.provideMerge(Engine.layerMemory())))
 * ) // => ["Labelled.", "Labelled.", 1, 2]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const defineAgent = <
  const NAME extends string,
  TOOLS extends ToolSet = {},
  RC extends RunContext = Record<string, unknown>,
  OUT extends SomeOutput = OutputInterface<string, string>,
  TR = undefined,
  TE = unknown,
  O extends BaseOptions<GenerateTextSdkOptions<TOOLS, RC, OUT>> & Own = BaseOptions<
    GenerateTextSdkOptions<TOOLS, RC, OUT>
  >
>(
  options:
    & O
    & OfTheRun
    & {
      /** Runs are kept under the agent's name: give it another one, and it is another agent. */
      readonly name: NAME
      readonly trigger?: Schema.Codec<TR, TE>
      readonly instructions?:
        | Instructions
        | ((
          ctx: AgentContext<TR>
        ) => Instructions | PromiseLike<Instructions> | Effect.Effect<Instructions, unknown, unknown>)
      readonly tools?: ToolsInput<TOOLS> | ((ctx: AgentContext<TR>) => ToolsInput<TOOLS>)
      readonly allow?: (toolName: string) => boolean | PromiseLike<boolean> | Effect.Effect<boolean, unknown, unknown>
      readonly stream?: boolean
      readonly runtimeContext?: RC
      readonly output?: OUT
    }
    & Pick<GenerateTextSdkOptions<TOOLS, RC, OUT>, "toolsContext">
    & NoUnknownOptions<O, GenerateTextSdkOptions<TOOLS, RC, OUT> & Own>
): Agent<NAME, TR, OutputOf<OUT>, AgentServices<O>> => {
  const { allow, instructions, name, output, stream, tools, trigger, ...rest } = options as unknown as
    & Omit<AgentDefinition, "options" | "stream">
    & { readonly stream?: boolean }
    & Record<string, unknown>
  if (typeof name !== "string" || name.trim() === "" || name.length > longestName || !name.isWellFormed()) {
    throw new TypeError(
      `defineAgent needs a name of 1 to ${longestName} characters: runs are kept by it, from one version of a program to the next.`
    )
  }
  const definition: AgentDefinition = {
    name,
    trigger,
    output,
    allow,
    stream: stream === true,
    tools,
    instructions,
    options: { stopWhen: isStepCount(20), ...rest }
  }
  const agent = {
    name: name as NAME,
    layer: Layer.effectDiscard(Effect.flatMap(Engine, (engine) => register(engine, definition)))
  }
  definitions.set(agent, definition)
  return agent as never
}
