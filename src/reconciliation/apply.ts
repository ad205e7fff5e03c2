/**
 * Steps 4 to 7 of a reconciliation, as the fiber of an application runs them: claim, remote check, execute, record.
 *
 * The fiber is uninterruptible. Hooks and waits are cut where they allow it; everything between them runs to its end, so
 * that a claim is always released or recorded, and a result that exists is never dropped.
 */
import { Cause, Clock, Effect, Exit, Option, Predicate } from "effect"
import type { Claimed, Recorded, Verdict } from "../EffectRecord.ts"
import { EffectResolution } from "../EffectResolution.ts"
import { EffectInDoubtError, EffectInputChangedError, EffectOutcomeUnknownError, EffectStoreError } from "../errors.ts"
import * as RecordedResult from "../RecordedResult.ts"
import { acquire } from "./acquire.ts"
import type { Application, Ending } from "./Application.ts"
import { askStore, isFenced, monotonicMillis } from "./bounded.ts"
import type { Applied, Call } from "./Call.ts"
import { type Heartbeats, heartbeatsOf, type Lease } from "./heartbeat.ts"
import { runHook } from "./hook.ts"
import { record } from "./record.ts"
import { registryOf } from "./Registry.ts"
import { release } from "./release.ts"
import { askRemote, type CheckAnswer, checkRemote, tooLarge } from "./remoteCheck.ts"

/**
 * Runs the application to its ending.
 */
export const apply = (application: Application, call: Call): Effect.Effect<Ending> =>
  Effect.matchCause(settle(application, call), {
    onSuccess: (applied): Ending => ({ _tag: "Applied", applied }),
    onFailure: (cause): Ending =>
      application.stopped && Cause.hasInterrupts(cause)
        ? { _tag: "Over" }
        : { _tag: "Failed", cause }
  })

const settle = Effect.fnUntraced(function*(application: Application, call: Call): Effect.fn.Return<Applied, unknown> {
  const { reply, sentAt } = yield* acquire(application, call)
  if (reply._tag === "Recorded") return yield* replay(application, call, reply)
  const clock = yield* Clock.Clock
  const heartbeats = heartbeatsOf(registryOf(call.store), clock)
  const lease: Lease = {
    key: call.key,
    token: reply.token,
    duration: call.settings.lease,
    sentAt,
    dueAt: sentAt + call.settings.lease / 3,
    onLost: () => {
      application.flag({ claimLost: true })
      application.stop("lost")
    }
  }
  application.running = true
  application.flag({ takenOver: reply.takenOver })
  return yield* Effect.withFiber((fiber) => {
    heartbeats.add(lease, fiber)
    return holding(application, call, reply, lease, heartbeats, clock)
  })
})

const replay = (application: Application, call: Call, recorded: Recorded): Effect.Effect<Applied, unknown> => {
  const applied: Applied = { text: recorded.result, outcome: "recorded" }
  if (call.fingerprint !== "" && recorded.fingerprint !== "" && recorded.fingerprint !== call.fingerprint) {
    application.flag({ inputChanged: true })
    if (call.settings.onInputChange === "fail") return Effect.fail(inputChanged(call))
  }
  return RecordedResult.isUnavailable(recorded.result) && call.alreadyApplied !== undefined
    ? supply(application, call, applied)
    : Effect.succeed(applied)
}

/** A record without a result: the remote may know it. What it says of the effect itself is settled and not asked. */
const supply = (application: Application, call: Call, applied: Applied): Effect.Effect<Applied, unknown> =>
  Effect.flatMap(askRemote(application, call), (answer) => {
    if (answer._tag !== "Applied" || RecordedResult.isUnavailable(answer.text)) return Effect.succeed(applied)
    return Effect.as(keep(call, answer.text), { text: answer.text, outcome: applied.outcome })
  })

/** Puts a supplied result in the place of the missing one: for those who cannot ask, and as far as the store takes it. */
const keep = (call: Call, text: string): Effect.Effect<void> => {
  const { key, settings, store } = call
  const unwritten = registryOf(store).unwritten.get(key)
  if (unwritten === undefined) {
    const resolve = () => Effect.map(store.resolve(key, resolutionOf(text)), (reply) => [reply])
    return Effect.ignoreCause(askStore("resolve", key, resolve, settings.storeTimeout, Predicate.isString))
  }
  unwritten.item = { ...unwritten.item, result: text }
  return Effect.void
}

const resolutionOf = (text: string): EffectResolution =>
  EffectResolution.applied(
    Option.match(RecordedResult.parse(text), {
      onNone: () => undefined,
      onSome: (result) => result._tag === "Value" ? result.value : undefined
    })
  )

const inputChanged = (call: Call) => new EffectInputChangedError({ key: call.key, tool: call.tool })

/** What is known of the effect, for the release of a claim that ends without a record. */
interface Knowledge {
  verdict: Verdict
  cleared: boolean
}

