/**
 * Steps 4 to 7 of a reconciliation, as the fiber of an application runs them: claim, remote check, execute, record.
 *
 * The fiber is uninterruptible. Hooks and waits are cut where they allow it; everything between them runs to its end, so
 * that a claim is always released or recorded, and a result that exists is never dropped.
 */
import { Cause, Clock, Effect, Exit } from "effect"
import type { Claimed, CompleteItem, Recorded, Verdict } from "../EffectRecord.ts"
import { EffectResolution } from "../EffectResolution.ts"
import {
  EffectInDoubtError,
  EffectInputChangedError,
  EffectKeyConflictError,
  EffectOutcomeUnknownError,
  EffectStoreError
} from "../errors.ts"
import { chain } from "../internal/chain.ts"
import { textOf as safeTextOf } from "../internal/jsonCopy.ts"
import * as RecordedResult from "../RecordedResult.ts"
import { acquire } from "./acquire.ts"
import type { Application, Ending } from "./Application.ts"
import { askStore, isFenced, monotonicMillis, within } from "./bounded.ts"
import { type Applied, type Call, inputsDiffer } from "./Call.ts"
import { type Heartbeats, heartbeatsOf, type Lease } from "./heartbeat.ts"
import { runHook } from "./hook.ts"
import { warn } from "./log.ts"
import { keepWriting, record } from "./record.ts"
import { registryOf, type Unwritten } from "./Registry.ts"
import { release } from "./release.ts"
import { askRemote, checkRemote } from "./remoteCheck.ts"
import { toRecord } from "./resultCodec.ts"

/**
 * Runs the application to its end; `endingOf` says what its exit means to those who wait.
 */
export const apply = (application: Application, call: Call): Effect.Effect<Applied, unknown> => {
  const unwritten = registryOf(call.store).unwritten.get(call.key)
  if (unwritten !== undefined) return recall(application, call, unwritten)
  return chain(acquire(application, call), ({ reply, sentAt }) =>
    reply._tag === "Recorded"
      ? replay(application, call, reply)
      : Effect.withFiber((fiber) => {
        const clock = fiber.getRef(Clock.Clock)
        const heartbeats = heartbeatsOf(registryOf(call.store), clock)
        const lease: Lease = {
          key: call.key,
          token: reply.token,
          duration: call.settings.lease,
          sentAt,
          dueAt: sentAt + call.settings.lease / 3,
          recording: false,
          onLost: () => {
            application.flag({ claimLost: true })
            application.stop("lost")
          }
        }
        if (reply.takenOver) application.flag({ takenOver: true })
        heartbeats.add(lease, fiber)
        return holding(application, call, reply, lease, heartbeats, clock)
      }))
}

export const endingOf = (application: Application, exit: Exit.Exit<Applied, unknown>): Ending =>
  Exit.isSuccess(exit)
    ? { _tag: "Applied", applied: exit.value }
    : application.stopped && Cause.hasInterrupts(exit.cause)
    ? { _tag: "Over" }
    : { _tag: "Failed", cause: exit.cause }

/** Answers a key whose record is still being written. */
export const recall = (application: Application, call: Call, unwritten: Unwritten): Effect.Effect<Applied, unknown> => {
  const { item, tool, writer } = unwritten
  if (tool !== call.tool)
    return Effect.fail(new EffectKeyConflictError({ key: call.key, tool: call.tool, heldBy: tool }))
  const recalled = replay(application, call, item)
  return writer === undefined ? Effect.andThen(keepWriting(call, unwritten), recalled) : recalled
}

export const replay = (
  application: Application,
  call: Call,
  recorded: Pick<Recorded, "fingerprint" | "result">
): Effect.Effect<Applied, unknown> => {
  const applied: Applied = { text: recorded.result, outcome: "recorded" }
  if (inputsDiffer(call, recorded.fingerprint)) {
    application.flag({ inputChanged: true })
    if (call.settings.onInputChange === "fail") return Effect.fail(inputChanged(call))
  }
  return supplyMissing(application, call, applied)
}

