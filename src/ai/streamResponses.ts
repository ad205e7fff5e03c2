/**
 * A call under way as the AI SDK's UI message stream, and as web responses.
 */
import * as ai from "ai"
import { Context, Effect, Stream } from "effect"
import { Ai } from "../Ai.ts"
import { bindCallbacks } from "./callbacks.ts"
import type { LiveCall } from "./LiveCall.ts"
import type { Part } from "./PartLog.ts"
import { converted, webParts } from "./streamReaders.ts"
import type { UIResponseOptions, UIStreamOptions } from "./streamTypes.ts"
import { originalOf } from "./ToolFailure.ts"

type Options = UIStreamOptions<ai.UIMessage, unknown, unknown>
type ResponseOptions = UIResponseOptions<ai.UIMessage, unknown, unknown>

const masked = (): string => "An error occurred."

const conversion = (
  live: LiveCall,
  tools: ai.ToolSet | undefined,
  options: Options,
  context: Context.Context<Ai>
) => {
  const { generateMessageId, messageMetadata, originalMessages, sendFinish, sendReasoning, sendSources, sendStart } =
    options
  const { onError, redactToolErrors = true } = options
  const { onEnd = options.onFinish, onStepEnd = options.onStepFinish } = options
  const callbacks = bindCallbacks({ onEnd, onStepEnd }, {
    context,
    // the stream waits for them after an abort too: they save what there was
    signal: AbortSignal.any([]),
    track: live.executions.track,
    fail: (cause) => live.fail(cause)
  })
  return (stream: ReadableStream<Part>) =>
    ai.toUIMessageStream(
      {
        stream,
        tools,
        originalMessages,
        generateMessageId,
        messageMetadata,
        sendReasoning,
        sendSources,
        sendStart,
        sendFinish,
        redactToolErrors,
        onError: onError === undefined ? masked : (error: unknown) => onError(originalOf(error)),
        ...callbacks
      } as Parameters<typeof ai.toUIMessageStream>[0]
    )
}

/** The context of a UI stream's callbacks: that of the fiber that makes the stream, and the `Ai` of the call. */
const withAi = <A>(live: LiveCall, make: (context: Context.Context<Ai>) => A): Effect.Effect<A> =>
  Effect.contextWith((context: Context.Context<never>) => Effect.sync(() => make(Context.add(context, Ai, live.ai))))

export const uiStream =
  (live: LiveCall, tools: ai.ToolSet | undefined) => (options: Options = {}): Stream.Stream<unknown, unknown> =>
    Stream.unwrap(withAi(live, (context) => converted(live, "part", conversion(live, tools, options, context))))

export const uiResponse =
  (live: LiveCall, tools: ai.ToolSet | undefined) => (options: ResponseOptions = {}): Effect.Effect<Response> =>
    withAi(live, (context) => {
      const convert = conversion(live, tools, options, context)
      const { consumeSseStream, headers, keepAliveMs, status, statusText } = options
      const given = { consumeSseStream, headers, keepAliveMs, status, statusText }
      return ai.createUIMessageStreamResponse({
        ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
        stream: convert(webParts(live, live.join(), "part"))
      })
    })

export const textResponse = (live: LiveCall) => (init?: ResponseInit): Effect.Effect<Response> =>
  Effect.sync(() =>
    ai.createTextStreamResponse({
      ...init,
      stream: ai.toTextStream({ stream: webParts(live, live.join(), "break") })
    })
  )
