/**
 * `streamText` of the AI SDK as an Effect, with Streams.
 *
 * @since 0.1.0
 */
import type * as ai from "ai"
import { type Context, Effect, type Scope } from "effect"
import type { Ai } from "./Ai.ts"
import type { CallbackError, CallbackServices } from "./ai/callbackTypes.ts"
import type { CallServices, NoUnknownOptions, RunContext, SomeOutput } from "./ai/callTypes.ts"
import { openStream, type RawOptions } from "./ai/openStream.ts"
import { streamResult } from "./ai/streamResult.ts"
import type { StreamBaseOptions, StreamTextResult, StreamTextSdkOptions } from "./ai/streamTypes.ts"
import type { AiError } from "./AiError.ts"

export type { StreamPart, StreamTextResult, UIResponseOptions, UIStreamOptions } from "./ai/streamTypes.ts"

/**
 * Generates a text as a stream, and calls tools on the way: the AI SDK's `streamText`, with its options. Where its result has
 * async iterables, this one has `Stream`s, and where it has promises, Effects.
 *
 * **Details**
 *
 * `yield* streamText(...)` makes the call, as in the AI SDK. All members of the result read this one call, at the pace of the
 * fastest of its readers: while all of them wait, the provider's stream is not read on, but for a small buffer. An Effect
 * such as `text` reads to the end. A Stream that is run late, or again, gives what came so far first, with the pieces of a
 * text that were read already in one, and of a tool's preliminary results the newest.
 *
 * The call ends with its stream, or earlier: when its last reader leaves (by `Stream.take`, a failure, an interruption, or an
 * HTTP client that goes away), when its Scope closes, or by an `abortSignal` of your own. The provider's signal then fires,
 * its stream is cancelled, the tools that run are interrupted, and whoever ended the call waits for their finalizers. Reading
 * such a call afterwards fails with an `AiError` whose reason is `"Aborted"`: what was cut off never looks complete.
 *
 * A call that fails, at its beginning or in the middle of a text, fails every Stream and every Effect with the same
 * `AiError`; its `cause` is the AI SDK's or the provider's own error. What was written before the failure comes before it in
 * the Streams. A provider's stream that ends without saying so is a failure too (`"NoOutputGeneratedError"`). Nothing is
 * printed, with or without `onError`.
 *
 * A tool that fails does not make the call fail: the failure becomes a `tool-error` part that carries the identical value.
 *
 * Callbacks may answer Effects, as those of `generateText`: one that is told what happens cannot fail; a decision
 * (`prepareStep`, `stopWhen`, `toolApproval`, ...) that fails, fails the Streams and the Effects with the identical failure.
 *
 * `toUIMessageStreamResponse` answers a web `Response` for `useChat`. It shows a client no text of an error, neither of the
 * call nor of a tool, unless you say how (`onError`, `redactToolErrors`).
 *
 * Where `tools` holds an effect tool, the Effect needs an `EffectStore` and a `ToolContext`, and its calls are reconciled.
 *
 * **Gotchas**
 *
 * What a call uses has to live as long as its Scope: write `program.pipe(Effect.scoped, Effect.provide(layer))`, with the
 * layer outside. In a handler of Effect's HTTP server the Scope is that of the request, which stays open until the body of
 * the response is sent.
 *
 * `Stream.take(1)` on the only reader ends the call. To look at its beginning and go on, fork an Effect of it, `text` say,
 * before.
 *
 * A tool or a decision that closes the Scope of its own call waits for its own end: let it fail, interrupt the reader, or fork
 * the closing.
 *
 * A step that has begun may call its tools before anybody reads, as in the AI SDK; further steps wait for a reader.
 *
 * **Example** (Pieces of a text, and what is known at its end)
 *
 * ```ts
 * import { Ai, streamText } from "chamvi-effect"
 * import { simulateReadableStream } from "ai"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Stream } from "effect"
 *
 * const usage = {
 *   inputTokens: { total: 3, noCache: 3, cacheRead: undefined, cacheWrite: undefined },
 *   outputTokens: { total: 2, text: 2, reasoning: undefined }
 * }
 * const model = new MockLanguageModelV4({
 *   doStream: async () => ({
 *     stream: simulateReadableStream({
 *       chunks: [
 *         { type: "text-start", id: "1" },
 *         { type: "text-delta", id: "1", delta: "Hello, " },
 *         { type: "text-delta", id: "1", delta: "world!" },
 *         { type: "text-end", id: "1" },
 *         { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage }
 *       ]
 *     })
 *   })
 * })
 *
 * const program = Effect.gen(function*() {
 *   const result = yield* streamText({ model, prompt: "Greet the world." })
 *   const pieces = yield* Stream.runCollect(result.textStream)
 *   const { totalTokens } = yield* result.usage
 *   return [pieces, yield* result.text, totalTokens]
 * })
 *
 * await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Ai.layer)))
 * // => [["Hello, ", "world!"], "Hello, world!", 5]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const streamText = <
  TOOLS extends ai.ToolSet = {},
  RC extends RunContext = Record<string, unknown>,
  OUT extends SomeOutput = ai.OutputInterface<string, string, never>,
  O extends StreamBaseOptions<TOOLS, RC, OUT> = StreamBaseOptions<TOOLS, RC, OUT>
>(
  options:
    & O
    & ai.Prompt
    & {
      readonly tools?: TOOLS
      readonly runtimeContext?: RC
      readonly output?: OUT
    }
    & Pick<StreamTextSdkOptions<TOOLS, RC, OUT>, "toolsContext">
    & NoUnknownOptions<O, StreamTextSdkOptions<TOOLS, RC, OUT>>
): Effect.Effect<
  StreamTextResult<TOOLS, RC, OUT, CallbackError<O>>,
  AiError,
  Ai | Scope.Scope | CallServices<O> | CallbackServices<O>
> =>
  Effect.contextWith((context: Context.Context<Ai>) =>
    Effect.map(
      openStream(options as unknown as RawOptions, context),
      (live) => streamResult(live, options as unknown as RawOptions)
    )
  ) as never
