/**
 * A language model that is scripted in lines: what it says at its first step, at its second, and so on. For `generateText`,
 * `streamText`, the engine, and plain `ai`.
 *
 * **Details**
 *
 * Which line is said depends on the conversation alone: on how many steps of the model the prompt holds already. So a run
 * that is replayed, retried or continued in another process gets the line of its step, and not the next one of a queue, and
 * one model serves any number of runs at once. The ids of its tool calls are the same each time, too.
 *
 * Lines are values. A line waits for Effects: a `Deferred` in the hands of the test, or `Effect.sleep`. `make` runs them
 * without services, and so on the real clock; `makeEffect` with those of the fiber that makes it, such as a `TestClock`.
 *
 * **Example** (An agent that calls a tool, and says that it has)
 *
 * ```ts
 * import { Ai, generateText, tool } from "chamvi-effect"
 * import { ScriptedModel } from "chamvi-effect/testing"
 * import { isStepCount } from "ai"
 * import { Effect, Schema } from "effect"
 *
 * const model = ScriptedModel.make([
 *   ScriptedModel.call("label", { label: "bug" }),
 *   ScriptedModel.text("Done.")
 * ])
 *
 * const program = Effect.gen(function*() {
 *   const label = yield* tool({
 *     inputSchema: Schema.Struct({ label: Schema.String }),
 *     execute: ({ label }) => Effect.succeed(`labelled ${label}`)
 *   })
 *   const { text } = yield* generateText({
 *     model,
 *     prompt: "Label issue 7.",
 *     tools: { label },
 *     stopWhen: isStepCount(5)
 *   })
 *   return [text, model.calls.length, model.toolResults]
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => ["Done.", 2, ["labelled bug"]]
 * ```
 *
 * @since 0.1.0
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Prompt,
  LanguageModelV4Usage
} from "@ai-sdk/provider"
import { Context, Effect, Schema, Stream } from "effect"
import { runCall } from "../internal/promiseBridge.ts"
import { parts, whole } from "./scriptedModel/answer.ts"
import { changed, failing, joined, type Line, type Piece, saying, type ScriptedCall } from "./scriptedModel/line.ts"

export type { Line, Piece, ScriptedCall } from "./scriptedModel/line.ts"

/**
 * The conversation went on behind the last line of a script.
 *
 * @category errors
 * @since 0.1.0
 */
export class ScriptEndedError
  extends Schema.TaggedError<ScriptEndedError>("chamvi-effect/testing/ScriptEndedError")("ScriptEndedError", {
    /** How many lines there are. */
    lines: Schema.Int,
    /** The step that was asked for; the first one is 0. */
    step: Schema.Int
  })
{
  override get message(): string {
    return `The script of the model has ${this.lines} ${this.lines === 1 ? "line" : "lines"}, and the prompt holds `
      + `${this.step} of its steps already. Add a line, end the loop earlier (stopWhen), or tell with "history" how many `
      + `assistant messages were there before the script begins.`
  }
}

/**
 * A scripted model, and what it was asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedModel extends LanguageModelV4 {
  /** Its calls, those that failed too, in order. */
  readonly calls: ReadonlyArray<ScriptedCall>
  /** The prompts of its calls. */
  readonly prompts: ReadonlyArray<LanguageModelV4Prompt>
  /** The tools' results in the prompt of the last call: their texts and values, in order. */
  readonly toolResults: ReadonlyArray<unknown>
  /** How often a step was asked for; the first one is 0. */
  readonly callsOf: (step: number) => number
}

/**
 * What else a scripted model can be told.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScriptedModelOptions {
  /** Default: `"scripted"`. */
  readonly provider?: string | undefined
  /** Default: `"scripted-model"`. */
  readonly modelId?: string | undefined
  /** What each call costs, in tokens. Default: 1 in, 1 out. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  /** How many assistant messages of the prompt are older than the script. Default: 0. */
  readonly history?: number | undefined
  /**
   * How many calls of a prompt were made in processes before this one, for `again`: what a model counts is in its memory.
   * Default: 0.
   */
  readonly earlierAttempts?: number | undefined
}

