/**
 * A language model that says what it is told, so that the demo runs without a network. Set AI_MODEL for a real one.
 */
import { MockLanguageModelV4 } from "ai/test"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

/** Calls `tool` with `input` in its first step, and ends with `text`. */
export const scriptedModel = (tool: string, input: unknown, text: string): MockLanguageModelV4 =>
  new MockLanguageModelV4({
    doGenerate: [
      {
        content: [{ type: "tool-call", toolCallId: crypto.randomUUID(), toolName: tool, input: JSON.stringify(input) }],
        finishReason: { unified: "tool-calls", raw: undefined },
        usage,
        warnings: []
      },
      {
        content: [{ type: "text", text }],
        finishReason: { unified: "stop", raw: undefined },
        usage,
        warnings: []
      }
    ]
  })
