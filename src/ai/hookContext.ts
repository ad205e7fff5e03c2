/**
 * `ctx` of the hooks: the tool's own validated context, with the run above it.
 */
import type { ToolContext } from "../ToolContext.ts"

/** Where an early API had what `run` holds now. A key built from one of them would silently hold "undefined". */
const moved = ["runId", "agent", "trigger", "signal"] as const

const guard = (context: object, name: string): object =>
  Object.defineProperty(context, name, {
    enumerable: false,
    configurable: true,
    get: () => {
      throw new TypeError(`ctx.${name} is not there: read ctx.run.${name}.`)
    }
  })

/**
 * Members of a tool's own context beat the guards, and `run`, `state` and `artifacts` beat those.
 */
export const hookContext = (ctx: ToolContext["Service"], own: unknown): object => {
  const context: object = { ...own as object, run: ctx.run, state: ctx.state, artifacts: ctx.artifacts }
  for (const name of moved) if (!Object.hasOwn(context, name)) guard(context, name)
  return context
}
