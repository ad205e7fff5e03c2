/**
 * Which calls of a model's answer can be made.
 *
 * A call that was made, or may have been, can be one that the AI SDK does not make any more: a new version of the agent has not its
 * tool, or its schema takes less. To the model that would read as if nothing had been done, and it might do it by another tool.
 */
import { asSchema, safeParseJSON, safeValidateTypes } from "@ai-sdk/provider-utils"
import type { LanguageModelV4CallOptions, LanguageModelV4Content } from "@ai-sdk/provider"
import type { ToolSet } from "ai"

/** The ids of the calls of a tool that is offered to the model, with an input that its schema takes. What a provider executes is none. */
export const goodCalls = async (
  content: ReadonlyArray<LanguageModelV4Content>,
  tools: ToolSet = {},
  offered: LanguageModelV4CallOptions["tools"] = []
): Promise<ReadonlyArray<string>> => {
  const calls = content.flatMap((part) => part.type === "tool-call" && part.providerExecuted !== true ? [part] : [])
  const good = await Promise.all(calls.map(async ({ input, toolName }) =>
    Object.hasOwn(tools, toolName)
    && offered.some(({ name }) => name === toolName)
    && await takes(tools[toolName]!.inputSchema, input)
  ))
  return calls.flatMap(({ toolCallId }, index) => good[index] ? [toolCallId] : [])
}

// as the AI SDK reads it
const takes = async (inputSchema: unknown, input: string): Promise<boolean> => {
  try {
    const schema = asSchema(inputSchema as Parameters<typeof asSchema>[0])
    const parsed = input.trim() === ""
      ? await safeValidateTypes({ value: {}, schema })
      : await safeParseJSON({ text: input, schema })
    return parsed.success
  } catch {
    return false
  }
}
