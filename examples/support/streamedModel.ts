/**
 * The scripted model for `streamText`: the same turns, part by part, and texts word by word.
 */
import type { LanguageModelV4GenerateResult, LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test"

const partsOf = ({ content, finishReason, usage }: LanguageModelV4GenerateResult): Array<LanguageModelV4StreamPart> => [
  { type: "stream-start", warnings: [] },
  ...content.flatMap((part): ReadonlyArray<LanguageModelV4StreamPart> =>
    part.type === "text"
      ? [
        { type: "text-start", id: "1" },
        ...part.text.split(/(?<= )/).map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
        { type: "text-end", id: "1" }
      ]
      : part.type === "tool-call"
      ? [part]
      : []
  ),
  { type: "finish", finishReason, usage }
]

/** Takes one turn after the other. */
export const streamedModel = (...turns: ReadonlyArray<LanguageModelV4GenerateResult>): MockLanguageModelV4 =>
  new MockLanguageModelV4({ doStream: turns.map((turn) => ({ stream: convertArrayToReadableStream(partsOf(turn)) })) })
