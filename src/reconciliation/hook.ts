import { Effect } from "effect"
import { type Application, Enclosing } from "./Application.ts"

/**
 * Runs a hook of the user's, with a Scope of its own, and knowing in which application it runs.
 *
 * The hook marks by itself what of it may be cut (`hookAnswer` does): an interruptible region around it would have a step
 * in which an interrupt still costs the value that an uninterruptible hook has returned.
 */
export const runHook = <A, E>(
  application: Application,
  hook: (application: Application) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    if (application.stopped) return Effect.interrupt
    application.running = true
    const enclosing = fiber.getRef(Enclosing)
    return Effect.provideService(
      Effect.scoped(Effect.suspend(() => hook(application))),
      Enclosing,
      [...enclosing, application]
    )
  })
