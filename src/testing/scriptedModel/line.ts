/**
 * What a scripted model answers, and how lines are put together.
 */
import type { LanguageModelV4CallOptions, LanguageModelV4Content, LanguageModelV4FinishReason } from "@ai-sdk/provider"
import { Effect } from "effect"

/** What a text is said in: a chunk, or an Effect that is waited for before the next one. */
export type Piece<R> = string | Effect.Effect<unknown, unknown, R>

/** One part of an answer. */
export type Part<R> =
  | { readonly _tag: "Text" | "Reasoning"; readonly pieces: ReadonlyArray<Piece<R>> }
  | {
    readonly _tag: "Call"
    readonly toolName: string
    readonly input: unknown
    /** Made of the step and of the place among its calls, unless it is given. */
    readonly toolCallId: string | undefined
  }
  | { readonly _tag: "Content"; readonly content: LanguageModelV4Content }

/** The whole answer to one call. */
export interface Answer<R> {
  /** Waited for before there is any answer; what it fails with is what the call fails with. */
  readonly before: Effect.Effect<unknown, unknown, R>
  readonly parts: ReadonlyArray<Part<R>>
  /** Of the parts, unless it is given. */
  readonly finishReason: LanguageModelV4FinishReason["unified"] | undefined
}

/** A call of the model, as the script sees it. */
export interface ScriptedCall {
  readonly kind: "generate" | "stream"
  /** How many steps the prompt held already: 0 in the first call. */
  readonly step: number
  /** How often the model had been called with this prompt before. */
  readonly attempt: number
  readonly options: LanguageModelV4CallOptions
}

/**
 * What the model says at a step. `R` are the services of the Effects that it waits for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Line<out R = never> {
  readonly answer: (call: ScriptedCall) => Answer<R>
}

const always = <R>(answer: Answer<R>): Line<R> => ({ answer: () => answer })

export const saying = <R>(...parts: ReadonlyArray<Part<R>>): Line<R> =>
  always({ before: Effect.void, parts, finishReason: undefined })

export const failing = (error: unknown): Line =>
  always({ before: Effect.fail(error), parts: [], finishReason: undefined })

/** The line, changed. */
export const changed = <R, R2>(line: Line<R>, change: (answer: Answer<R>) => Answer<R2>): Line<R2> => ({
  answer: (call) => change(line.answer(call))
})

export const joined = <R>(lines: ReadonlyArray<Line<R>>): Line<R> => ({
  answer: (call) => {
    const answers = lines.map((line) => line.answer(call))
    return {
      before: Effect.forEach(answers, ({ before }) => before, { discard: true }),
      parts: answers.flatMap(({ parts }) => parts),
      finishReason: answers.findLast(({ finishReason }) => finishReason !== undefined)?.finishReason
    }
  }
})
