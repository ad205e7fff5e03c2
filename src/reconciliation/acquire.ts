/**
 * Steps 4 and 5 of a reconciliation: claiming the key, and waiting for another process that holds it.
 */
import { Clock, Duration, Effect, Exit, Latch, Predicate, Random, type Scope, Stream } from "effect"
import type { Claimed, ClaimReply, Doubt, Held, Recorded } from "../EffectRecord.ts"
import { EffectInProgressError, EffectKeyConflictError, EffectRecordError, type EffectStoreError } from "../errors.ts"
import { chain } from "../internal/chain.ts"
import type { Application } from "./Application.ts"
import { askStoreFrom, monotonicMillis } from "./bounded.ts"
import type { Call } from "./Call.ts"
import { type Registry, registryOf } from "./Registry.ts"
import { release, releaseFirst } from "./release.ts"

/** How long to wait for a notification before looking again, in milliseconds; with a jitter of a tenth. */
const pollInterval = 1_000

/** The claim, or the record, and when the request for it was sent (monotonic milliseconds). */
export interface Acquired {
  readonly reply: Claimed | Recorded
  readonly sentAt: number
}

export const conflict = (call: Call, heldBy: string) =>
  new EffectKeyConflictError({ key: call.key, tool: call.tool, heldBy })

/**
 * Claims the key or finds its record. While another process holds it, waits for a change, for the end of its lease or for
 * the poll, and claims again, for at most `waitFor`.
 *
 * Runs uninterruptible; only the wait can be cut.
 */
export const acquire = (application: Application, call: Call): Effect.Effect<Acquired, unknown> => {
  const registry = registryOf(call.store)
  // Stryker disable next-line ConditionalExpression: a shortcut; where nothing is due, there is nothing to release first
  const claim = registry.unreleased.size === 0
    ? claimOnce(registry, call)
    : Effect.andThen(releaseFirst(call), claimOnce(registry, call))
  return chain(claim, ({ reply, sentAt }) =>
    reply._tag === "Held"
      ? reply.tool === call.tool
        ? Effect.flatMap(
          Effect.scoped(untilFree(application, call, claimOnce(registry, call), ({ reply }) => reply)),
          ({ reply, sentAt }) => settled(call, reply as Exclude<ClaimReply, Held>, sentAt)
        )
        : Effect.fail(conflict(call, reply.tool))
      : settled(call, reply, sentAt))
}

/** What a claim that is not held by another means to the call. */
export const settled = (
  call: Call,
  reply: Exclude<ClaimReply, Held>,
  sentAt: number
): Effect.Effect<Acquired, EffectKeyConflictError | EffectRecordError> => {
  if (reply._tag === "Claimed") return Effect.succeed({ reply, sentAt })
  if (reply._tag === "Unreadable") return Effect.fail(unreadable(call, reply.problem))
  if (reply.tool !== call.tool) return Effect.fail(conflict(call, reply.tool))
  return typeof reply.result === "string"
    ? Effect.succeed({ reply, sentAt })
    : Effect.fail(unreadable(call, "it holds no text of a result"))
}

const unreadable = ({ key, tool }: Call, problem: string) => new EffectRecordError({ key, tool, problem })

const doubts: ReadonlyArray<unknown> = ["none", "tried", "inDoubt"] satisfies ReadonlyArray<Doubt>

/** An age that is no number would never be over. */
const isEarlier = (earlier: unknown): boolean =>
  Predicate.isObject(earlier)
  && "age" in earlier && Number.isFinite(earlier.age)
  && "fingerprint" in earlier && typeof earlier.fingerprint === "string"

/** A store's author may err: what says less than it must is no grant, and no reason to wait. */
export const isClaimReply = (answer: unknown): boolean => {
  if (!Predicate.isObject(answer)) return false
  const reply = answer as {
    readonly [field in "_tag" | "doubt" | "earlier" | "remaining" | "token" | "tool"]?: unknown
  }
  return reply._tag === "Claimed"
    ? Number.isSafeInteger(reply.token) && doubts.includes(reply.doubt)
      && (reply.earlier === undefined || isEarlier(reply.earlier))
    : reply._tag === "Recorded"
    ? typeof reply.tool === "string"
    : reply._tag === "Held"
    ? typeof reply.tool === "string" && typeof reply.remaining === "number" && !Number.isNaN(reply.remaining)
    : reply._tag === "Unreadable"
}

