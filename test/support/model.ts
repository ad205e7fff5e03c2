/** A scripted language model: what it answers, turn by turn, and what it was asked. */
import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult
} from "@ai-sdk/provider"
import { MockLanguageModelV4 } from "ai/test"

const usage: LanguageModelV4GenerateResult["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

/** A turn that calls tools. */
export const calls = (
  ...tools: ReadonlyArray<readonly [toolName: string, input: unknown, toolCallId?: string]>
): LanguageModelV4GenerateResult => ({
  content: tools.map(([toolName, input, toolCallId], index): LanguageModelV4Content => ({
    type: "tool-call",
    toolCallId: toolCallId ?? `call-${index + 1}`,
    toolName,
    input: JSON.stringify(input)
  })),
  finishReason: { unified: "tool-calls", raw: undefined },
  usage,
  warnings: []
})

/** A turn that ends with a text. */
export const says = (text: string): LanguageModelV4GenerateResult => ({
  content: [{ type: "text", text }],
  finishReason: { unified: "stop", raw: undefined },
  usage,
  warnings: []
})

export type Turn =
  | LanguageModelV4GenerateResult
  | ((options: LanguageModelV4CallOptions) => PromiseLike<LanguageModelV4GenerateResult>)

/** Answers one turn after the other, the last one again and again. */
export const scripted = (...turns: ReadonlyArray<Turn>): MockLanguageModelV4 => {
  let next = 0
  return new MockLanguageModelV4({
    doGenerate: async (options) => {
      const turn = turns[Math.min(next++, turns.length - 1)]!
      return typeof turn === "function" ? turn(options) : turn
    }
  })
}

/** What the model read as results of tools in its last call: the texts and values, in order. */
export const readBy = (model: MockLanguageModelV4): ReadonlyArray<unknown> =>
  (model.doGenerateCalls.at(-1)?.prompt ?? []).flatMap((message) =>
    message.role === "tool"
      ? message.content.flatMap((part) =>
        part.type === "tool-result" ? ["value" in part.output ? part.output.value : part.output] : []
      )
      : []
  )
