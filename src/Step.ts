/**
 * Which step of its run a tool call belongs to.
 *
 * @since 0.1.0
 */
import { Predicate } from "effect"

/**
 * What `stepOf` reads of the AI SDK's call options.
 *
 * @category models
 * @since 0.1.0
 */
export interface StepOptions {
  readonly toolCallId: string
  readonly messages: ReadonlyArray<{ readonly role: string; readonly content: unknown }>
}

type Message = StepOptions["messages"][number]

const parts = ({ content }: Message, type: string, toolCallId?: string): ReadonlyArray<object> =>
  Array.isArray(content)
    ? content.filter((part: unknown) =>
      Predicate.isObject(part) && Reflect.get(part, "type") === type
      && (toolCallId === undefined || Reflect.get(part, "toolCallId") === toolCallId)
    )
    : []

const approvalIds = (parts: ReadonlyArray<object>): ReadonlyArray<unknown> =>
  parts.map((part) => Reflect.get(part, "approvalId"))

/** Whether the messages end with an answer to a request to approve this call, and it is not done yet. */
const answersApproval = (messages: ReadonlyArray<Message>, toolCallId: string): boolean => {
  const last = messages.at(-1)
  if (last?.role !== "tool" || parts(last, "tool-result", toolCallId).length > 0) return false
  const answered = approvalIds(parts(last, "tool-approval-response"))
  return messages.some((message) =>
    approvalIds(parts(message, "tool-approval-request", toolCallId)).some((id) => answered.includes(id))
  )
}

/**
 * The step of a call, from 0: how many assistant messages came before the one that made the call.
 *
 * **Details**
 *
 * The AI SDK passes the messages before the call, without the assistant message that holds it. When a call is resumed
 * after an approval it passes that message too, and all that came later: then the messages from that one on are not counted,
 * so a call has the same step before and after its approval, and when the approval is sent once more. A call is resumed
 * where the messages end with an answer to its approval request, or where the last assistant message holds it and no result
 * for it follows.
 *
 * **Gotchas**
 *
 * Assistant messages of the prompt count too. In a conversation of several turns the step is one of the conversation.
 *
 * **Example** (Telling a resumed call's step)
 *
 * ```ts
 * import { stepOf } from "chamvi-effect"
 *
 * const user = { role: "user", content: "Deploy." }
 * const call = { role: "assistant", content: [{ type: "tool-call", toolCallId: "a", toolName: "deploy", input: {} }] }
 *
 * stepOf({ toolCallId: "a", messages: [user] }) // => 0
 * stepOf({ toolCallId: "a", messages: [user, call] }) // => 0
 * stepOf({ toolCallId: "b", messages: [user, call] }) // => 1
 * ```
 *
 * @category reading
 * @since 0.1.0
 */
export const stepOf = ({ messages, toolCallId }: StepOptions): number => {
  const isAssistant = ({ role }: Message) => role === "assistant"
  const holder = messages.findLastIndex((message) =>
    isAssistant(message) && parts(message, "tool-call", toolCallId).length > 0
  )
  const later = messages.slice(holder)
  const pending = holder !== -1 && !later.slice(1).some(isAssistant)
    && !later.some((message) => parts(message, "tool-result", toolCallId).length > 0)
  const resumed = pending || holder !== -1 && answersApproval(messages, toolCallId)
  return (resumed ? messages.slice(0, holder) : messages).filter(isAssistant).length
}