/** A record without a result: the remote may know it. What it says of the effect itself is settled and not asked. */
const supply = (application: Application, call: Call, applied: Applied): Effect.Effect<Applied, unknown> =>
  Effect.flatMap(askRemote(application, call), (answer) => {
    if (answer._tag !== "Applied" || RecordedResult.isUnavailable(answer.text)) return Effect.succeed(applied)
    return Effect.as(keep(call, answer.text), { text: answer.text, outcome: applied.outcome })
  })

/** What is reconciled is what the remote has just said; it knows no more. */
export const supplyMissing = (
  application: Application,
  call: Call,
  applied: Applied
): Effect.Effect<Applied, unknown> =>
  applied.outcome !== "reconciled" && call.alreadyApplied !== undefined && RecordedResult.isUnavailable(applied.text)
    ? supply(application, call, applied)
    : Effect.succeed(applied)

/** Puts a supplied result in the place of the missing one: for those who cannot ask, and as far as the store takes it. */
const keep = (call: Call, text: string): Effect.Effect<void> => {
  const { key, settings, store } = call
  const unwritten = registryOf(store).unwritten.get(key)
  if (unwritten === undefined) {
    const resolve = Effect.suspend(() => store.resolve(key, EffectResolution.applied(RecordedResult.valueOf(text))))
    return within(Effect.ignoreCause(resolve), settings.storeTimeout)
  }
  unwritten.item = { ...unwritten.item, result: text }
  return Effect.void
}

const inputChanged = (call: Call) => new EffectInputChangedError({ key: call.key, tool: call.tool })

/** What is known of the effect, for the release of a claim that ends without a record. */
interface Knowledge {
  verdict: Verdict
  cleared: boolean
}

export const nothingKnown = (): Knowledge => ({ verdict: "clean", cleared: false })

const holding = (
  application: Application,
  call: Call,
  claimed: Claimed,
  lease: Lease,
  heartbeats: Heartbeats,
  clock: Clock.Clock
): Effect.Effect<Applied, unknown> => {
  const known = nothingKnown()
  return Effect.matchCauseEffect(Effect.suspend(() => decide(application, call, claimed, lease, known, clock)), {
    onFailure: (cause) => {
      heartbeats.delete(lease)
      const released = release(call, { key: call.key, token: claimed.token, ...known })
      return Effect.andThen(released, Effect.failCause(cause))
    },
    onSuccess: ({ outcome, text }) => {
      lease.recording = true
      const item = itemOf(call, claimed, { text, outcome })
      const recorded = record(application, call, item, () => heartbeats.delete(lease))
      // the record may be another's, after a lost claim
      return Effect.flatMap(recorded, (applied) => supplyMissing(application, call, applied))
    }
  })
}

export interface Decided {
  readonly text: string
  readonly outcome: "executed" | "reconciled"
}

/** What is recorded of it. */
export const itemOf = (call: Call, claimed: Claimed, { outcome, text }: Decided): CompleteItem => ({
  key: call.key,
  token: claimed.token,
  result: text,
  outcome,
  fingerprint: outcome === "reconciled" ? claimed.earlier?.fingerprint ?? call.fingerprint : call.fingerprint
})

/** A claim without a lease is that of a transaction. */
export const decide = (
  application: Application,
  call: Call,
  claimed: Claimed,
  lease: Lease | undefined,
  known: Knowledge,
  clock: Clock.Clock
): Effect.Effect<Decided, unknown> => {
  if (application.cancelled) return Effect.interrupt
  const differs = claimed.earlier !== undefined && inputsDiffer(call, claimed.earlier.fingerprint)
  // an attempt that applied nothing, by its own word, may be followed by one with another input
  if (differs && claimed.doubt === "inDoubt") {
    application.flag({ inputChanged: true })
    if (call.settings.onInputChange === "fail") return Effect.fail(inputChanged(call))
  }
  const execution = Effect.suspend(() =>
    chain(ensureLease(application, call, lease, clock), () => execute(application, call, known))
  )
  if (call.alreadyApplied === undefined) {
    return claimed.doubt === "inDoubt" ? followPolicy(application, call, execution) : execution
  }
  return Effect.flatMap(checkRemote(application, call, claimed), (answer): Effect.Effect<Decided, unknown> => {
    switch (answer._tag) {
      case "Applied":
        // the word was wrong: what the remote has is the effect of the other input
        if (differs) application.flag({ inputChanged: true })
        return differs && call.settings.onInputChange === "fail"
          ? Effect.fail(inputChanged(call))
          : Effect.succeed({ text: answer.text, outcome: "reconciled" })
      case "NotApplied":
        known.cleared = true
        return execution
      case "Unknown":
        known.verdict = "inDoubt"
        return followPolicy(application, call, execution)
    }
  })
}

