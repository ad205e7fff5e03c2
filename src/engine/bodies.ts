/**
 * What the activities of this process's executions do, and who waits for them where an execution moves to another process.
 */
import { Effect, Exit, Fiber } from "effect"

export interface Bodies {
  /**
   * Asks for the activity `key`, whose body is `body`, by `ask`, which is given what the activity is to do.
   *
   * Whoever asks for an activity that does not run here, while the execution moves to another process, asks that process, which
   * waits for this one to end. So it is left behind, and the execution ends as `owned` says.
   */
  readonly asked: <A>(
    key: string,
    body: Effect.Effect<A>,
    ask: (activity: Effect.Effect<A>) => Effect.Effect<A>,
    owned: Effect.Effect<void>
  ) => Effect.Effect<A>
}

export const make = (): Bodies => {
  // Effect's cluster keeps what was asked for first, which is of no use once that pass is over: the latest counts
  const bodies = new Map<string, Effect.Effect<unknown>>()

  const latest = <A>(key: string): Effect.Effect<A> =>
    Effect.suspend(() =>
      bodies.get(key) as Effect.Effect<A> | undefined
        ?? Effect.andThen(Effect.sleep("50 millis"), Effect.suspend(() => latest<A>(key)))
    )

  return {
    asked: (key, body, ask, owned) => {
      let running = 0
      const counted = Effect.suspend(() => {
        running++
        return Effect.ensuring(body, Effect.sync(() => running--))
      })
      const forget = Effect.sync(() => bodies.get(key) === counted && bodies.delete(key))
      const left = Effect.gen(function*() {
        while (true) {
          yield* Effect.sleep("250 millis")
          if (running > 0) continue
          const exit = yield* Effect.exit(owned)
          if (Exit.isFailure(exit)) return Exit.failCause(exit.cause)
        }
      })
      return Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          yield* restore(owned)
          bodies.set(key, counted)
          // who is interrupted in asking tells all processes so; who leaves does not
          const asking = yield* Effect.forkDetach(Effect.interruptible(ask(latest(key))))
          const exit = yield* Effect.onInterrupt(
            restore(Effect.raceFirst(Fiber.await(asking), left)),
            () => Fiber.interrupt(asking)
          )
          return yield* exit
        }).pipe(Effect.ensuring(forget))
      )
    }
  }
}
