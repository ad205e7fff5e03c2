import { Effect, Exit } from "effect"

/**
 * `Effect.flatMap` that goes on at once where the Effect is a value already. For hot paths, inside an Effect: what `f` throws
 * is thrown here.
 */
export const chain = <A, E, R, B, E2, R2>(
  self: Effect.Effect<A, E, R>,
  f: (value: A) => Effect.Effect<B, E2, R2>
): Effect.Effect<B, E | E2, R | R2> =>
  Exit.isExit(self) && Exit.isSuccess(self) ? f(self.value as A) : Effect.flatMap(self, f)