interface Answered {
  readonly reply: ClaimReply
  readonly sentAt: number
}

const claimOnce = (registry: Registry, call: Call): Effect.Effect<Answered, EffectStoreError> =>
  Effect.withFiber((fiber) => {
    const { key, tool } = call
    // taken now: a fiber that has ended has no context any more
    const { context } = fiber
    // A claim whose reply was lost may have been granted: the same id is answered with the same token.
    const pending = registry.expectAnswer(key, tool)
    pending.asking++
    const sentAt = monotonicMillis(fiber.getRef(Clock.Clock))
    const request = {
      key,
      tool,
      runId: call.runId,
      owner: registry.owner,
      claimId: pending.claimId,
      lease: call.settings.lease,
      fingerprint: call.fingerprint
    }
    const forget = () => registry.forgetAnswer(key, pending)
    // A request may reach the ledger long after the next one with its id, and be granted anew: the token tells. Whoever is
    // asking right now gets the same grant.
    const giveBack = (): void => {
      const { asking, late, token } = pending
      if (late === undefined || late === token || asking > 0) return
      pending.late = undefined
      forget()
      Effect.runForkWith(context)(release(call, { key, token: late, verdict: "clean", cleared: false }))
    }
    const whenLate = (reply: ClaimReply): void => {
      if (reply._tag === "Claimed") pending.late = reply.token
      else if (pending.asking === 0) forget()
      giveBack()
    }
    const answered = (exit: Exit.Exit<ClaimReply, EffectStoreError>): Exit.Exit<Answered, EffectStoreError> => {
      pending.asking--
      if (Exit.isSuccess(exit)) {
        forget()
        // Stryker disable next-line ConditionalExpression: of those who share a claim, one alone still listens to its answer
        if (exit.value._tag === "Claimed") pending.token = exit.value.token
      }
      giveBack()
      return Exit.map(exit, (reply) => ({ reply, sentAt }))
    }
    const asked = askStoreFrom(
      fiber,
      "claim",
      key,
      () => registry.ask.claim(request),
      call.settings.storeTimeout,
      isClaimReply,
      whenLate
    )
    // a store that answers at once is not waited for
    return Exit.isExit(asked)
      ? answered(asked as Exit.Exit<ClaimReply, EffectStoreError>)
      : Effect.flatMap(Effect.exit(asked), answered)
  })

/** Asks again, whenever something may have changed, until nobody else of the call's tool holds the key. */
export const untilFree = Effect.fnUntraced(function*<A>(
  application: Application,
  call: Call,
  ask: Effect.Effect<A, unknown>,
  replyOf: (answer: A) => { readonly _tag: string } | Held
): Effect.fn.Return<A, unknown, Scope.Scope> {
  const clock = yield* Clock.Clock
  const changed = yield* Latch.make()
  // Subscribed before the next claim, so that a change between that claim and the wait is not missed.
  const watch = Effect.suspend(() => Stream.runForEach(call.store.changes(call.key), () => changed.open))
  yield* Effect.forkScoped(Effect.interruptible(Effect.ignoreCause(watch)), { startImmediately: true })
  const deadline = monotonicMillis(clock) + call.settings.waitFor
  while (true) {
    changed.closeUnsafe()
    const answer = yield* ask
    const reply = replyOf(answer)
    if (!isHeld(reply)) return answer
    if (reply.tool !== call.tool) return yield* conflict(call, reply.tool)
    const left = deadline - monotonicMillis(clock)
    if (left <= 0 || application.cancelled) {
      const { owner, remaining } = reply
      return yield* new EffectInProgressError({ key: call.key, tool: call.tool, owner, remaining })
    }
    const poll = yield* Random.nextIntBetween(pollInterval * 0.9, pollInterval * 1.1)
    const wait = Math.min(reply.remaining, left, poll)
    yield* Effect.interruptible(
      Effect.raceFirst(changed.await, clock.sleep(Duration.millis(Math.max(1, wait))))
    )
  }
})

const isHeld = (reply: { readonly _tag: string }): reply is Held => reply._tag === "Held"
