import { type Cause, Effect } from "effect"

/** A logger that fails or dies must not fail a call, least of all one whose effect has happened. */
export const warn = (message: string, ...more: ReadonlyArray<Cause.Cause<unknown> | Error>): Effect.Effect<void> =>
  Effect.ignoreCause(Effect.logWarning(message, ...more))

/** The same for what somebody should see to. */
export const complain = (message: string, ...more: ReadonlyArray<Cause.Cause<unknown> | Error>): Effect.Effect<void> =>
  Effect.ignoreCause(Effect.logError(message, ...more))
