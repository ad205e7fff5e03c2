/**
 * Calls of one answer told apart.
 *
 * The AI SDK keeps what it knows of a step's calls by their ids: which of them wait for a person, what was denied. Where two
 * calls have one id, what is said of one would hold for the other.
 */
import type { LanguageModelV4Content, LanguageModelV4GenerateResult, LanguageModelV4ToolCall } from "@ai-sdk/provider"

/**
 * The answer with an id of its own for each call that is executed here. What the provider executes keeps its id, which its
 * results have as well. Answers whose ids differ come back as they are.
 */
export const distinctCalls = (result: LanguageModelV4GenerateResult): LanguageModelV4GenerateResult => {
  const given = new Set(result.content.flatMap((part) => "toolCallId" in part ? [part.toolCallId] : []))
  const taken = new Set(
    result.content.flatMap((part) => "toolCallId" in part && !isOurs(part) ? [part.toolCallId] : [])
  )
  let changed = false
  const content = result.content.map((part) => {
    if (!isOurs(part)) return part
    const { toolCallId } = part
    if (!taken.has(toolCallId)) {
      taken.add(toolCallId)
      return part
    }
    changed = true
    let number = 2
    // with characters that each provider takes
    const next = () => `${toolCallId}-${number++}`
    let id = next()
    while (given.has(id) || taken.has(id)) id = next()
    taken.add(id)
    return { ...part, toolCallId: id }
  })
  return changed ? { ...result, content } : result
}

const isOurs = (part: LanguageModelV4Content): part is LanguageModelV4ToolCall =>
  part.type === "tool-call" && part.providerExecuted !== true
