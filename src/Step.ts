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

const holds = (content: unknown, type: string, toolCallId: string): boolean =>
  Array.isArray(content)
  && content.some((part: unknown) =>
    Predicate.isObject(part) && Reflect.get(part, "type") === type && Reflect.get(part, "toolCallId") === toolCallId
  )

/**
 * The step of a call, from 0: how many assistant messages came before the one that made the call.
 *
 * **Details**
 *
 * The AI SDK passes the messages before the call, without the assistant message that holds it. When a call is resumed
 * after an approval it passes that message too: the last assistant message is not counted if it holds this call and no
 * result for it follows. So a call has the same step before and after its approval.
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
  const last = messages.findLastIndex(({ role }) => role === "assistant")
  const steps = messages.filter(({ role }) => role === "assistant").length
  const pending = last !== -1 && holds(messages[last]!.content, "tool-call", toolCallId)
    && !messages.slice(last).some(({ content }) => holds(content, "tool-result", toolCallId))
  return pending ? steps - 1 : steps
}
