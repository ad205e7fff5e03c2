/**
 * The tools of an agent: a set whose members may still be Effects, or a function that answers one.
 */
import type { ToolSet } from "ai"
import { Effect, Predicate } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import type { ToolContext } from "../ToolContext.ts"
import type { RegisteredAgent } from "./agentTypes.ts"

/** Makes the tools of a set that are still Effects. Names, order and prototype stay. */
export const madeTools = (tools: unknown): Effect.Effect<ToolSet | undefined, unknown> =>
  !Predicate.isObject(tools)
    ? Effect.undefined
    : Effect.map(
      Effect.forEach(
        Object.entries(tools),
        ([name, tool]) =>
          Effect.map(
            Effect.isEffect(tool) ? tool as Effect.Effect<ToolSet[string], unknown> : Effect.succeed(tool),
            (tool) => [name, tool] as const
          )
      ),
      (entries) => Object.fromEntries(entries) as ToolSet
    )

/** The tools of one run. */
export const toolsOfRun = (
  { definition, tools }: RegisteredAgent,
  ctx: ToolContext["Service"]
): Effect.Effect<ToolSet | undefined, unknown> =>
  typeof definition.tools === "function"
    ? Effect.flatMap(
      hookAnswer("tools", () => (definition.tools as (ctx: ToolContext["Service"]) => unknown)(ctx)),
      madeTools
    )
    : Effect.succeed(tools)
