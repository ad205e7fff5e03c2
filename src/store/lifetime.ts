/**
 * How long a store is in use in this process.
 *
 * A store is a plain record of functions without a scope of its own. Who makes one owns it; who uses one for a while (a set
 * of wrapped tools) retains it. What was registered runs when the last user is gone, and when the owner's scope closes.
 */
import { Effect, type Scope } from "effect"
import type { IEffectStore } from "./IEffectStore.ts"

interface Lifetime {
  users: number
  closed: boolean
  readonly atEndOfUse: Set<Effect.Effect<void>>
  readonly atClose: Set<Effect.Effect<void>>
}

const lifetimes = new WeakMap<IEffectStore, Lifetime>()

const lifetimeOf = (store: IEffectStore): Lifetime => {
  let lifetime = lifetimes.get(store)
  if (lifetime === undefined) {
    lifetime = { users: 0, closed: false, atEndOfUse: new Set(), atClose: new Set() }
    lifetimes.set(store, lifetime)
  }
  return lifetime
}

const runAll = (effects: ReadonlySet<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.forEach(effects, (effect) => effect, { concurrency: "unbounded", discard: true })

/** Keeps the store in use until the scope closes. */
export const retain = (store: IEffectStore): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(
    Effect.sync(() => {
      const lifetime = lifetimeOf(store)
      lifetime.users++
      lifetime.closed = false
      return lifetime
    }),
    (lifetime) => --lifetime.users === 0 ? runAll(lifetime.atEndOfUse) : Effect.void
  ))

/** Binds the store's life to the scope: it is in use until then, and closed after. */
export const own = (store: IEffectStore): Effect.Effect<void, never, Scope.Scope> =>
  Effect.andThen(
    retain(store),
    Effect.addFinalizer(() =>
      Effect.suspend(() => {
        const lifetime = lifetimeOf(store)
        return Effect.ensuring(
          runAll(lifetime.atClose),
          Effect.sync(() => {
            lifetime.closed = true
          })
        )
      })
    )
  )

/** Whether the scope of the store's maker has closed, and nobody has begun to use the store since. */
export const isClosed = (store: IEffectStore): boolean => lifetimeOf(store).closed

/** Runs `effect` whenever the last user of the store is gone. */
export const atEndOfUse = (store: IEffectStore, effect: Effect.Effect<void>): void => {
  lifetimeOf(store).atEndOfUse.add(effect)
}

/** Runs `effect` when the scope of the store's maker closes, before the store does. */
export const atClose = (store: IEffectStore, effect: Effect.Effect<void>): void => {
  lifetimeOf(store).atClose.add(effect)
}
