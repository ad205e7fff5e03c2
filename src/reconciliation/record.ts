/**
 * Writing the record of an effect that happened: whatever the store does, the call has succeeded.
 */
import { type Cause, Duration, Effect, Exit, Schedule } from "effect"
import type { CompleteItem } from "../EffectRecord.ts"
import { atEndOfUse } from "../store/lifetime.ts"
import type { Application } from "./Application.ts"
import { askStore } from "./bounded.ts"
import type { Applied, Call } from "./Call.ts"
import { type Registry, registryOf } from "./Registry.ts"

const withFlush = new WeakSet<Registry>()

/**
 * Records the result and answers what the ledger holds then.
 *
 * **Details**
 *
 * - A claim that was taken over is refused: the answer is the store's record if there is one, else the result at hand.
 * - A store that fails or is slow gets the result from the background, for as long as it takes; until then the process
 *   answers the key from memory. `done` is called when the claim need not be kept alive any more.
 */
export const record = (
  application: Application,
  call: Call,
  item: CompleteItem,
  done: () => void
): Effect.Effect<Applied> => {
  const mine: Applied = { text: item.result, outcome: item.outcome === "reconciled" ? "reconciled" : "executed" }
  const write = askStore("record", item.key, () => call.store.complete([item]), call.settings.recordTimeout)
  return Effect.matchCauseEffect(write, {
    onSuccess: (reply) => {
      done()
      if (reply === "ok") return Effect.succeed(mine)
      application.flag({ claimLost: true })
      return Effect.andThen(
        Effect.logWarning(
          `The claim of effect key "${item.key}" was taken over while its effect was applied; it may have been applied `
            + `once more. Raise the lease if tool "${call.tool}" is slow.`
        ),
        recordOfTheOther(call, mine)
      )
    },
    onFailure: (cause) => {
      application.flag({ recordFailed: true })
      return Effect.as(writeInBackground(call, item, cause, done), mine)
    }
  })
}

const recordOfTheOther = (call: Call, mine: Applied): Effect.Effect<Applied> =>
  Effect.map(
    Effect.exit(
      askStore(
        "read",
        call.key,
        () => Effect.map(Effect.orDie(call.store.get(call.key)), (record) => [record ?? null]),
        call.settings.storeTimeout
      )
    ),
    (exit) =>
      Exit.isSuccess(exit) && exit.value?.status === "recorded" && exit.value.tool === call.tool
        ? { text: exit.value.result!, outcome: "recorded" }
        : mine
  )

const writeInBackground = (call: Call, item: CompleteItem, cause: Cause.Cause<unknown>, done: () => void) =>
  Effect.withFiber<void>((fiber) => {
    const registry = registryOf(call.store)
    const unwritten = { item, tool: call.tool }
    registry.unwritten.set(item.key, unwritten)
    if (!withFlush.has(registry)) {
      withFlush.add(registry)
      atEndOfUse(call.store, flush(registry, call.settings.recordTimeout))
    }
    // "ok" and "lost" both end it: the record stands, or another's does
    const write = Effect.suspend(() =>
      registry.unwritten.get(item.key) === unwritten
        ? askStore("record", item.key, () => call.store.complete([item]), call.settings.recordTimeout)
        : Effect.succeed("ok")
    )
    const persist = Effect.andThen(
      Effect.retry(write, writing),
      Effect.sync(() => {
        if (registry.unwritten.get(item.key) === unwritten) registry.unwritten.delete(item.key)
        done()
      })
    )
    Effect.runForkWith(fiber.context)(persist)
    return Effect.logWarning(
      `The effect of key "${item.key}" (tool "${call.tool}") was applied, but its record could not be written yet. `
        + `It is retried in the background; until then only this process knows of it.`,
      cause
    )
  })

const writing = Schedule.jittered(
  Schedule.modifyDelay(Schedule.exponential("200 millis"), ({ duration }) =>
    Effect.succeed(Duration.min(duration, Duration.seconds(5))))
)

/** One last try for each, when the store falls out of use. */
const flush = (registry: Registry, timeout: number): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(Array.from(registry.unwritten.values()), ({ item }) =>
      Effect.matchCauseEffect(askStore("record", item.key, () => registry.store.complete([item]), timeout), {
        onSuccess: () => Effect.sync(() => void registry.unwritten.delete(item.key)),
        onFailure: (cause) =>
          Effect.logError(
            `The record of effect key "${item.key}" was never written. Its claim is left to expire: the next call asks `
              + `alreadyApplied, or finds the key in doubt.`,
            cause
          )
      }), { concurrency: "unbounded", discard: true })
  )
