import { Effect } from "effect"
import { type Application, Enclosing } from "./Application.ts"

/**
 * Runs a hook of the user's where it may be cut, with a Scope of its own, and knowing in which application it runs.
 */
export const runHook = <A, E>(application: Application, hook: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    const enclosing = fiber.getRef(Enclosing)
    return Effect.provideService(
      Effect.interruptible(Effect.scoped(Effect.suspend(hook))),
      Enclosing,
      [...enclosing, application]
    )
  })