const holding = Effect.fnUntraced(function*(
  application: Application,
  call: Call,
  claimed: Claimed,
  lease: Lease,
  heartbeats: Heartbeats,
  clock: Clock.Clock
): Effect.fn.Return<Applied, unknown> {
  const known: Knowledge = { verdict: "clean", cleared: false }
  const exit = yield* Effect.exit(decide(application, call, claimed, lease, known, clock))
  if (Exit.isFailure(exit)) {
    heartbeats.delete(lease)
    yield* release(call, { key: call.key, token: claimed.token, ...known })
    return yield* exit
  }
  const { outcome, text } = exit.value
  const item = {
    key: call.key,
    token: claimed.token,
    result: text,
    outcome,
    fingerprint: outcome === "reconciled" ? claimed.earlier?.fingerprint ?? call.fingerprint : call.fingerprint
  }
  const applied = yield* record(application, call, item, () => heartbeats.delete(lease))
  return outcome === "executed" && RecordedResult.isUnavailable(applied.text) && call.alreadyApplied !== undefined
    ? yield* supply(application, call, applied)
    : applied
})

interface Decided {
  readonly text: string
  readonly outcome: "executed" | "reconciled"
}

const decide = Effect.fnUntraced(function*(
  application: Application,
  call: Call,
  claimed: Claimed,
  lease: Lease,
  known: Knowledge,
  clock: Clock.Clock
): Effect.fn.Return<Decided, unknown> {
  if (application.cancelled) return yield* Effect.interrupt
  const differs = claimed.doubt === "inDoubt" && call.fingerprint !== "" && claimed.earlier !== undefined
    && claimed.earlier.fingerprint !== "" && claimed.earlier.fingerprint !== call.fingerprint
  if (differs) {
    application.flag({ inputChanged: true })
    if (call.settings.onInputChange === "fail") return yield* inputChanged(call)
  }
  const answer: CheckAnswer = call.alreadyApplied === undefined
    ? claimed.doubt === "inDoubt" ? { _tag: "Unknown" } : { _tag: "NotApplied" }
    : yield* checkRemote(application, call, claimed)
  switch (answer._tag) {
    case "Applied":
      return { text: answer.text, outcome: "reconciled" }
    case "NotApplied":
      known.cleared = call.alreadyApplied !== undefined
      break
    case "Unknown":
      if (call.alreadyApplied !== undefined) known.verdict = "inDoubt"
      if (call.settings.whenInDoubt === "fail") {
        return yield* new EffectInDoubtError({ key: call.key, tool: call.tool })
      }
      application.flag({ executedInDoubt: true })
      yield* Effect.logWarning(
        `Effect key "${call.key}" (tool "${call.tool}") is in doubt and is applied again, since whenInDoubt is "execute".`
      )
  }
  yield* ensureLease(application, call, lease, clock)
  return { text: yield* execute(application, call, known), outcome: "executed" }
})

/** `execute` starts only with a third of the lease left: long checks, a frozen process or a slow store may have used it up. */
const ensureLease = (application: Application, call: Call, lease: Lease, clock: Clock.Clock) =>
  Effect.suspend(() => {
    const now = monotonicMillis(clock)
    if (!application.lost && lease.sentAt + lease.duration - now >= lease.duration / 3) return Effect.void
    const item = { key: lease.key, token: lease.token, lease: lease.duration }
    return Effect.flatMap(
      askStore("renew", lease.key, () => call.store.renew([item]), call.settings.storeTimeout, isFenced),
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
            new EffectStoreError({ operation: "renew", key: call.key, problem: "it is too slow for the lease" })
          )
      }
    )
  })

const execute = (application: Application, call: Call, known: Knowledge): Effect.Effect<string, unknown> => {
  const before = known.verdict
  const hook = runHook(application, () => {
    known.verdict = "inDoubt"
    return call.execute()
  })
  return Effect.matchCauseEffect(hook, {
    onSuccess: (result) => textOf(call, result),
    onFailure: (cause) => {
      if (known.verdict === "inDoubt" && before !== "inDoubt" && saysNothingApplied(cause)) known.verdict = "tried"
      return Effect.failCause(cause)
    }
  })
}

/**
 * Whether the failure is `execute`'s own word that nothing was applied. An interruption and a defect are not: neither
 * knows how far it came.
 */
const saysNothingApplied = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) => Cause.isFailReason(reason) && !isOutcomeUnknown(reason.error))

const isOutcomeUnknown = (error: unknown): boolean => error instanceof EffectOutcomeUnknownError

const textOf = (call: Call, result: unknown): Effect.Effect<string> =>
  Effect.match(Effect.sandbox(call.encode(result)), {
    onSuccess: (json) => {
      const text = RecordedResult.fromJson(json)
      return text.length > call.settings.largestResult / 4 && Buffer.byteLength(text) > call.settings.largestResult
        ? RecordedResult.unavailable(tooLarge(call))
        : text
    },
    onFailure: (cause) => RecordedResult.unavailable(`it cannot be recorded: ${String(Cause.squash(cause))}`)
  })
