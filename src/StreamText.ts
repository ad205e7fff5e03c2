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
