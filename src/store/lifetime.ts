/**
 * How long a store is in use in this process.
 *
 * A store is a plain record of functions without a scope of its own. Whoever uses one for a while (its layer, a set of
 * wrapped tools) retains it; when the last of them closes, what was registered for the end runs.
 */
import { Effect, type Scope } from "effect"
import type { IEffectStore } from "./IEffectStore.ts"

interface Lifetime {
  users: number
  readonly atEnd: Set<Effect.Effect<void>>
}

const lifetimes = new WeakMap<IEffectStore, Lifetime>()

const lifetimeOf = (store: IEffectStore): Lifetime => {
  let lifetime = lifetimes.get(store)
  if (lifetime === undefined) {
    lifetime = { users: 0, atEnd: new Set() }
    lifetimes.set(store, lifetime)
  }
  return lifetime
}

/** Keeps the store in use until the scope closes. */
export const retain = (store: IEffectStore): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const lifetime = lifetimeOf(store)
      lifetime.users++
      return lifetime
    }),
    (lifetime) =>
      --lifetime.users === 0
        ? Effect.forEach(lifetime.atEnd, (end) => end, { concurrency: "unbounded", discard: true })
        : Effect.void
  ))

/** Runs `effect` whenever the store falls out of use. */
export const atEndOfUse = (store: IEffectStore, effect: Effect.Effect<void>): void => {
  lifetimeOf(store).atEnd.add(effect)
}
