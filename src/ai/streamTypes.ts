/**
 * The types of `streamText`: its options, and the result that has Streams and Effects where the AI SDK's has async
 * iterables and promises.
 *
 * @since 0.1.0
 */
import type * as ai from "ai"
import type { Effect, Scope, Stream } from "effect"
import type { AiError } from "../AiError.ts"
import type { BaseOptions, RunContext, SomeOutput } from "./callTypes.ts"

/** The options of the AI SDK's `streamText`. */
export type StreamTextSdkOptions<TOOLS extends ai.ToolSet, RC extends RunContext, OUT extends SomeOutput> = Parameters<
  typeof ai.streamText<TOOLS, RC, OUT>
>[0]

/** The options that are inferred together. */
export type StreamBaseOptions<TOOLS extends ai.ToolSet, RC extends RunContext, OUT extends SomeOutput> =
  & BaseOptions<Omit<StreamTextSdkOptions<TOOLS, RC, OUT>, "experimental_transform">>
  & { readonly experimental_transform?: Transform<TOOLS> | ReadonlyArray<Transform<TOOLS>> }

/** `smoothStream()` is one for any tools: also where a call has none. */
type Transform<TOOLS extends ai.ToolSet> = (
  ...options: Parameters<ai.StreamTextTransform<TOOLS>>
) => ReturnType<ai.StreamTextTransform<TOOLS>> | ReturnType<ai.StreamTextTransform<ai.ToolSet>>

/** What a promise of the AI SDK's result resolves to. */
type Resolved<TOOLS extends ai.ToolSet, RC extends RunContext, OUT extends SomeOutput> = {
  readonly [K in keyof ai.StreamTextResult<TOOLS, RC, OUT>]: Awaited<ai.StreamTextResult<TOOLS, RC, OUT>[K]>
}

type Items<T> = T extends AsyncIterable<infer A> ? A : never

/** The parts of a stream. A part of type `error` or `abort` is none of them: it is the failure of the stream. */
export type StreamPart<TOOLS extends ai.ToolSet> = Exclude<
  ai.TextStreamPart<TOOLS>,
  { readonly type: "error" | "abort" }
>

/** A callback of a UI stream: it answers nothing, a Promise, or an Effect that cannot fail. */
type Told<F, R> = NonNullable<F> extends (event: infer Event) => unknown
  ? (event: Event) => void | PromiseLike<void> | Effect.Effect<unknown, never, R>
  : never

/**
 * The options of a UI message stream: the AI SDK's.
 *
 * @category models
 * @since 0.1.0
 */
export interface UIStreamOptions<UI_MESSAGE extends ai.UIMessage, R = never, SR = never> extends
  Omit<
    ai.UIMessageStreamOptions<UI_MESSAGE>,
    "onEnd" | "onFinish" | "onStepEnd" | "onStepFinish" | "onError" | "redactToolErrors"
  >
{
  /** A step has ended. Runs in a fiber of `Ai`; one that dies is logged. */
  readonly onStepEnd?: Told<ai.UIMessageStreamOptions<UI_MESSAGE>["onStepEnd"], SR> | undefined
  /** @deprecated Use `onStepEnd`. */
  readonly onStepFinish?: Told<ai.UIMessageStreamOptions<UI_MESSAGE>["onStepEnd"], SR> | undefined
  /** The stream has ended, or its reader has left: the place to save messages. Runs in a fiber of `Ai`; one that dies is logged. */
  readonly onEnd?: Told<ai.UIMessageStreamOptions<UI_MESSAGE>["onEnd"], R> | undefined
  /** @deprecated Use `onEnd`. */
  readonly onFinish?: Told<ai.UIMessageStreamOptions<UI_MESSAGE>["onEnd"], R> | undefined
  /**
   * The text that a client reads of an error: of the call's, and of a tool's. It gets the identical value that a tool failed
   * with. The default is `"An error occurred."` for all of them.
   */
  readonly onError?: ((error: unknown) => string) | undefined
  /**
   * With `false`, a client reads of a tool's failure what the model reads of it: its tag and fields. The default is `true`.
   *
   * Some models reject a history in which a tool's error has another text than before: `false` is for conversations that
   * come back from the client and go to such a model.
   */
  readonly redactToolErrors?: boolean | undefined
}

/**
 * The options of a response that streams UI messages.
 *
 * @category models
 * @since 0.1.0
 */
export type UIResponseOptions<UI_MESSAGE extends ai.UIMessage, R = never, SR = never> =
  & UIStreamOptions<UI_MESSAGE, R, SR>
  & Omit<Parameters<typeof ai.createUIMessageStreamResponse>[0], "stream">

