/** A scripted language model that streams: what it says, turn by turn, and how far it was read. */
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { MockLanguageModelV4 } from "ai/test"

export type StreamPart = LanguageModelV4StreamPart

/** A turn: its parts, or its stream. */
export type Turn = ReadonlyArray<StreamPart> | ReadableStream<StreamPart>
export type MakeTurn = (options: LanguageModelV4CallOptions) => Turn | PromiseLike<Turn>

const finish = (unified: "stop" | "tool-calls"): StreamPart => ({
  type: "finish",
  finishReason: { unified, raw: unified },
  usage: {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 2, text: 2, reasoning: undefined }
  }
})

const start: StreamPart = { type: "stream-start", warnings: [] }

/** The parts of a text in pieces, without an end. */
export const begins = (...deltas: ReadonlyArray<string>): Array<StreamPart> => [
  start,
  { type: "text-start", id: "t" },
  ...deltas.map((delta): StreamPart => ({ type: "text-delta", id: "t", delta }))
]

/** A turn that says a text in pieces. */
export const says = (...deltas: ReadonlyArray<string>): Array<StreamPart> => [
  ...begins(...deltas),
  { type: "text-end", id: "t" },
  finish("stop")
]

/** A turn that calls tools. */
export const calls = (...tools: ReadonlyArray<readonly [toolName: string, input: unknown]>): Array<StreamPart> => [
  start,
  ...tools.map(([toolName, input], index): StreamPart => ({
    type: "tool-call",
    toolCallId: `call-${index + 1}`,
    toolName,
    input: JSON.stringify(input)
  })),
  finish("tool-calls")
]

/** A provider's stream, and what became of it. */
export interface Provided {
  readonly stream: ReadableStream<StreamPart>
  /** How many parts were asked for. */
  readonly pulled: () => number
  readonly cancelled: () => boolean
}

/** A stream that makes a part when it is asked for one. After the last part it ends, or waits for ever. */
export const provided = (parts: Iterable<StreamPart>, end: "end" | "wait" = "end"): Provided => {
  const iterator = parts[Symbol.iterator]()
  let pulled = 0
  let cancelled = false
  const stream = new ReadableStream<StreamPart>({
    pull(controller) {
      const { done, value } = iterator.next()
      if (done !== true) {
        pulled++
        return controller.enqueue(value)
      }
      return end === "end" ? controller.close() : new Promise(() => {})
    },
    cancel() {
      cancelled = true
    }
  }, { highWaterMark: 0 })
  return { stream, pulled: () => pulled, cancelled: () => cancelled }
}

/** Streams one turn after the other, the last one again and again. */
export const streaming = (...turns: ReadonlyArray<Turn | MakeTurn>): MockLanguageModelV4 => {
  let next = 0
  return new MockLanguageModelV4({
    doStream: async (options) => {
      const made = turns[Math.min(next++, turns.length - 1)]!
      const turn = typeof made === "function" ? await made(options) : made
      return { stream: turn instanceof ReadableStream ? turn : provided(turn).stream }
    }
  })
}

/** What the model read as results of tools in its last call. */
export const readBy = (model: MockLanguageModelV4): ReadonlyArray<unknown> =>
  (model.doStreamCalls.at(-1)?.prompt ?? []).flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) =>
        part.type === "tool-result" ? ["value" in part.output ? part.output.value : part.output] : []
      )
      : []
  )