/**
 * Makes a line of pieces. Words alone need no services, whatever the place that the line stands in would take.
 *
 * @category models
 * @since 0.1.0
 */
export interface Saying {
  (...pieces: ReadonlyArray<string>): Line
  <R>(...pieces: ReadonlyArray<Piece<R>>): Line<R>
}

const said = (_tag: "Text" | "Reasoning"): Saying =>
  (<R>(...pieces: ReadonlyArray<Piece<R>>): Line<R> => saying({ _tag, pieces })) as Saying

/**
 * Says a text. In a stream it comes word by word, or in the given pieces; an Effect among them is waited for, and what it
 * fails with is what the stream, or the call, breaks with at this place.
 *
 * @category lines
 * @since 0.1.0
 */
export const text: Saying = said("Text")

/**
 * Reasons, in pieces like those of `text`.
 *
 * @category lines
 * @since 0.1.0
 */
export const reasoning: Saying = said("Reasoning")

/**
 * Calls a tool. Input that is no JSON at all is said with `content`.
 *
 * @category lines
 * @since 0.1.0
 */
export const call = (
  toolName: string,
  input: unknown,
  options: { readonly toolCallId?: string | undefined } = {}
): Line => saying({ _tag: "Call", toolName, input, toolCallId: options.toolCallId })

/**
 * Says content as a provider would: a file, a source, a call that the provider has executed, or one with broken input.
 *
 * @category lines
 * @since 0.1.0
 */
export const content = (...content: ReadonlyArray<LanguageModelV4Content>): Line =>
  saying(...content.map((content) => ({ _tag: "Content", content } as const)))

/**
 * Says several lines in one step, such as a text and two calls that run in parallel.
 *
 * @category lines
 * @since 0.1.0
 */
export const together = <R = never>(...lines: ReadonlyArray<Line<R>>): Line<R> => joined(lines)

/**
 * Fails, before anything is said. What the AI SDK makes of it depends on the error: it repeats calls that fail with a
 * retryable `APICallError`.
 *
 * @category lines
 * @since 0.1.0
 */
export const fails = (error: unknown): Line => failing(error)

/**
 * Says the line only when `gate` has succeeded: a `Deferred` that is awaited, or a sleep. Until then there is no answer at
 * all, and no stream either. What it fails with is what the call fails with.
 *
 * @category lines
 * @since 0.1.0
 */
export const after = <R, R2 = never>(gate: Effect.Effect<unknown, unknown, R>, line: Line<R2>): Line<R | R2> =>
  changed(line, (answer) => ({ ...answer, before: Effect.andThen(gate, answer.before) }))

/**
 * Says the first line, and another one whenever it is asked with the same prompt again: a call that is repeated, or a step
 * that is generated again since it was cut off. The last line stays.
 *
 * @category lines
 * @since 0.1.0
 */
export const again = <R = never>(first: Line<R>, ...next: ReadonlyArray<Line<R>>): Line<R> => {
  const lines = [first, ...next]
  return { answer: (call) => (lines[call.attempt] ?? lines.at(-1) ?? first).answer(call) }
}

/**
 * Says what is decided on in view of the call: of its prompt, its tools, or how often it was made.
 *
 * @category lines
 * @since 0.1.0
 */
export const reply = <R = never>(decide: (call: ScriptedCall) => Line<R>): Line<R> => ({
  answer: (call) => decide(call).answer(call)
})

/**
 * Says the line, and ends for this reason. Without it the reason is `"tool-calls"` where there are calls, and else `"stop"`.
 *
 * @category lines
 * @since 0.1.0
 */
export const ends = <R = never>(line: Line<R>, finishReason: LanguageModelV4FinishReason["unified"]): Line<R> =>
  changed(line, (answer) => ({ ...answer, finishReason }))

type ServicesOf<L> = L extends ReadonlyArray<Line<infer R>> ? R : never

