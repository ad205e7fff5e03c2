/**
 * Reading what a tool that streams gives, one value at a time or to the end, and a model whose answers stream.
 */
import type { LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test"
import { Effect, Exit, type Fiber, References } from "effect"

export const options = (abortSignal?: AbortSignal) => ({
  toolCallId: "1",
  messages: [],
  context: {},
  ...abortSignal === undefined ? {} : { abortSignal }
})

export type Step = IteratorResult<unknown, unknown>

/** What a promise settles with. */
export const settled = <A>(promise: () => PromiseLike<A>): Effect.Effect<Exit.Exit<A, unknown>> =>
  Effect.promise(() =>
    Promise.resolve(promise()).then(
      (value) => Exit.succeed(value) as Exit.Exit<A, unknown>,
      (error: unknown) => Exit.fail(error)
    )
  )

/** The next value of an iterator. */
export const next = (iterator: AsyncIterator<unknown>): Effect.Effect<unknown> =>
  Effect.map(Effect.promise(() => iterator.next()), (step) => step.done === true ? "done" : step.value)

/** All values, and how they end. */
export interface Read {
  readonly values: ReadonlyArray<unknown>
  readonly end: unknown
}

/** Reads as the AI SDK does, with `for await`, as fast as values come. */
export const read = (iterable: AsyncIterable<unknown>): Effect.Effect<Read> =>
  Effect.promise(async () => {
    const values: Array<unknown> = []
    try {
      for await (const value of iterable) values.push(value)
    } catch (end) {
      return { values, end }
    }
    return { values, end: "done" }
  })

export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

export const ended = (fiber: Fiber.Fiber<unknown, unknown>): boolean => fiber.pollUnsafe() !== undefined

/** Lets everything happen that needs no time to pass. */
export const turns: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: 40 }))

export const silent = Effect.provideService(References.CurrentLoggers, new Set<never>())

const partsOf = ({ content, finishReason, usage }: LanguageModelV4GenerateResult): Array<LanguageModelV4StreamPart> => [
  { type: "stream-start", warnings: [] },
  ...content.flatMap((part): Array<LanguageModelV4StreamPart> =>
    part.type === "text"
      ? [
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: part.text },
        { type: "text-end", id: "1" }
      ]
      : [part as LanguageModelV4StreamPart]
  ),
  { type: "finish", finishReason, usage }
]

/** Streams one turn after the other, the last one again and again. */
export const streams = (...turns: ReadonlyArray<LanguageModelV4GenerateResult>): MockLanguageModelV4 => {
  let next = 0
  return new MockLanguageModelV4({
    doStream: async () => ({
      stream: convertArrayToReadableStream(partsOf(turns[Math.min(next++, turns.length - 1)]!))
    })
  })
}
