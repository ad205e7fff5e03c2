/**
 * The result of `streamText`, made of a call under way.
 */
import * as ai from "ai"
import { Effect, Stream } from "effect"
import { AiError } from "../AiError.ts"
import type { End, LiveCall } from "./LiveCall.ts"
import { outputsOnly, partialOutputs } from "./partialOutput.ts"
import type { Part } from "./PartLog.ts"
import { converted, endOf, partsOf } from "./streamReaders.ts"
import { textResponse, uiResponse, uiStream } from "./streamResponses.ts"
import type { StreamTextResult } from "./streamTypes.ts"

/** What the result needs to know of the options. */
export interface ResultOptions {
  readonly output?: ai.OutputInterface | undefined
  readonly tools?: ai.ToolSet | undefined
}

type Step = End["finalStep"]
type ContentPart = Step["content"][number]
type AnyResult = StreamTextResult<ai.ToolSet, Record<string, unknown>, ai.OutputInterface, unknown>

export const streamResult = (live: LiveCall, options: ResultOptions): AnyResult => {
  const output = options.output ?? ai.Output.text()
  const end = endOf(live)
  const of = <A>(get: (end: End) => A) => Effect.map(end, get)
  const ofLast = <A>(get: (step: Step) => A) => Effect.map(end, ({ finalStep }) => get(finalStep))
  const parts = partsOf(live)
  const partialsOf = (from: ReadableStream<Part>) =>
    from.pipeThrough(partialOutputs(output, (part) => live.isRestart(part)))
  let parsed: Promise<unknown> | undefined
  const parse = ({ finishReason, response, text, usage }: Step): Promise<unknown> =>
    output.parseCompleteOutput({ text }, { response, usage, finishReason })
  const complete = Effect.flatMap(end, ({ finalStep }) =>
    Effect.tryPromise({
      try: () => parsed ??= parse(finalStep),
      catch: (error) => AiError.from(error)
    }))
  const result: { readonly [K in keyof AnyResult]: unknown } = {
    stream: parts,
    textStream: Stream.map(Stream.filter(parts, (part) => part.type === "text-delta"), ({ text }) => text),
    partialOutputStream: converted(live, "break", (from) => partialsOf(from).pipeThrough(outputsOnly())),
    elementStream: Stream.suspend(() =>
      output.createElementStreamTransform() === undefined
        ? Stream.fail(AiError.from(noElements(output)))
        : Stream.concat(
          converted(
            live,
            "break",
            (from) => partialsOf(from).pipeThrough(output.createElementStreamTransform() as never)
          ),
          // the SDK leaves out the elements that do not fit: without them, the rest is not all
          Stream.drain(Stream.fromEffect(complete))
        )
    ),

    text: of(({ text }) => text),
    content: of(({ content }) => content),
    reasoning: ofLast(({ content }) => (content as ReadonlyArray<ContentPart>).filter(isReasoning)),
    reasoningText: of(({ reasoningText }) => reasoningText),
    files: of(({ files }) => files),
    sources: of(({ sources }) => sources),
    toolCalls: of(({ toolCalls }) => toolCalls),
    staticToolCalls: of(({ staticToolCalls }) => staticToolCalls),
    dynamicToolCalls: of(({ dynamicToolCalls }) => dynamicToolCalls),
    toolResults: of(({ toolResults }) => toolResults),
    staticToolResults: of(({ staticToolResults }) => staticToolResults),
    dynamicToolResults: of(({ dynamicToolResults }) => dynamicToolResults),
    finishReason: of(({ finishReason }) => finishReason),
    rawFinishReason: of(({ rawFinishReason }) => rawFinishReason),
    usage: of(({ totalUsage }) => totalUsage),
    totalUsage: of(({ totalUsage }) => totalUsage),
    warnings: of(({ warnings }) => warnings),
    steps: of(({ steps }) => steps),
    finalStep: of(({ finalStep }) => finalStep),
    request: of(({ request }) => request),
    response: of(({ response }) => response),
    responseMessages: of(({ responseMessages }) => responseMessages),
    providerMetadata: of(({ providerMetadata }) => providerMetadata),
    output: complete,

    consumeStream: Effect.asVoid(end),
    toUIMessageStream: uiStream(live, options.tools),
    toUIMessageStreamResponse: uiResponse(live, options.tools),
    toTextStreamResponse: textResponse(live)
  }
  return result as AnyResult
}

const isReasoning = ({ type }: ContentPart): boolean => type === "reasoning" || type === "reasoning-file"

const noElements = ({ name }: ai.OutputInterface) =>
  new ai.UnsupportedFunctionalityError({ functionality: `element streams in ${name} mode` })
