/**
 * Steps 4 to 7 of a transactional call: claim, remote check, execute and record in one transaction of the ledger's
 * database. The lock of the key's row is the claim, so that there is no lease to keep and no doubt to leave: what does not
 * commit has not happened.
 */
import { Clock, type Context, Effect, type Fiber } from "effect"
import type { Claimed, ClaimReply, Held, Recorded } from "../EffectRecord.ts"
import { EffectNestedError, EffectStoreError } from "../errors.ts"
import type { LedgerInTransaction } from "../store/IEffectStore.ts"
import { isClaimReply, settled, untilFree } from "./acquire.ts"
import type { Application } from "./Application.ts"
import { decide, type Decided, itemOf, nothingKnown, recall, replay, supplyMissing } from "./apply.ts"
import { monotonicMillis } from "./bounded.ts"
import type { Applied, Call } from "./Call.ts"
import { type Registry, registryOf } from "./Registry.ts"
import { releaseFirst } from "./release.ts"
import { type Attempt, attempting } from "./transactionAttempt.ts"

/**
 * Why a call must not run where it was made, or `undefined`: nothing that outlives a transaction may depend on one that can
 * still be rolled back.
 */
export const misplaced = (
  call: Call,
  fiber: Fiber.Fiber<unknown, unknown>,
  enclosing: ReadonlyArray<Application>
): EffectNestedError | EffectStoreError | undefined => {
  const { key, store, tool } = call
  const outer = enclosing.find(({ ending, transactional }) => transactional && ending === undefined)
  if (outer !== undefined) return new EffectNestedError({ key, tool, outerKey: outer.key })
  if (!call.transactional) return undefined
  const { transactions } = store
  if (transactions === undefined) return cannotBegin(key, noTransactions)
  const services = fiber.context as Context.Context<never>
  if (transactions.isInside(services)) return new EffectNestedError({ key, tool })
  return transactions.isElsewhere(services) ? cannotBegin(key, elsewhere) : undefined
}

const cannotBegin = (key: string, problem: string) =>
  new EffectStoreError({ operation: "begin a transaction", key, problem, permanent: true })

const noTransactions = "this store does not live in a database that the program writes to itself; a transactional tool "
  + "needs SqlEffectStore over the program's own SqlClient"

const elsewhere = "the SqlClient of the call is not the one that the ledger was made with, so that what execute writes "
  + "would be no part of the transaction; provide the ledger's SqlClient around the call"

type Found = Exclude<ClaimReply, Claimed | Held>

/** What a transaction came to: it found the key settled or held, and did nothing, or it applied the effect. */
type Answer = Found | Held | { readonly _tag: "Decided"; readonly decided: Decided }

export const applyInTransaction = (application: Application, call: Call): Effect.Effect<Applied, unknown> =>
  Effect.withFiber((fiber) => {
    const registry = registryOf(call.store)
    const unwritten = registry.unwritten.get(call.key)
    if (unwritten !== undefined) return recall(application, call, unwritten)
    const deadline = monotonicMillis(fiber.getRef(Clock.Clock)) + call.settings.waitFor
    const attempt = attempting<Answer>(
      application,
      call,
      deadline,
      (watch) => call.store.transactions!.run((ledger) => workOf(application, call, registry, ledger, watch))
    )
    return Effect.flatMap(
      Effect.andThen(releaseFirst(call), attempt),
      (answer) =>
        Effect.flatMap(
          answer._tag !== "Held"
            ? Effect.succeed(answer)
            : Effect.scoped(untilFree(application, call, attempt, (answer) => answer)),
          (answer) => ended(application, call, answer as Exclude<Answer, Held>)
        )
    )
  })

const ended = (application: Application, call: Call, answer: Exclude<Answer, Held>): Effect.Effect<Applied, unknown> =>
  answer._tag === "Decided"
    ? supplyMissing(application, call, answer.decided)
    : Effect.flatMap(
      settled(call, answer, 0),
      ({ reply }) => replay(application, call, reply as Recorded)
    )

const workOf = (
  application: Application,
  call: Call,
  registry: Registry,
  ledger: LedgerInTransaction,
  watch: Attempt
): Effect.Effect<Answer, unknown> => {
  const { key, tool } = call
  const request = {
    key,
    tool,
    runId: call.runId,
    owner: registry.owner,
    claimId: registry.newClaimId(),
    lease: 0,
    fingerprint: call.fingerprint
  }
  return Effect.flatMap(watch.claiming(() => ledger.claim(request)), (reply): Effect.Effect<Answer, unknown> => {
    if (!isClaimReply(reply))
      return Effect.fail(
        new EffectStoreError({ operation: "claim", key, problem: "it did not answer one reply per item" })
      )
    if (reply._tag !== "Claimed") return Effect.succeed(reply)
    if (reply.takenOver) application.flag({ takenOver: true })
    return Effect.flatMap(
      watch.working(decide(application, call, reply, undefined, nothingKnown(), watch.clock)),
      (decided): Effect.Effect<Answer, EffectStoreError> =>
        Effect.as(recordIn(ledger, call, reply, decided), { _tag: "Decided", decided })
    )
  })
}

const recordIn = (
  ledger: LedgerInTransaction,
  call: Call,
  claimed: Claimed,
  decided: Decided
): Effect.Effect<void, EffectStoreError> => {
  const rolledBack = (problem: string, more: { readonly permanent?: boolean; readonly cause?: unknown } = {}) =>
    new EffectStoreError({
      operation: "record",
      key: call.key,
      problem: `${problem} (execute was rolled back)`,
      ...more
    })
  return Effect.matchEffect(ledger.complete(itemOf(call, claimed, decided)), {
    onFailure: ({ cause, permanent, problem }) =>
      Effect.fail(rolledBack(problem, {
        ...(permanent === undefined ? {} : { permanent }),
        ...(cause === undefined ? {} : { cause })
      })),
    onSuccess: (reply) =>
      reply === "ok" ? Effect.void : Effect.fail(rolledBack("the row of the key is not the transaction's any more"))
  })
}
