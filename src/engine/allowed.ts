/**
 * Asks an agent's `allow` about a tool.
 */
import { Cause, type Context, Effect } from "effect"
import type { Allow } from "../ai/reconciledCall.ts"
import { ToolNotAllowedError } from "../errors.ts"
import { hookAnswer } from "../internal/promiseBridge.ts"

/** Anything but `true` refuses, and so does a failure. */
export const allowing =
  (allow: Allow, context: Context.Context<never>) => (tool: string): Effect.Effect<void, ToolNotAllowedError> =>
    Effect.matchCauseEffect(Effect.provideContext(hookAnswer("allow", () => allow(tool)), context), {
      onSuccess: (answer) => answer === true ? Effect.void : Effect.fail(new ToolNotAllowedError({ tool })),
      onFailure: (cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.fail(new ToolNotAllowedError({ tool, cause: Cause.squash(cause) }))
    })
