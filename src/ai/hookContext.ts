/**
 * `ctx` of the hooks: the tool's own validated context, with the run above it.
 */
import type { ToolContext } from "../ToolContext.ts"
import { guardMoved } from "../toolContext/guards.ts"

/**
 * Members of a tool's own context beat the guards, and `run`, `state` and `artifacts` beat those.
 */
export const hookContext = (ctx: ToolContext["Service"], own: unknown): object =>
  guardMoved({ ...own as object, run: ctx.run, state: ctx.state, artifacts: ctx.artifacts })
