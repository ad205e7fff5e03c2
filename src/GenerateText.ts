/**
 * `generateText` of the AI SDK as an Effect.
 *
 * @since 0.1.0
 */
import * as ai from "ai"
import { type Context, Effect } from "effect"
import { Ai } from "./Ai.ts"
import { bindCall } from "./ai/bindCall.ts"
import type { CallbackError, CallbackServices } from "./ai/callbackTypes.ts"
import type {
  BaseOptions,
  CallServices,
  GenerateTextSdkOptions,
  NoUnknownOptions,
  RunContext,
  SomeOutput
} from "./ai/callTypes.ts"
import { noModel } from "./ai/noModel.ts"
import { withOriginals } from "./ai/originals.ts"
import { languageCall, observed, type Observer } from "./ai/telemetry/observe.ts"
import type { AiError } from "./AiError.ts"

/**
 * Generates a text, and calls tools on the way: the AI SDK's `generateText`, with its options and its result.
 *
 * **Details**
 *
 * Interrupting the Effect aborts the call, interrupts the tools that run, and waits until their finalizers are done. An
 * `abortSignal` of your own works beside it, and makes the Effect fail with an `AiError` whose reason is `"Aborted"`. What
 * the AI SDK fails with is an `AiError`.
 *
 * Every callback option may answer an Effect, whose services the call then needs:
 *
 * - Callbacks that are told what happens (`onStart`, `onStepEnd`, `onEnd`, ...) cannot fail. They run in fibers of `Ai`, so
 *   they go on where the call is interrupted, and stop when the `Ai` closes. One that dies is logged, and changes nothing.
 * - Callbacks that decide (`prepareStep`, `stopWhen`, `toolApproval`, `repairToolCall`, `experimental_refineToolInput`,
 *   `experimental_download`, and `needsApproval` of a tool) are interrupted with the call. One that fails ends it: the call
 *   fails with the identical failure, whose type is among the call's errors. What plain functions throw or reject with
 *   means what it means in the AI SDK.
 *
 * Each run of a callback has a Scope of its own. A `timeout` of the call is noticed at the end of a decision, not during it,
 * except by `repairToolCall`.
 *
 * A tool that fails does not make the call fail: the failure becomes a `tool-error` part that carries the identical value,
 * and with more steps (`stopWhen`) the model reads what happened and goes on. With the default `stopWhen` there is one
 * step, and the text is what the model wrote beside its tool calls.
 *
 * Where `tools` holds an effect tool, the Effect needs an `EffectStore` and a `ToolContext`, and its calls are reconciled.
 *
 * **Gotchas**
 *
 * With tools typed as a loose `ToolSet` the compiler cannot see an effect tool: its calls then fail with a clear error where
 * there is no `EffectStore`.
 *
 * The result's fields are getters: a spread of it keeps only a few, and `output` throws where the call ended with tool calls.
 *
 * **Example** (A call with a tool)
 *
 * ```ts
 * import { Ai, generateText, tool } from "chamvi-effect"
 * import { isStepCount } from "ai"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Schema } from "effect"
 *
 * const usage = {
 *   inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *   outputTokens: { total: 1, text: 1, reasoning: undefined }
 * }
 * const model = new MockLanguageModelV4({
 *   doGenerate: [
 *     {
 *       content: [{ type: "tool-call", toolCallId: "1", toolName: "add", input: `{"a":1,"b":2}` }],
 *       finishReason: { unified: "tool-calls", raw: undefined },
 *       usage,
 *       warnings: []
 *     },
 *     {
 *       content: [{ type: "text", text: "It is 3." }],
 *       finishReason: { unified: "stop", raw: undefined },
 *       usage,
 *       warnings: []
 *     }
 *   ]
 * })
 *
 * const program = Effect.gen(function*() {
 *   const add = yield* tool({
 *     inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
 *     execute: ({ a, b }) => Effect.succeed(a + b)
 *   })
 *   const result = yield* generateText({ model, prompt: "1 + 2?", tools: { add }, stopWhen: isStepCount(2) })
 *   return [result.toolResults.length, result.steps.length, result.text]
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => [1, 2, "It is 3."]
 * ```
 *
 * **Example** (Callbacks with services, and a decision that ends the call)
 *
 * ```ts
 * import { Ai, generateText } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Context, Data, Effect, Ref } from "effect"
 *
 * class OverBudget extends Data.TaggedError("OverBudget")<{ readonly spent: number }> {}
 *
 * class Budget extends Context.Service<Budget, { readonly spent: Ref.Ref<number> }>()("app/Budget") {}
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "text", text: "Hello!" }],
 *     finishReason: { unified: "stop", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 99, text: 99, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 *
 * // Effect<GenerateTextResult, AiError | OverBudget, Ai | Budget>
 * const call = generateText({
 *   model,
 *   prompt: "Say hello.",
 *   prepareStep: () =>
 *     Effect.gen(function*() {
 *       const spent = yield* Ref.get((yield* Budget).spent)
 *       return spent < 100 ? {} : yield* new OverBudget({ spent })
 *     }),
 *   onStepEnd: ({ usage }) =>
 *     Effect.flatMap(Budget, ({ spent }) => Ref.update(spent, (tokens) => tokens + (usage.totalTokens ?? 0)))
 * })
 *
 * const program = Effect.gen(function*() {
 *   const first = yield* call
 *   const second = yield* Effect.flip(call)
 *   return [first.text, second._tag]
 * })
 *
 * const budget = Effect.map(Ref.make(0), (spent) => ({ spent }))
 * await Effect.runPromise(
 *   Effect.provide(Effect.provideServiceEffect(program, Budget, budget), Ai.layer)
 * ) // => ["Hello!", "OverBudget"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const generateText = <
  TOOLS extends ai.ToolSet = {},
  RC extends RunContext = Record<string, unknown>,
  OUT extends SomeOutput = ai.OutputInterface<string, string>,
  O extends BaseOptions<GenerateTextSdkOptions<TOOLS, RC, OUT>> = BaseOptions<GenerateTextSdkOptions<TOOLS, RC, OUT>>
>(
  options:
    & O
    & ai.Prompt
    & {
      readonly tools?: TOOLS
      readonly runtimeContext?: RC
      readonly output?: OUT
    }
    & Pick<GenerateTextSdkOptions<TOOLS, RC, OUT>, "toolsContext">
    & NoUnknownOptions<O, GenerateTextSdkOptions<TOOLS, RC, OUT>>
): Effect.Effect<
  ai.GenerateTextResult<TOOLS, RC, OUT>,
  AiError | CallbackError<O>,
  Ai | CallServices<O> | CallbackServices<O>
> =>
  observed(
    (defaults) => languageCall("generateText", options, defaults),
    (observer) =>
      Effect.contextWith((context: Context.Context<Ai>) => run(options as unknown as RawOptions, context, observer))
  ) as never

type RawOptions = Parameters<typeof ai.generateText>[0]

const run = Effect.fnUntraced(function*(options: RawOptions, context: Context.Context<Ai>, observer: Observer) {
  const { defaults } = yield* Ai
  const model = options.model ?? defaults.model
  if (model === undefined) return yield* noModel()
  return yield* bindCall(options, context, ({ callbacks, signal, tools }) =>
    observer.run(() =>
      ai.generateText({
        ...defaults.maxRetries === undefined ? {} : { maxRetries: defaults.maxRetries },
        ...defaults.telemetry === undefined ? {} : { telemetry: defaults.telemetry },
        ...options,
        model,
        ...tools === undefined ? {} : { tools },
        abortSignal: signal,
        ...observer.watching({ ...callbacks, ...withOriginals(callbacks) })
      } as RawOptions)
    ))
})
