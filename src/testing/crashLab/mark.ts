/**
 * Places inside of a remote, or of a client, at which a lab can kill the process.
 */
import { Context, Effect } from "effect"

/** What a mark does: nothing, but in a lab. */
export const Mark = Context.Reference<(name: string) => Effect.Effect<void>>("chamvi-effect/testing/crashLab/mark", {
  defaultValue: () => () => Effect.void
})

export const point = (name: string): Effect.Effect<void> => Effect.withFiber((fiber) => fiber.getRef(Mark)(name))
