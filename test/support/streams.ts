/** Readers of runs' streams, and model streams that wait for a signal. */
import type { Engine, RunPart, StreamedPart } from "chamvi-effect"
import { Deferred, Effect, Queue, type Scope, Stream } from "effect"
import type { StreamPart } from "./streamModel.ts"

type Read = Engine["Service"]["stream"]

/** All parts of a run, until it rests. */
export const partsOf = (engine: Engine["Service"], ...args: Parameters<Read>) =>
  Effect.map(Stream.runCollect(engine.stream(...args)), (streamed) => streamed.map(({ part }) => part))

/** A reader that is told each part as it comes. */
export const reading = (
  engine: Engine["Service"],
  ...args: Parameters<Read>
): Effect.Effect<
  {
    /** The parts up to the first one that `isLast` says so of. */
    readonly until: (isLast: (part: RunPart) => boolean) => Effect.Effect<ReadonlyArray<StreamedPart>, unknown>
  },
  never,
  Scope.Scope
> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<StreamedPart, unknown>()
    const read = Stream.runForEach(engine.stream(...args), (part) => Queue.offer(queue, part))
    // what a reader fails with is what the test fails with
    yield* Effect.forkScoped(Effect.catchCause(read, (cause) => Queue.failCause(queue, cause)))
    return {
      until: (isLast) =>
        Effect.gen(function*() {
          const seen: Array<StreamedPart> = []
          while (true) {
            const streamed = yield* Queue.take(queue)
            seen.push(streamed)
            if (isLast(streamed.part)) return seen
          }
        })
    }
  })

/** One part each time that somebody asks for it. */
const from = (parts: AsyncGenerator<StreamPart>): ReadableStream<StreamPart> =>
  new ReadableStream<StreamPart>({
    async pull(controller) {
      const next = await parts.next()
      if (next.done === true) controller.close()
      else controller.enqueue(next.value)
    },
    // a source that is asked to stop, and does not
    cancel: () => new Promise(() => {})
  }, { highWaterMark: 0 })

/** A model's stream that waits between its sections, each time for the next signal. */
export const waiting = (
  signals: ReadonlyArray<Deferred.Deferred<void>>,
  ...sections: ReadonlyArray<ReadonlyArray<StreamPart>>
): ReadableStream<StreamPart> =>
  from((async function*() {
    for (const [index, section] of sections.entries()) {
      const signal = signals[index - 1]
      if (signal !== undefined) await Effect.runPromise(Deferred.await(signal))
      yield* section
    }
  })())

/** A model's stream that breaks. */
export const breaking = (error: unknown, ...parts: ReadonlyArray<StreamPart>): ReadableStream<StreamPart> =>
  from((async function*(): AsyncGenerator<StreamPart> {
    yield* parts
    yield { type: "error", error }
  })())

/** The texts of the steps, as a reader has them in the end: what was generated again replaces what came before. */
export const textsOf = (parts: ReadonlyArray<RunPart>): ReadonlyArray<string> => {
  const texts: Array<string> = []
  for (const part of parts) {
    if (part.type === "start-step" || part.type === "step-restarted") texts[part.step] = ""
    else if (part.type === "text-delta") texts[texts.length - 1] += part.text
  }
  return texts
}

/** What came, in short. Deltas of one text count as one: how many there are depends on time. */
export const shortOf = (parts: ReadonlyArray<RunPart>): ReadonlyArray<string> => {
  const short: Array<string> = []
  let text = ""
  const endText = () => {
    if (text !== "") short.push(`"${text}"`)
    text = ""
  }
  for (const part of parts) {
    if (part.type === "text-delta") {
      text += part.text
      continue
    }
    endText()
    switch (part.type) {
      case "start-step":
      case "step-restarted":
      case "finish-step":
        short.push(`${part.type} ${part.step}`)
        break
      case "tool-call":
        short.push(
          `${part.type} ${part.toolName} ${JSON.stringify(part.input)}${part.invalid === true ? " invalid" : ""}`
        )
        break
      case "tool-result":
        short.push(`${part.preliminary === true ? "preliminary" : part.type} ${JSON.stringify(part.output)}`)
        break
      case "tool-error":
        short.push(`${part.type} ${part.error}`)
        break
      case "tool-approval-response":
        short.push(`${part.type} ${part.approved ? "yes" : "no"}`)
        break
      case "text-start":
      case "text-end":
        break
      default:
        short.push(part.type)
    }
  }
  endText()
  return short
}
