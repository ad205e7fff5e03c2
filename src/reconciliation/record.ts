/**
 * Writing the record of an effect that happened: whatever the store does, the call has succeeded.
 */
import { type Cause, Duration, Effect, Schedule } from "effect"
import type { CompleteItem, EffectRecord, Fenced } from "../EffectRecord.ts"
import { isClosed } from "../store/lifetime.ts"
import type { Application } from "./Application.ts"
import { askStore, isFenced, within } from "./bounded.ts"
import type { Applied, Call } from "./Call.ts"
import { complain, warn } from "./log.ts"
import { type Registry, registryOf, type Unwritten } from "./Registry.ts"

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
  const written = {
    onSuccess: (reply: Fenced) => {
      done()
      if (reply === "ok") return Effect.succeed(mine)
      application.flag({ claimLost: true })
      return Effect.andThen(
        warn(takenOver(item.key, call.tool)),
        recordOfTheOther(call, mine)
      )
    },
    onFailure: (cause: Cause.Cause<unknown>) => {
      application.flag({ recordFailed: true })
      return Effect.as(writeInBackground(call, item, cause, done), mine)
    }
  }
  const write = () => registryOf(call.store).ask.complete(item)
  return Effect.matchCauseEffect(askStore("record", item.key, write, call.settings.recordTimeout, isFenced), written)
}

const recordOfTheOther = (call: Call, mine: Applied): Effect.Effect<Applied> =>
  Effect.suspend(() => {
    let found: EffectRecord | undefined
    const read = Effect.map(Effect.suspend(() => call.store.get(call.key)), (record) => {
      found = record
    })
    return Effect.map(
      within(Effect.ignoreCause(read), call.settings.storeTimeout),
      () =>
        found?.status === "recorded" && found.tool === call.tool ? { text: found.result!, outcome: "recorded" } : mine
    )
  })

const writeInBackground = (call: Call, item: CompleteItem, cause: Cause.Cause<unknown>, done: () => void) => {
  const registry = registryOf(call.store)
  const unwritten: Unwritten = { item, tool: call.tool, writer: undefined, done }
  registry.unwritten.set(item.key, unwritten)
  return Effect.andThen(
    keepWriting(call, unwritten),
    warn(
      `The effect of key "${item.key}" (tool "${call.tool}") was applied, but its record could not be written yet. `
        + `It is retried in the background; until then only this process knows of it.`,
      cause
    )
  )
}

/**
 * Goes on writing in the background. "ok" and "lost" both end it: the record stands, or another's does. In a store that
 * has been closed meanwhile nothing is tried again: it would keep the process alive for ever.
 */
export const keepWriting = (call: Call, unwritten: Unwritten): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const written = write(registryOf(call.store), unwritten, call.settings.recordTimeout)
    const writer = Effect.runForkWith(fiber.context)(
      Effect.retry(written, { schedule: writing, while: () => !isClosed(call.store) }).pipe(
        Effect.catchCause((cause) => neverWritten(unwritten, cause)),
        Effect.andThen(Effect.sync(() => {
          unwritten.writer = undefined
          unwritten.done()
        }))
      )
    )
    if (writer.pollUnsafe() === undefined) unwritten.writer = writer
    return Effect.void
  })

const neverWritten = ({ item }: Unwritten, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  complain(
    `The record of effect key "${item.key}" was never written. Its claim is left to expire: the next call in another `
      + `process asks alreadyApplied, or finds the key in doubt.`,
    cause
  )

const write = (registry: Registry, unwritten: Unwritten, timeout: number) =>
  Effect.flatMap(
    Effect.suspend(() =>
      askStore("record", unwritten.item.key, () => registry.ask.complete(unwritten.item), timeout, isFenced)
    ),
    (reply) => {
      registry.unwritten.delete(unwritten.item.key)
      return reply === "ok" ? Effect.void : warn(takenOver(unwritten.item.key, unwritten.tool))
    }
  )

const takenOver = (key: string, tool: string): string =>
  `The claim of effect key "${key}" was taken over while its effect was applied; it may have been applied once more. Raise `
  + `the lease if tool "${tool}" is slow.`

const writing = Schedule.jittered(
  Schedule.modifyDelay(
    Schedule.exponential("200 millis"),
    ({ duration }) => Effect.succeed(Duration.min(duration, Duration.seconds(5)))
  )
)

/**
 * One last try for each, when the store falls out of use. What still could not be written stays in memory, without a
 * fiber and without care for its claim, in case the store is used again.
 */
export const flush = (registry: Registry, timeout: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    // without a writer it has had its last try already
    const tries = Effect.forEach(
      Array.from(registry.unwritten.values()).filter(({ writer }) => writer !== undefined),
      (unwritten) => {
        unwritten.writer!.interruptUnsafe()
        unwritten.writer = undefined
        return Effect.ensuring(
          Effect.catchCause(write(registry, unwritten, timeout), (cause) => neverWritten(unwritten, cause)),
          Effect.sync(unwritten.done)
        )
      },
      { concurrency: "unbounded" }
    )
    return Effect.asVoid(tries)
  })
