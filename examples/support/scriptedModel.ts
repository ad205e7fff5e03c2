/**
 * A language model that says what it is told, so that the examples and the demo run without a network.
 */
import type { LanguageModelV4GenerateResult } from "@ai-sdk/provider"
import { MockLanguageModelV4 } from "ai/test"

const usage: LanguageModelV4GenerateResult["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

/** A turn that calls tools. Each call has an id of its own, as a provider would give it. */
export const calls = (
  ...tools: ReadonlyArray<readonly [toolName: string, input: unknown]>
): LanguageModelV4GenerateResult => ({
  content: tools.map(([toolName, input]) => ({
    type: "tool-call",
    toolCallId: crypto.randomUUID(),
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

/** Takes one turn after the other. */
export const scriptedModel = (...turns: ReadonlyArray<LanguageModelV4GenerateResult>): MockLanguageModelV4 =>
  new MockLanguageModelV4({ doGenerate: [...turns] })