/**
 * A call that streams. All its members are readers of one and the same call.
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamTextResult<
  TOOLS extends ai.ToolSet = ai.ToolSet,
  RC extends RunContext = RunContext,
  OUT extends SomeOutput = SomeOutput,
  E = never
> {
  /** All parts of the call, over all steps. A `tool-error` part holds the identical value that the tool failed with. */
  readonly stream: Stream.Stream<StreamPart<TOOLS>, AiError | E>
  /** The text as it is written, over all steps. */
  readonly textStream: Stream.Stream<string, AiError | E>
  /** The output as far as it is written, each time that it has changed. */
  readonly partialOutputStream: Stream.Stream<
    Items<ai.StreamTextResult<TOOLS, RC, OUT>["partialOutputStream"]>,
    AiError | E
  >
  /**
   * The elements of an `Output.array`, each when it is complete. Where some do not fit their schema, or the list has no end,
   * the Stream fails after those that came. With another output it fails at once.
   */
  readonly elementStream: Stream.Stream<Items<ai.StreamTextResult<TOOLS, RC, OUT>["elementStream"]>, AiError | E>

  /** The text of the last step. */
  readonly text: Effect.Effect<string, AiError | E>
  /** What was generated in all steps. */
  readonly content: Effect.Effect<Resolved<TOOLS, RC, OUT>["content"], AiError | E>
  /** The reasoning of the last step. */
  readonly reasoning: Effect.Effect<Resolved<TOOLS, RC, OUT>["reasoning"], AiError | E>
  readonly reasoningText: Effect.Effect<string | undefined, AiError | E>
  /** The files of all steps. */
  readonly files: Effect.Effect<Resolved<TOOLS, RC, OUT>["files"], AiError | E>
  /** The sources of all steps. */
  readonly sources: Effect.Effect<Resolved<TOOLS, RC, OUT>["sources"], AiError | E>
  /** The tool calls of all steps. */
  readonly toolCalls: Effect.Effect<Resolved<TOOLS, RC, OUT>["toolCalls"], AiError | E>
  readonly staticToolCalls: Effect.Effect<Resolved<TOOLS, RC, OUT>["staticToolCalls"], AiError | E>
  readonly dynamicToolCalls: Effect.Effect<Resolved<TOOLS, RC, OUT>["dynamicToolCalls"], AiError | E>
  /** The tool results of all steps. */
  readonly toolResults: Effect.Effect<Resolved<TOOLS, RC, OUT>["toolResults"], AiError | E>
  readonly staticToolResults: Effect.Effect<Resolved<TOOLS, RC, OUT>["staticToolResults"], AiError | E>
  readonly dynamicToolResults: Effect.Effect<Resolved<TOOLS, RC, OUT>["dynamicToolResults"], AiError | E>
  /** Why the last step ended. */
  readonly finishReason: Effect.Effect<ai.FinishReason, AiError | E>
  readonly rawFinishReason: Effect.Effect<string | undefined, AiError | E>
  /** The tokens of all steps. */
  readonly usage: Effect.Effect<ai.LanguageModelUsage, AiError | E>
  /** The tokens of all steps. */
  readonly totalUsage: Effect.Effect<ai.LanguageModelUsage, AiError | E>
  /** The provider's warnings of all steps. */
  readonly warnings: Effect.Effect<Resolved<TOOLS, RC, OUT>["warnings"], AiError | E>
  readonly steps: Effect.Effect<Resolved<TOOLS, RC, OUT>["steps"], AiError | E>
  readonly finalStep: Effect.Effect<Resolved<TOOLS, RC, OUT>["finalStep"], AiError | E>
  /** The request of the last step. */
  readonly request: Effect.Effect<Resolved<TOOLS, RC, OUT>["request"], AiError | E>
  /** The response of the last step. */
  readonly response: Effect.Effect<Resolved<TOOLS, RC, OUT>["response"], AiError | E>
  /** The messages to go on with. */
  readonly responseMessages: Effect.Effect<Resolved<TOOLS, RC, OUT>["responseMessages"], AiError | E>
  readonly providerMetadata: Effect.Effect<Resolved<TOOLS, RC, OUT>["providerMetadata"], AiError | E>
  /** The complete output, as the `output` of the call parses it. */
  readonly output: Effect.Effect<Resolved<TOOLS, RC, OUT>["output"], AiError | E>

  /** Reads the call to its end. */
  readonly consumeStream: Effect.Effect<void, AiError | E>
  /**
   * The call as chunks of the AI SDK's UI message stream. A failure of the call is a chunk of type `error`, as a client
   * expects it; the Stream itself fails only where the conversion does.
   */
  readonly toUIMessageStream: <UI_MESSAGE extends ai.UIMessage = ai.UIMessage, R = never, SR = never>(
    options?: UIStreamOptions<UI_MESSAGE, R, SR>
  ) => Stream.Stream<ai.InferUIMessageChunk<UI_MESSAGE>, AiError, Exclude<R | SR, Scope.Scope>>
  /**
   * A web `Response` of server-sent events for `useChat` and its like. It is a reader from the moment it is made: a client
   * that goes away has left, and the scope of the call must stay open until the body is sent.
   */
  readonly toUIMessageStreamResponse: <UI_MESSAGE extends ai.UIMessage = ai.UIMessage, R = never, SR = never>(
    options?: UIResponseOptions<UI_MESSAGE, R, SR>
  ) => Effect.Effect<Response, never, Exclude<R | SR, Scope.Scope>>
  /** A web `Response` with the text alone. Where the call fails its body breaks off with an error. */
  readonly toTextStreamResponse: (init?: ResponseInit) => Effect.Effect<Response>
}
