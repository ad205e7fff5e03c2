/**
 * Steps 4 and 5 of a reconciliation: claiming the key, and waiting for another process that holds it.
 */
import { Clock, Duration, Effect, Exit, Latch, Random, Stream } from "effect"
import type { Claimed, ClaimReply, Held, Recorded } from "../EffectRecord.ts"
import { EffectInProgressError, EffectKeyConflictError, EffectRecordError } from "../errors.ts"
import type { Application } from "./Application.ts"
import { askStore, monotonicMillis } from "./bounded.ts"
import type { Call } from "./Call.ts"
import { type Registry, registryOf } from "./Registry.ts"
import { releaseFirst } from "./release.ts"

/** How long to wait for a notification before looking again, in milliseconds; with a jitter of a tenth. */
const pollInterval = 1_000

/** The claim, or the record, and when the request for it was sent (monotonic milliseconds). */
export interface Acquired {
  readonly reply: Claimed | Recorded
  readonly sentAt: number
}

const conflict = (call: Call, heldBy: string) =>
  new EffectKeyConflictError({ key: call.key, tool: call.tool, heldBy })

/**
 * Claims the key or finds its record. While another process holds it, waits for a change, for the end of its lease or for
 * the poll, and claims again, for at most `waitFor`.
 *
 * Runs uninterruptible; only the wait can be cut.
 */
export const acquire = (application: Application, call: Call): Effect.Effect<Acquired, unknown> => {
  const registry = registryOf(call.store)
  const claim = registry.unreleased.size === 0
    ? claimOnce(registry, call)
    : Effect.andThen(releaseFirst(call), claimOnce(registry, call))
  return Effect.flatMap(claim, ({ reply, sentAt }) =>
    reply._tag === "Held"
      ? reply.tool === call.tool
        ? Effect.scoped(waitAndClaim(registry, application, call, reply.owner))
        : Effect.fail(conflict(call, reply.tool))
      : settled(call, reply, sentAt))
}

const settled = (
  call: Call,
  reply: Exclude<ClaimReply, Held>,
  sentAt: number
): Effect.Effect<Acquired, EffectKeyConflictError | EffectRecordError> => {
  switch (reply._tag) {
    case "Claimed":
      return Effect.succeed({ reply, sentAt })
    case "Recorded":
      return reply.tool === call.tool
        ? Effect.succeed({ reply, sentAt })
        : Effect.fail(conflict(call, reply.tool))
    case "Unreadable":
      return Effect.fail(new EffectRecordError({ key: call.key, tool: reply.tool, problem: reply.problem }))
  }
}

const claimOnce = (registry: Registry, call: Call) =>
  Effect.withFiber((fiber) => {
    const { key, store } = call
    // A claim whose reply was lost may have been granted: the same id is answered with the same token.
    const pending = registry.unanswered.get(key) ?? { claimId: registry.newClaimId(), asking: 0 }
    registry.unanswered.set(key, pending)
    pending.asking++
    const sentAt = monotonicMillis(fiber.getRef(Clock.Clock))
    const request = {
      key,
      tool: call.tool,
      runId: call.runId,
      owner: registry.owner,
      claimId: pending.claimId,
      lease: call.settings.lease,
      fingerprint: call.fingerprint
    }
    const giveBack = (late: ClaimReply): void => {
      // unless somebody asked again with the same id: then the grant is theirs
      if (late._tag !== "Claimed" || registry.unanswered.get(key) !== pending || pending.asking > 0) return
      registry.unanswered.delete(key)
      Effect.runForkWith(fiber.context)(
        Effect.suspend(() => store.release([{ key, token: late.token, verdict: "clean", cleared: false }]))
      )
    }
    return Effect.onExit(
      Effect.map(
        askStore("claim", key, () => store.claim([request]), call.settings.storeTimeout, giveBack),
        (reply) => ({ reply, sentAt })
      ),
      (exit) =>
        Effect.sync(() => {
          pending.asking--
          if (Exit.isSuccess(exit)) registry.unanswered.delete(key)
        })
    )
  })

const waitAndClaim = Effect.fnUntraced(function*(
  registry: Registry,
  application: Application,
  call: Call,
  firstOwner: string
) {
  const clock = yield* Clock.Clock
  const changed = yield* Latch.make(false)
  // Subscribed before the next claim, so that a change between that claim and the wait is not missed.
  yield* Effect.forkScoped(
    Effect.interruptible(Effect.ignoreCause(Stream.runForEach(call.store.changes(call.key), () => changed.open))),
    { startImmediately: true }
  )
  const deadline = monotonicMillis(clock) + call.settings.waitFor
  let owner = firstOwner
  while (true) {
    changed.closeUnsafe()
    const { reply, sentAt } = yield* claimOnce(registry, call)
    if (reply._tag !== "Held") return yield* settled(call, reply, sentAt)
    if (reply.tool !== call.tool) return yield* conflict(call, reply.tool)
    owner = reply.owner
    const left = deadline - monotonicMillis(clock)
    if (left <= 0 || application.cancelled) {
      return yield* new EffectInProgressError({ key: call.key, tool: call.tool, owner, remaining: reply.remaining })
    }
    const jitter = yield* Random.nextBetween(0.9, 1.1)
    const wait = Math.min(reply.remaining, left, pollInterval * jitter)
    yield* Effect.interruptible(
      Effect.raceFirst(changed.await, clock.sleep(Duration.millis(Math.max(1, wait))))
    )
  }
})
