/**
 * Giving a claim up. A store that is out of reach gets the verdict later: until then only the claim's lease speaks for it.
 */
import { Duration, Effect, Schedule } from "effect"
import type { Fenced, ReleaseItem } from "../EffectRecord.ts"
import type { EffectStoreError } from "../errors.ts"
import { askStore, isFenced, within } from "./bounded.ts"
import type { Call } from "./Call.ts"
import { warn } from "./log.ts"
import { type Registry, registryOf } from "./Registry.ts"

const send = (call: Call, item: ReleaseItem): Effect.Effect<Fenced, EffectStoreError> =>
  askStore(
    "release",
    item.key,
    () => registryOf(call.store).ask.release(item),
    call.settings.storeTimeout,
    isFenced
  )

/**
 * Releases the claim with its verdict. It cannot fail: what the store does not take now is sent again until the lease is
 * over, and before this process's next claim of the key. Until it is taken it is due: nobody may wait for it, and a store
 * must not close before it.
 */
export const release = (call: Call, item: ReleaseItem): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { unreleased } = registryOf(call.store)
    unreleased.add(item)
    return Effect.matchEffect(send(call, item), {
      onFailure: (error) => sendLater(call, item, error),
      onSuccess: () => Effect.sync(() => void unreleased.delete(item))
    })
  })

const sendLater = (call: Call, item: ReleaseItem, error: EffectStoreError): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const { unreleased } = registryOf(call.store)
    const forget = Effect.sync(() => unreleased.delete(item))
    const again = Effect.suspend(() => unreleased.has(item) ? Effect.asVoid(send(call, item)) : Effect.void)
    const untilTheLeaseIsOver = Schedule.exponential("200 millis").pipe(
      Schedule.jittered,
      Schedule.upTo({ duration: Duration.millis(call.settings.lease) })
    )
    Effect.runForkWith(fiber.context)(
      Effect.andThen(Effect.ignore(Effect.retry(again, untilTheLeaseIsOver)), forget)
    )
    return warn(
      `The claim of effect key "${item.key}" could not be released yet; other processes wait for its lease to end.`,
      error
    )
  })

/** One last try for each release that is still due. */
export const flushReleases = (registry: Registry, timeout: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const due = Array.from(registry.unreleased)
    registry.unreleased.clear()
    const lastTry = (item: ReleaseItem) =>
      within(Effect.ignoreCause(Effect.suspend(() => registry.ask.release(item))), timeout)
    return Effect.asVoid(Effect.forEach(due, lastTry, { concurrency: "unbounded" }))
  })

/**
 * Sends a release that is still due before the key is claimed again: its verdict is the truth about the attempt, and a
 * claim whose fiber has ended need not be waited for.
 */
export const releaseFirst = (call: Call): Effect.Effect<void, EffectStoreError> =>
  Effect.suspend(() => {
    const { unreleased } = registryOf(call.store)
    const due = Array.from(unreleased).filter(({ key }) => key === call.key)
    return Effect.asVoid(Effect.forEach(due, (item) => Effect.map(send(call, item), () => unreleased.delete(item))))
  })