/** The key is in doubt, and nobody can say more. */
const followPolicy = (
  application: Application,
  call: Call,
  execution: Effect.Effect<Decided, unknown>
): Effect.Effect<Decided, unknown> => {
  if (call.settings.whenInDoubt === "fail") {
    return Effect.fail(new EffectInDoubtError({ key: call.key, tool: call.tool }))
  }
  application.flag({ executedInDoubt: true })
  return Effect.andThen(
    warn(
      `Effect key "${call.key}" (tool "${call.tool}") is in doubt and is applied again, since whenInDoubt is "execute".`
    ),
    execution
  )
}

/** `execute` starts only with a third of the lease left: long checks, a frozen process or a slow store may have used it up. */
const ensureLease = (
  application: Application,
  call: Call,
  lease: Lease | undefined,
  clock: Clock.Clock
): Effect.Effect<void, EffectStoreError> => {
  if (lease === undefined) return Effect.void
  const now = monotonicMillis(clock)
  if (!application.lost && lease.sentAt + lease.duration - now >= lease.duration / 3) return Effect.void
  const item = { key: lease.key, token: lease.token, lease: lease.duration }
  return Effect.flatMap(
    askStore("renew", lease.key, () => registryOf(call.store).ask.renew(item), call.settings.storeTimeout, isFenced),
    (reply) => {
      if (reply === "lost") {
        application.lost = true
        application.flag({ claimLost: true })
        return Effect.interrupt
      }
      lease.sentAt = now
      return monotonicMillis(clock) - now <= lease.duration * 2 / 3
        ? Effect.void
        : Effect.fail(
          new EffectStoreError({
            operation: "renew",
            key: call.key,
            problem: `it is too slow for a lease of ${lease.duration} ms`
          })
        )
    }
  )
}

const execute = (application: Application, call: Call, known: Knowledge): Effect.Effect<Decided, unknown> => {
  const before = known.verdict
  const hook = runHook(application, () => {
    known.verdict = "inDoubt"
    return call.execute(application)
  })
  return Effect.matchCauseEffect(hook, {
    onSuccess: (result) => textOf(call, result),
    onFailure: (cause) => {
      // A failure after the application was asked to stop may be our own abort, coming back as an error.
      const itsOwnWord = !application.stopped && saysNothingApplied(cause)
      if (before !== "inDoubt" && itsOwnWord) known.verdict = "tried"
      return Effect.failCause(cause)
    }
  })
}

/**
 * Whether the failure is `execute`'s own word that nothing was applied. An interruption and a defect are not: neither
 * knows how far it came. A failure without any reason says nothing at all.
 */
const saysNothingApplied = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.length > 0
  && cause.reasons.every((reason) => Cause.isFailReason(reason) && !isOutcomeUnknown(reason.error))

const isOutcomeUnknown = (error: unknown): boolean => error instanceof EffectOutcomeUnknownError

const textOf = (call: Call, result: unknown): Effect.Effect<Decided> => {
  const encoded = Effect.suspend(() => call.encode(result))
  return Effect.matchCause(encoded, {
    onSuccess: (json): Decided => ({ text: toRecord(json, call.settings.largestResult), outcome: "executed" }),
    onFailure: (cause): Decided => ({
      text: RecordedResult.unavailable(`it cannot be recorded: ${safeTextOf(Cause.squash(cause))}`),
      outcome: "executed"
    })
  })
}
