/**
 * An agent of the AI SDK for one call: with the tools that are bound to it.
 *
 * A `ToolLoopAgent` holds its tools in its settings, which every call reads. So the agent of a call is an object that
 * inherits from the user's, and has settings of its own: the user's agent stays as it is, and what a subclass adds keeps
 * working, except for `#private` fields, which no object inherits. An agent of another make is called as it is.
 */
import { ToolLoopAgent, type ToolSet } from "ai"
import { Predicate } from "effect"
import type { AiDefaults } from "../Ai.ts"
import { mapTools } from "../internal/toolCopy.ts"
import { isWrapped } from "./effectToolDefinition.ts"
import { withOriginals } from "./originals.ts"
import { type CallDescription, languageCall } from "./telemetry/observe.ts"

/** The part of an agent that is looked at here. */
interface AnyAgent {
  readonly tools: ToolSet
}

/** The settings of a `ToolLoopAgent`: private by type, but an own property that can be seen, and nothing works without. */
export const settingsOf = (agent: AnyAgent): Readonly<Record<string, unknown>> | undefined => {
  const settings = agent instanceof ToolLoopAgent
    ? (agent as unknown as { readonly settings?: unknown }).settings
    : null
  return Predicate.isObject(settings) ? settings as Readonly<Record<string, unknown>> : undefined
}

/**
 * The tools of an agent that are bound for each call. Those that were wrapped for a run belong to it: it may allow them
 * less than this one.
 */
export const ownTools = (agent: AnyAgent): ToolSet | undefined =>
  settingsOf(agent) === undefined || agent.tools === undefined
    ? undefined
    : Object.fromEntries(Object.entries(agent.tools).filter(([, tool]) => !isWrapped(tool)))

/** How a call of an agent stands in spans and metrics. */
export const agentCall = (
  name: string,
  agent: AnyAgent & { readonly id: string | undefined },
  defaults: AiDefaults
): CallDescription => {
  const settings = settingsOf(agent) ?? {}
  return {
    ...languageCall(name, settings, defaults),
    model: settings["model"],
    spanName: agent.id === undefined ? "invoke_agent" : `invoke_agent ${agent.id}`,
    attributes: { "gen_ai.agent.name": agent.id }
  }
}

/**
 * `agent`, with the defaults of `Ai` below its settings, with `bound` in the place of its own tools, and with `above` over
 * its settings: what no option of a call can set.
 */
export const agentForCall = <A extends AnyAgent>(
  agent: A,
  defaults: AiDefaults,
  bound: ToolSet | undefined,
  above: object = {}
): A => {
  const settings = settingsOf(agent)
  if (settings === undefined) return agent
  const own = {
    ...defaults.maxRetries === undefined ? {} : { maxRetries: defaults.maxRetries },
    ...defaults.telemetry === undefined ? {} : { telemetry: defaults.telemetry },
    ...settings,
    ...bound === undefined ? {} : {
      tools: mapTools(agent.tools, (tool, name) => Object.hasOwn(bound, name) ? bound[name] : tool)
    },
    ...withOriginals(settings),
    ...above
  }
  // what a subclass remembers belongs to the user's agent
  return new Proxy(Object.create(agent, { settings: { value: own } }) as A, {
    set: (_, property, value) => Reflect.set(agent, property, value)
  })
}
