/**
 * The parts of a step of a run.
 *
 * @since 0.1.0
 */
import type { FinishReason, JSONValue, LanguageModelUsage, ProviderMetadata, TextStreamPart, ToolSet } from "ai"

/** A call of a tool. The input is in JSON form. */
interface OfCall {
  readonly toolCallId: string
  readonly toolName: string
  /** Whether the provider executes the tool. */
  readonly providerExecuted?: boolean | undefined
  readonly providerMetadata?: ProviderMetadata | undefined
  readonly toolMetadata?: { readonly [name: string]: JSONValue | undefined } | undefined
  /** Whether the tool's types are known at run time only. */
  readonly dynamic?: boolean | undefined
}

/**
 * What the model writes, as it comes: the AI SDK's parts of the same names. The ids of texts are those of the provider, and may come
 * again in a later step.
 *
 * @category models
 * @since 0.1.0
 */
export type WrittenPart = Extract<TextStreamPart<ToolSet>, {
  readonly type:
    | "text-start"
    | "text-delta"
    | "text-end"
    | "reasoning-start"
    | "reasoning-delta"
    | "reasoning-end"
    | "tool-input-start"
    | "tool-input-delta"
    | "tool-input-end"
    | "source"
    | "custom"
}>

/**
 * A part of a step: what the model wrote, what its tools were called with and what they answered. Names and shapes follow the AI SDK's
 * `TextStreamPart`.
 *
 * - `start-step`: the model is about to be called for a step.
 * - `step-restarted`: the step is generated again, since its process died, its model call failed or the run is retried. What came
 *   since the step's last `start-step` or `step-restarted` counts no more.
 * - `tool-call`: the model's answer is stored, and this is a call in it, as it will be executed. With `invalid`, it will not be: no such
 *   tool, or no such input.
 * - `tool-result`: with `preliminary`, a value of a tool that streams, which a later result of the same call replaces.
 * - `tool-error`: the text that the model reads.
 * - `tool-approval-request`: the run waits for `Engine.approve` or `Engine.deny` with this `approvalId`.
 * - `tool-output-denied`: the call was denied, and is not executed.
 *
 * @category models
 * @since 0.1.0
 */
export type StepPart =
  | WrittenPart
  | { readonly type: "start-step"; readonly step: number }
  | { readonly type: "step-restarted"; readonly step: number }
  | {
    readonly type: "file" | "reasoning-file"
    readonly mediaType: string
    readonly data: Uint8Array
    readonly providerMetadata?: ProviderMetadata | undefined
  }
  | OfCall & {
    readonly type: "tool-call"
    readonly input: unknown
    readonly title?: string | undefined
    readonly invalid?: boolean | undefined
    /** Why the call is invalid. */
    readonly error?: string | undefined
  }
  | OfCall & {
    readonly type: "tool-result"
    readonly output: unknown
    readonly preliminary?: boolean | undefined
  }
  | OfCall & { readonly type: "tool-error"; readonly error: string }
  | {
    readonly type: "tool-approval-request"
    readonly approvalId: string
    readonly toolCallId: string
    readonly toolName: string
    readonly reason?: string | undefined
  }
  | {
    readonly type: "tool-approval-response"
    readonly approvalId: string
    readonly toolCallId: string
    readonly toolName: string
    readonly approved: boolean
    readonly reason?: string | undefined
  }
  | { readonly type: "tool-output-denied"; readonly toolCallId: string; readonly toolName: string }
  | {
    readonly type: "finish-step"
    readonly step: number
    readonly finishReason: FinishReason
    readonly usage: LanguageModelUsage
    readonly providerMetadata?: ProviderMetadata | undefined
  }
