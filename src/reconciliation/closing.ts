/**
 * The end of a store in this process: nothing of ours may stay held, and what could not be written gets a last try.
 */
import { Effect } from "effect"
import { atClose, atEndOfUse } from "../store/lifetime.ts"
import { within } from "./bounded.ts"
import { flush } from "./record.ts"
import type { Registry } from "./Registry.ts"
import { flushReleases } from "./release.ts"

/**
 * Binds what this process knows of the store to the store's life; again and again is the same as once. `timeout` bounds each
 * last try, in milliseconds.
 */
export const bindToStore = (registry: Registry, timeout: number): void => {
  registry.atTheEnd ??= { flush: flush(registry, timeout), close: close(registry, timeout) }
  atEndOfUse(registry.store, registry.atTheEnd.flush)
  atClose(registry.store, registry.atTheEnd.close)
}

/**
 * Stops the applications and waits for them, as long as the store can still take what they have to say. Records are due
 * now, whoever else still has the store in use: after this it answers nobody.
 */
const close = (registry: Registry, timeout: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    // callers who are thrown out must not start anew
    registry.closing = true
    const running = Array.from(registry.applications.values())
    running.forEach((application) => application.stop("cancelled"))
    const ended = Effect.asVoid(Effect.forEach(running, (application) => application.ended))
    const lastTries = Effect.all([flush(registry, timeout), flushReleases(registry, timeout)], {
      concurrency: "unbounded"
    })
    return Effect.ensuring(
      Effect.andThen(within(ended, timeout), lastTries),
      Effect.sync(() => {
        registry.closing = false
      })
    )
  })
