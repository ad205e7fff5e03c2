/**
 * Runs for `useChat` of the AI SDK: their streams as UI messages, and a person's answers in a message.
 *
 * **Details**
 *
 * A handler needs three things: `Engine.start` with the prompt, `uiMessages` with what the client shall see of the run, and `toSse` to put
 * it into a response. A client that comes back asks for the same run, and builds the same message again.
 *
 * Where the run waits for a person, the stream ends with the request for approval. What `addToolApprovalResponse` writes into the
 * message comes back with the next request: `answered` gives it to the engine, and says where to go on.
 *
 * @since 0.1.0
 */
import { type FinishReason, toUIMessageChunk, UI_MESSAGE_STREAM_HEADERS, type UIMessageChunk } from "ai"
import { type Context, type Duration, Effect, Schema, Stream } from "effect"
import { Engine } from "./Engine.ts"
import type {
  AgentNotRegisteredError,
  ApprovalIdError,
  EngineStoreError,
  RunFailure,
  RunNotFoundError
} from "./engine/errors.ts"
import type { StreamedPart } from "./engine/RunPart.ts"
import type { StreamOptions } from "./engine/StreamReader.ts"

/**
 * Where a message stands in a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunPosition {
  readonly runId: string
  /** What `Engine.stream` and `uiMessages` go on after. */
  readonly after: string
}

/**
 * A chunk of a UI message. A message of a run that waits holds a part of type `data-run`, which says where to go on.
 *
 * @category models
 * @since 0.1.0
 */
export type RunChunk = UIMessageChunk<unknown, { readonly run: RunPosition }>

/**
 * The options of a UI message stream.
 *
 * @category models
 * @since 0.1.0
 */
export interface UIMessagesOptions extends Pick<StreamOptions, "after"> {
  /** The id of the message. Default: `run-` and the run's id, so that all readers of a run build one message. */
  readonly messageId?: string | undefined
  /** Default: `true`. */
  readonly sendReasoning?: boolean | undefined
  /** Default: `false`. */
  readonly sendSources?: boolean | undefined
  /**
   * The text that a client reads of a failure: of the run's, and of a tool's, which is the text that the model reads. Default:
   * `"An error occurred."` for all of them.
   */
  readonly onError?: ((failure: RunFailure | string) => string) | undefined
  /** With `false`, a client reads of a tool's failure what the model reads of it. Default: `true`. */
  readonly redactToolErrors?: boolean | undefined
}

const masked = (): string => "An error occurred."

/** What the client is told of a part. */
const chunksOf = (runId: string, options: UIMessagesOptions) =>
(
  { cursor, part }: StreamedPart,
  reason: FinishReason | undefined
): ReadonlyArray<RunChunk> => {
  const { onError = masked, redactToolErrors = true, sendReasoning = true, sendSources = false } = options
  const ofSdk = (part: object): ReadonlyArray<RunChunk> => {
    const chunk = toUIMessageChunk(part as Parameters<typeof toUIMessageChunk>[0], {
      sendReasoning,
      sendSources,
      redactToolErrors,
      onError: (error) => onError(error as string)
    })
    return chunk === undefined ? [] : [chunk as RunChunk]
  }
  switch (part.type) {
    case "start-step":
      return [{ type: "start-step" }]
    case "step-restarted":
      // the client forgets the step's parts
      return [{ type: "reset-step" }]
    case "finish-step":
      return [{ type: "finish-step" }]
    case "file":
    case "reasoning-file": {
      const { data, ...rest } = part
      const file = { mediaType: part.mediaType, base64: Buffer.from(data).toString("base64") }
      return ofSdk({ ...rest, file })
    }
    case "tool-approval-request": {
      const { toolName: _, ...request } = part
      return [request as RunChunk]
    }
    case "tool-approval-response": {
      const { toolCallId: _, toolName: __, ...response } = part
      return [response as RunChunk]
    }
    case "run-completed":
      return [{ type: "finish", ...reason === undefined ? {} : { finishReason: reason } }]
    case "run-waiting":
      return [
        { type: "data-run", id: "run", data: { runId, after: cursor } },
        { type: "finish", finishReason: "tool-calls" }
      ]
    case "run-cancelled":
      return [{ type: "abort", reason: "The run was cancelled." }]
    case "run-failed":
      return [{ type: "error", errorText: onError(part.failure) }]
    default:
      return ofSdk(part)
  }
}

/**
 * The stream of a run as chunks of a UI message, from its beginning, or from where a message stands. It ends where the run rests.
 *
 * **Details**
 *
 * - A step that is generated again is `reset-step` to the client, which then forgets the step's parts: in the message each text
 *   stands once.
 * - A client reads no text of a failure unless `onError` or `redactToolErrors` says so.
 *
 * @category conversions
 * @since 0.1.0
 */
