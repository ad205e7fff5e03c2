/**
 * What the rules of a loop say to a tool call, before anybody is asked.
 */
import { asSchema } from "@ai-sdk/provider-utils"
import type { ToolSet } from "ai"
import { Predicate } from "effect"

type AnyFunction = (...args: ReadonlyArray<never>) => unknown

/** What a person, or a rule, says to a call. */
export interface Verdict {
  readonly type: "not-applicable" | "approved" | "denied" | "user-approval"
  readonly reason?: string | undefined
  /** Whether a person is asked, or was. */
  readonly asked?: boolean | undefined
}

export interface ApprovalOptions {
  readonly toolCall: {
    readonly toolCallId: string
    readonly toolName: string
    readonly input: unknown
    readonly providerExecuted?: boolean | undefined
  }
  readonly toolsContext: Readonly<Record<string, unknown>> | undefined
  readonly messages: ReadonlyArray<unknown>
  readonly runtimeContext: unknown
}

const own = (record: unknown, name: string): unknown =>
  Predicate.isObject(record) && Object.hasOwn(record, name) ? (record as Record<string, unknown>)[name] : undefined

export const mayNeedApproval = (toolApproval: unknown, tool: ToolSet[string] | undefined, name: string): boolean =>
  typeof toolApproval === "function" || own(toolApproval, name) != null || tool?.needsApproval != null

/** The tools that have rules, by their names. */
export type Ruled = "all" | ReadonlyArray<string>

export const ruledTools = (toolApproval: unknown, tools: ToolSet | undefined): Ruled =>
  typeof toolApproval === "function"
    ? "all"
    : Object.keys({ ...tools, ...Predicate.isObject(toolApproval) ? toolApproval : {} })
      .filter((name) => mayNeedApproval(toolApproval, own(tools, name) as ToolSet[string] | undefined, name))

/** What the AI SDK's `toolApproval`, or a tool's own `needsApproval`, says to a call. */
export const verdictOf = async (
  toolApproval: unknown,
  tools: ToolSet | undefined,
  given: ApprovalOptions
): Promise<Verdict> => {
  if (typeof toolApproval === "function") return normalized(await (toolApproval as AnyFunction)(given as never))
  const { messages, runtimeContext, toolCall: { input, toolCallId, toolName }, toolsContext } = given
  const tool = tools?.[toolName]
  const context = async () => {
    const value = own(toolsContext, toolName)
    const validate = tool?.contextSchema === undefined ? undefined : asSchema(tool.contextSchema).validate
    const valid = await validate?.(value)
    if (valid?.success === false) throw valid.error
    return valid === undefined ? value : valid.value
  }
  const rule = own(toolApproval, toolName)
  if (rule != null) {
    return normalized(
      typeof rule === "function"
        ? await (rule as AnyFunction)(
          input as never,
          { toolCallId, messages, toolContext: await context(), runtimeContext } as never
        )
        : rule
    )
  }
  const needed: unknown = typeof tool?.needsApproval === "function"
    ? await (tool.needsApproval as AnyFunction)(
      input as never,
      { toolCallId, messages, context: await context() } as never
    )
    : tool?.needsApproval
  return { type: needed === true ? "user-approval" : "not-applicable" }
}

const normalized = (status: unknown): Verdict =>
  status === undefined
    ? { type: "not-applicable" }
    : typeof status === "string"
    ? { type: status as Verdict["type"] }
    : status as Verdict
