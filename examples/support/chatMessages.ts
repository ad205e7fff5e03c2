/**
 * UI messages of the AI SDK, as a client has them.
 */
import { isToolUIPart, readUIMessageStream, type UIMessage } from "ai"
import { Effect, Option, Stream } from "effect"

/** What a person sees of a message. */
export const shown = ({ parts }: UIMessage) =>
  parts.map((part) => part.type === "text" ? part.text : isToolUIPart(part) ? `${part.type}: ${part.state}` : "")
    .filter((text) => text !== "").join(", ")

type Chunks = Parameters<typeof readUIMessageStream>[0]["stream"]

/** The message that a stream comes to. */
export const last = (stream: Chunks, before?: UIMessage) =>
  Stream.fromAsyncIterable(readUIMessageStream(before === undefined ? { stream } : { stream, message: before }), String)
    .pipe(Stream.runLast, Effect.map(Option.getOrThrow))

/** The message with a "yes" to all that it asks. */
export const approved = (message: UIMessage): UIMessage => {
  const answer = structuredClone(message)
  for (const part of answer.parts) {
    if (isToolUIPart(part) && part.state === "approval-requested") {
      Object.assign(part, { state: "approval-responded", approval: { ...part.approval, approved: true } })
    }
  }
  return answer
}
