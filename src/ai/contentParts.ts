/**
 * The answer of a model as the parts of a stream.
 */
import { getErrorMessage } from "@ai-sdk/provider"
import type { StepResult, ToolSet } from "ai"
import { Predicate } from "effect"
import type { StepPart } from "./StepPart.ts"

type ContentPart = StepResult<ToolSet>["content"][number]
type Call = Extract<ContentPart, { readonly type: "tool-call" }>

/** All of an answer, in order; and what of it a stream could not tell, or not for certain, before the answer was stored. */
export const contentParts = (
  content: ReadonlyArray<ContentPart>
): { readonly whole: ReadonlyArray<StepPart>; readonly rest: ReadonlyArray<StepPart> } => {
  const parts = content.map((part, index) => ({ part, parts: partsOf(part, String(index)) }))
  return {
    whole: parts.flatMap(({ parts }) => parts),
    rest: parts.flatMap(({ part, parts }) => isLate(part) ? parts : [])
  }
}

const isLate = (part: ContentPart): boolean =>
  part.type === "file" || part.type === "reasoning-file" || part.type === "tool-call" && part.providerExecuted !== true

const partsOf = (part: ContentPart, id: string): ReadonlyArray<StepPart> => {
  const metadata = part.type !== "tool-approval-request" && part.type !== "tool-approval-response"
      && part.providerMetadata !== undefined
    ? { providerMetadata: part.providerMetadata }
    : {}
  switch (part.type) {
    case "text":
      return [
        { type: "text-start", id, ...metadata },
        { type: "text-delta", id, text: part.text },
        { type: "text-end", id, ...part.citations === undefined ? {} : { citations: part.citations } }
      ]
    case "reasoning":
      return [
        { type: "reasoning-start", id, ...metadata },
        { type: "reasoning-delta", id, text: part.text },
        { type: "reasoning-end", id }
      ]
    case "file":
    case "reasoning-file":
      return [{ type: part.type, mediaType: part.file.mediaType, data: part.file.uint8Array, ...metadata }]
    case "source":
    case "custom":
      return [part]
    case "tool-call":
      return callParts(part)
    case "tool-result":
      return [{ type: "tool-result", ...ofCall(part), output: part.output }]
    case "tool-error":
      return [{ type: "tool-error", ...ofCall(part), error: errorText(part.error) }]
    case "tool-approval-request": {
      const { approvalId, toolCall: { toolCallId, toolName } } = part
      return [{ type: "tool-approval-request", approvalId, toolCallId, toolName }]
    }
    case "tool-approval-response":
      return []
  }
}

const callParts = (call: Call): ReadonlyArray<StepPart> => {
  const { input, title } = call
  const part = { type: "tool-call", ...ofCall(call), input, ...title === undefined ? {} : { title } } as const
  // the AI SDK calls no tool, and tells the model why
  return call.dynamic === true && call.invalid === true
    ? [{ ...part, invalid: true, error: errorText(call.error) }]
    : [part]
}

type CallLike =
  & Pick<Call, "toolCallId" | "toolName">
  & {
    readonly [K in "providerExecuted" | "providerMetadata" | "toolMetadata" | "dynamic"]?: Call[K] | undefined
  }

/** What all parts of a call say of it. */
export const ofCall = (call: CallLike) => ({
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  ...call.providerExecuted === undefined ? {} : { providerExecuted: call.providerExecuted },
  ...call.providerMetadata === undefined ? {} : { providerMetadata: call.providerMetadata },
  ...call.toolMetadata === undefined ? {} : { toolMetadata: call.toolMetadata },
  ...call.dynamic === true ? { dynamic: true } : {}
})

const errorText = (error: unknown): string => typeof error === "string" ? error : getErrorMessage(error)

/** The input of a call as the model wrote it, which may be no JSON. */
export const jsonOf = (text: string): unknown => {
  if (text.trim() === "") return {}
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** Whether an answer of a tool is a series of values. */
export const isSeries = (answer: unknown): boolean => Predicate.hasProperty(answer, Symbol.asyncIterator)
