/**
 * The types of the options of `generateText` and its like.
 *
 * @since 0.1.0
 */
import type { generateText, LanguageModel, OutputInterface, ToolSet } from "ai"
import type { EffectStore } from "../EffectStore.ts"
import type { ToolContext } from "../ToolContext.ts"
import type { Effectful } from "./callbackTypes.ts"
import type { EffectToolBrand } from "./toolTypes.ts"

/** A run-time context that is passed through a call. */
export type RunContext = Record<string, unknown>

/** Any `Output` of the AI SDK. */
export type SomeOutput = OutputInterface

/** The options of the AI SDK's `generateText`. */
export type GenerateTextSdkOptions<TOOLS extends ToolSet, RC extends RunContext, OUT extends SomeOutput> = Parameters<
  typeof generateText<TOOLS, RC, OUT>
>[0]

// the prompt's union and what inference starts from stand beside the other options, where they keep their form
type Apart =
  | "prompt"
  | "messages"
  | "instructions"
  | "system"
  | "allowSystemInMessages"
  | "model"
  | "tools"
  | "toolsContext"
  | "runtimeContext"
  | "output"

/**
 * The options that are inferred together as `O`. The others are named too: a call that has only those would share no
 * property with the constraint, and TypeScript would then drop what it has inferred.
 *
 * The model is checked here and nowhere else: intersected with the `O` of a call whose model is any `LanguageModel`, that
 * type, a union of many ids, would make a union too complex for TypeScript.
 */
export type BaseOptions<Sdk> = Effectful<Omit<Sdk, Apart>> & { readonly [K in Exclude<Apart, "model">]?: unknown } & {
  readonly model?: LanguageModel
}

/** Rejects misspelt options: an inferred `O` has no excess property check of its own. */
export type NoUnknownOptions<O, Sdk> = {
  readonly [K in Exclude<keyof O, keyof Sdk | Apart>]: { readonly "is not an option of this call": never }
}

/** The tools that were passed, as they were inferred; for a conditional expression, each of them. */
type ToolsOf<O> = O extends { readonly tools?: infer T } ? T : never

// of a tool that is perhaps an effect tool, the part that is one counts
type HasEffectTool<T> = T extends object ? [Extract<T[keyof T], EffectToolBrand>] extends [never] ? false : true
  : false

/** What a call needs for its effect tools. */
export type CallServices<O> = true extends HasEffectTool<ToolsOf<O>> ? EffectStore | ToolContext : never
