/**
 * What an effect tool hides in itself, for the code that wraps it.
 */
import type { Duration } from "effect"
import { Predicate } from "effect"
import type { OnInputChange, WhenInDoubt } from "../EffectSettings.ts"
import { hideOnTool } from "../internal/toolCopy.ts"
import type { Captured } from "./callContext.ts"
import type { ToolCodecs } from "./sdkTool.ts"
import { refusedOutput, type ToolOutput } from "./streamToolOutput.ts"

/**
 * The normalized options of an effect tool. Hooks answer whatever their author wrote: `hookAnswer` makes an Effect of it.
 * They see decoded values. The tool's name is its key in the tool set, and is not known here.
 */
export interface EffectToolDefinition {
  readonly execute: (input: unknown, options: object) => unknown
  readonly streaming: boolean
  readonly effectKey: ((input: unknown, ctx: object, options: object) => unknown) | undefined
  readonly alreadyApplied: ((key: string, input: unknown, ctx: object) => unknown) | undefined
  readonly whenInDoubt: WhenInDoubt | undefined
  readonly onInputChange: OnInputChange | undefined
  readonly settle: Duration.Input | undefined
  readonly lease: Duration.Input | undefined
  readonly waitFor: Duration.Input | undefined
  /** Whether `execute` and its record are one transaction. */
  readonly transactional: boolean
  /** The services that were there when the tool was made: `contextOf(captured, caller)` is what its hooks run in. */
  readonly captured: Captured
  readonly codecs: ToolCodecs
}

const Definition: unique symbol = Symbol.for("chamvi-effect/EffectToolDefinition") as never

type Holder = { readonly [Definition]?: EffectToolDefinition }

/**
 * Hides the definition in the tool and in its `execute`: the tool's own property survives a copy of its descriptors and an
 * `execute` that was replaced, and the one on the function survives a spread.
 */
export const hideDefinition = <T extends { readonly execute: object }>(
  tool: T,
  definition: EffectToolDefinition
): T => {
  hideOnTool(tool.execute, Definition, definition)
  return hideOnTool(tool, Definition, definition)
}

/**
 * The definition in an effect tool, wrapped or not, or `undefined` for every other value: also for a copy whose `execute` was
 * taken away, so that the client executes it.
 */
export const getEffectToolDefinition = (tool: unknown): EffectToolDefinition | undefined => {
  if (!Predicate.isObject(tool)) return undefined
  const execute = (tool as { readonly execute?: unknown }).execute
  return typeof execute === "function" ? (tool as Holder)[Definition] ?? (execute as Holder)[Definition] : undefined
}

/** Whether `tool` is an effect tool that has been wrapped for a run: its `execute` is no longer the one that it was made with. */
export const isWrapped = (tool: unknown): boolean =>
  getEffectToolDefinition(tool) !== undefined
  && (tool as { readonly execute: Holder }).execute[Definition] === undefined

/** Whether `tool` was made by `defineEffectTool`. */
export const isEffectTool = (tool: unknown): boolean => getEffectToolDefinition(tool) !== undefined

/**
 * The `execute` of an effect tool that nobody wrapped. Each tool has a function of its own, since its definition hangs on
 * it.
 */
export const refuseUnwrapped = (streaming: boolean) =>
  refusal(streaming, () =>
    new Error(
      "An effect tool was called without reconciliation, and nothing was executed. Call it through generateText of "
        + "chamvi-effect, or wrap the tools with wrapToolsForRun before they are given to ai."
    ))

/** An `execute` that refuses each call in the form in which the tool answers. */
export const refusal = (streaming: boolean, error: () => unknown): () => Promise<never> | ToolOutput =>
  streaming ? () => refusedOutput(error()) : () => Promise.reject(error())