export const uiMessages = (
  runId: string,
  options: UIMessagesOptions = {}
): Stream.Stream<RunChunk, RunNotFoundError | EngineStoreError, Engine> => {
  const { after, messageId = `run-${runId}` } = options
  const convert = chunksOf(runId, options)
  const chunks = Stream.mapAccum(
    Engine.stream(runId, { after }),
    (): FinishReason | undefined => undefined,
    (reason, streamed) => {
      const last = streamed.part.type === "finish-step" ? streamed.part.finishReason : reason
      return [last, convert(streamed, last)] as const
    }
  )
  return Stream.concat(Stream.succeed<RunChunk>({ type: "start", messageId }), chunks)
}

/**
 * Chunks as the body of a response: server-sent events, as the AI SDK's clients read them. Send it with `sseHeaders`.
 *
 * **Example** (A handler of Effect's HTTP server)
 *
 * ```ts no-run
 * import { RunStream } from "chamvi-effect"
 * import { Effect } from "effect"
 * import { HttpServerResponse } from "effect/http"
 *
 * export const handler = (runId: string) =>
 *   Effect.map(
 *     RunStream.toSse(RunStream.uiMessages(runId)),
 *     (body) => HttpServerResponse.stream(body, { headers: RunStream.sseHeaders })
 *   )
 * ```
 *
 * @category conversions
 * @since 0.1.0
 */
export const toSse = <E, R>(
  chunks: Stream.Stream<RunChunk, E, R>,
  options: {
    /** How often to send a comment, so that nobody on the way takes a connection for dead on which a tool takes its time. */
    readonly keepAlive?: Duration.Input | undefined
  } = {}
): Effect.Effect<Stream.Stream<Uint8Array, E>, never, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.succeed(
      Stream.map(chunks, (chunk) => `data: ${JSON.stringify(chunk)}\n\n`).pipe(
        Stream.concat(Stream.succeed("data: [DONE]\n\n")),
        Stream.merge(
          options.keepAlive === undefined ? Stream.empty : Stream.as(Stream.tick(options.keepAlive), ": wait\n\n"),
          { haltStrategy: "left" }
        ),
        Stream.encodeText,
        // whoever sends the response knows nothing of the engine
        Stream.provideContext(context)
      )
    )
  )

/**
 * The headers of a response with `toSse`.
 *
 * @category conversions
 * @since 0.1.0
 */
export const sseHeaders: Readonly<Record<string, string>> = UI_MESSAGE_STREAM_HEADERS

const isPosition = Schema.is(Schema.Struct({
  type: Schema.Literal("data-run"),
  data: Schema.Struct({ runId: Schema.String, after: Schema.String })
}))

const isAnswer = Schema.is(Schema.Struct({
  state: Schema.Literal("approval-responded"),
  approval: Schema.Struct({
    id: Schema.String,
    approved: Schema.Boolean,
    reason: Schema.optional(Schema.NullOr(Schema.String))
  })
}))

const isMessage = Schema.is(Schema.Struct({ role: Schema.Literal("assistant"), parts: Schema.Array(Schema.Unknown) }))

/**
 * Gives the answers in a message (`addToolApprovalResponse`) to the engine, and answers where `uiMessages` goes on; `undefined` where
 * the message is not one of this run, or the run had not waited. The first answer to a request counts: to ask again is harmless.
 *
 * **Gotchas**
 *
 * The message comes from a client. Check before that the client may answer for the run.
 *
 * @category combinators
 * @since 0.1.0
 */
export const answered = (
  runId: string,
  message: unknown
): Effect.Effect<
  RunPosition | undefined,
  RunNotFoundError | ApprovalIdError | AgentNotRegisteredError | EngineStoreError,
  Engine
> => {
  const position = positionOf(message)
  if (position?.runId !== runId || !isMessage(message)) return Effect.undefined
  return Effect.gen(function*() {
    const engine = yield* Engine
    for (const { approval: { approved, id, reason } } of message.parts.filter(isAnswer)) {
      const answer = approved ? engine.approve : engine.deny
      yield* answer(runId, id, { reason: reason ?? undefined })
    }
    return position
  })
}

/**
 * Where a message of a run that waited stands; `undefined` for any other.
 *
 * @category combinators
 * @since 0.1.0
 */
export const positionOf = (message: unknown): RunPosition | undefined =>
  isMessage(message) ? message.parts.findLast(isPosition)?.data : undefined