const made = <R>(
  lines: ReadonlyArray<Line<R>>,
  options: ScriptedModelOptions,
  context: Context.Context<R>
): ScriptedModel => {
  const { earlierAttempts = 0, history = 0, modelId = "scripted-model", provider = "scripted" } = options
  const { input, output } = options.usage ?? { input: 1, output: 1 }
  const usage: LanguageModelV4Usage = {
    inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined }
  }
  const calls: Array<ScriptedCall> = []
  const attempts = new Map<string, number>()
  const run = runCall(context)

  const called = (kind: ScriptedCall["kind"], options: LanguageModelV4CallOptions): ScriptedCall => {
    // the prompt alone: runs with the same one cannot be told apart, and ask for the same
    const prompt = JSON.stringify(options.prompt)
    const attempt = attempts.get(prompt) ?? earlierAttempts
    attempts.set(prompt, attempt + 1)
    const step = options.prompt.filter(({ role }) => role === "assistant").length - history
    const call = { kind, step, attempt, options }
    calls.push(call)
    return call
  }
  const answerTo = (call: ScriptedCall) =>
    Effect.suspend(() => {
      const line = lines[call.step]
      return line === undefined
        ? Effect.fail(new ScriptEndedError({ lines: lines.length, step: call.step }))
        : Effect.sync(() => line.answer(call))
    })

  return {
    specificationVersion: "v4",
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: (options) => {
      const call = called("generate", options)
      const answer = Effect.flatMap(answerTo(call), (answer) => whole(answer, call.step, usage))
      return run(Effect.interruptible(answer), options.abortSignal)
    },
    doStream: (options) => {
      const call = called("stream", options)
      const { abortSignal } = options
      const stream = Effect.map(
        Effect.tap(answerTo(call), ({ before }) => before),
        (answer) => ({
          stream: Stream.toReadableStreamWith(
            Stream.interruptWhen(parts(answer, call.step, usage), abortionOf(abortSignal)),
            context
          )
        })
      )
      return run(Effect.interruptible(stream), abortSignal)
    },
    get calls() {
      return calls
    },
    get prompts() {
      return calls.map(({ options }) => options.prompt)
    },
    get toolResults() {
      return (calls.at(-1)?.options.prompt ?? []).flatMap((message) =>
        message.role === "tool"
          ? message.content.flatMap((part) =>
            part.type === "tool-result" ? ["value" in part.output ? part.output.value : part.output] : []
          )
          : []
      )
    },
    callsOf: (step) => calls.filter((call) => call.step === step).length
  }
}

/** Fails with the signal's reason, as a provider's stream does. */
const abortionOf = (signal: AbortSignal | undefined): Effect.Effect<never, unknown> =>
  signal === undefined ? Effect.never : Effect.callback((resume) => {
    const abort = () => resume(Effect.fail(signal.reason))
    if (signal.aborted) return abort()
    signal.addEventListener("abort", abort)
    return Effect.sync(() => signal.removeEventListener("abort", abort))
  })

/**
 * A model that says these lines, one at each step of the conversation. A conversation that is longer fails with
 * `ScriptEndedError`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (lines: ReadonlyArray<Line>, options: ScriptedModelOptions = {}): ScriptedModel =>
  made(lines, options, Context.empty())

/**
 * The same, with lines that wait for Effects with services: those of the fiber that makes the model, its clock included.
 *
 * **Example** (An answer that takes its time, on a clock that the test moves)
 *
 * ```ts
 * import { Ai, generateText } from "chamvi-effect"
 * import { ScriptedModel } from "chamvi-effect/testing"
 * import { Effect, Fiber, Layer } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const program = Effect.gen(function*() {
 *   const model = yield* ScriptedModel.makeEffect([
 *     ScriptedModel.after(Effect.sleep("1 hour"), ScriptedModel.text("At last."))
 *   ])
 *   const call = yield* Effect.forkChild(generateText({ model, prompt: "Well?" }))
 *   yield* TestClock.adjust("1 hour")
 *   return (yield* Fiber.join(call)).text
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(Ai.layer, TestClock.layer()))) // => "At last."
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeEffect = <const L extends ReadonlyArray<Line<unknown>>>(
  lines: L,
  options: ScriptedModelOptions = {}
): Effect.Effect<ScriptedModel, never, ServicesOf<L>> =>
  Effect.map(
    Effect.context<ServicesOf<L>>(),
    (context) => made(lines as ReadonlyArray<Line<ServicesOf<L>>>, options, context)
  )
