/**
 * What an agent is to the engine.
 *
 * @since 0.1.0
 */
import type { FinishReason, LanguageModelUsage, ModelMessage, OutputInterface, ToolSet } from "ai"
import type { Context, Layer, Schema } from "effect"
import type { Ai } from "../Ai.ts"
import type { Allow } from "../ai/reconciledCall.ts"
import type { Run, ToolContext } from "../ToolContext.ts"
import type { Engine } from "../Engine.ts"

/**
 * What a function of an agent's options knows of the run.
 *
 * @category models
 * @since 0.1.0
 */
export type AgentContext<Trigger> = Omit<ToolContext["Service"], "run"> & {
  readonly run: Omit<Run, "trigger"> & { readonly trigger: Trigger }
}

/** The options of an agent as they arrive at run time. */
export interface AgentDefinition {
  readonly name: string
  readonly trigger: Schema.Codec<unknown, unknown> | undefined
  readonly output: OutputInterface | undefined
  readonly allow: Allow | undefined
  /** Whether its models stream their answers. */
  readonly stream: boolean
  /** A set of tools and Effects of tools, or a function that answers one. */
  readonly tools: unknown
  readonly instructions: unknown
  /** The options of the AI SDK's loop. */
  readonly options: Readonly<Record<string, unknown>>
}

/** An agent in a process that runs it. */
export interface RegisteredAgent {
  readonly definition: AgentDefinition
  readonly context: Context.Context<Ai>
  /** The tools, where they do not depend on the run. */
  readonly tools: ToolSet | undefined
}

export declare const Types: unique symbol

/**
 * An agent: what a model is told, which tools it has, and what comes of its runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Agent<Name extends string, Trigger, Output, R> {
  readonly name: Name
  /** Registers the agent where it shall run; the services of its tools and callbacks surface here. */
  readonly layer: Layer.Layer<never, never, Engine | R>
  readonly [Types]?: { readonly trigger: (trigger: Trigger) => Trigger; readonly output: Output }
}

/**
 * What a run is started with.
 *
 * @category models
 * @since 0.1.0
 */
export type RunInput<Trigger> =
  & {
    /** What makes two attempts the same run: take it from the job, the message or the event that started it. */
    readonly runId: string
  }
  & ({ readonly prompt: string | Array<ModelMessage>; readonly messages?: never } | {
    readonly messages: Array<ModelMessage>
    readonly prompt?: never
  })
  & ([Trigger] extends [undefined] ? { readonly trigger?: undefined } : { readonly trigger: Trigger })

/**
 * What came of a run. It is the same value each time that it is asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<Output> {
  readonly runId: string
  /** The text of the last step. */
  readonly text: string
  /** The decoded output, or the text where the agent names no `output`. */
  readonly output: Output
  readonly finishReason: FinishReason
  /** The tokens of all steps. */
  readonly usage: LanguageModelUsage
  /** How many steps there were. */
  readonly steps: number
  /** What the agent said and its tools answered, to go on with. */
  readonly responseMessages: ReadonlyArray<ModelMessage>
}

/** @internal */
export const definitions = new WeakMap<object, AgentDefinition>()

/** @internal */
export const definitionOf = (agent: { readonly name: string }): AgentDefinition => {
  const definition = definitions.get(agent)
  if (definition === undefined) throw new TypeError(`"${agent.name}" is no agent that defineAgent made`)
  return definition
}
