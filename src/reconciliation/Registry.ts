/**
 * What this process knows about the keys of one store: who is at which key, and which results are not written yet.
 *
 * It belongs to the store's object, so that everything that wraps the same store shares it.
 */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import type { Effect, Fiber } from "effect"
import type { ClaimReply, ClaimRequest, CompleteItem, Fenced, ReleaseItem, RenewItem } from "../EffectRecord.ts"
import type { EffectStoreError } from "../errors.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import type { Application } from "./Application.ts"
import { Batcher } from "./Batcher.ts"
import type { Heartbeats } from "./heartbeat.ts"

/** A result whose effect happened and whose record the store has not confirmed. */
export interface Unwritten {
  item: CompleteItem
  readonly tool: string
  /** The fiber that goes on trying, until the store falls out of use. */
  writer: Fiber.Fiber<unknown, unknown> | undefined
  /** Ends the care for the claim. */
  readonly done: () => void
}

/** A claim that may have been granted without our seeing the reply. */
export interface Unanswered {
  readonly claimId: string
  readonly tool: string
  /** The requests under way. */
  asking: number
  /** The grant that a call of ours got. */
  token: number | undefined
  /** The grant that came after its request was given up. */
  late: number | undefined
}

type Ask<Item, Reply> = (item: Item) => Effect.Effect<ReadonlyArray<Reply>, EffectStoreError>

/** The store's operations for one item, as batches of one. */
interface Requests {
  readonly claim: Ask<ClaimRequest, ClaimReply>
  readonly complete: Ask<CompleteItem, Fenced>
  readonly release: Ask<ReleaseItem, Fenced>
  readonly renew: Ask<RenewItem, Fenced>
}

const alone = (store: IEffectStore): Requests => ({
  claim: (request) => store.claim([request]),
  complete: (item) => store.complete([item]),
  release: (item) => store.release([item]),
  renew: (item) => store.renew([item])
})

const together = (store: IEffectStore): Requests => {
  const claims = new Batcher(store.claim)
  const completes = new Batcher(store.complete)
  const releases = new Batcher(store.release)
  const renewals = new Batcher(store.renew)
  return {
    claim: (request) => claims.ask(request),
    complete: (item) => completes.ask(item),
    release: (item) => releases.ask(item),
    renew: (item) => renewals.ask(item)
  }
}

// Claim ids must differ over all processes that share a store. Effect's `Random` may be seeded alike in two of them.
const processId = randomUUID()
let claims = 0

const mostUnanswered = 10_000

// two tools that compute one key each have a claim of their own to wait for
const unansweredId = (key: string, tool: string): string => `${tool}\u0000${key}`

export class Registry {
  readonly store: IEffectStore
  readonly ask: Requests
  /** Names this process for people who find it in an error or in the ledger. */
  readonly owner = `${hostname()} pid ${process.pid}`
  readonly applications = new Map<string, Application>()
  readonly unwritten = new Map<string, Unwritten>()
  /** By tool and key. */
  readonly unanswered = new Map<string, Unanswered>()
  /** Releases that the store has not confirmed; a grant that came late may add one for the same key. */
  readonly unreleased = new Set<ReleaseItem>()
  readonly heartbeats = new WeakMap<object, Heartbeats>()
  /** What is due when nobody uses the store any more, and when it closes. */
  atTheEnd: { readonly flush: Effect.Effect<void>; readonly close: Effect.Effect<void> } | undefined = undefined
  /** Whether the store's own scope is being closed. */
  closing = false

  constructor(store: IEffectStore) {
    this.store = store
    this.ask = store.batch ? together(store) : alone(store)
  }

  /** Keeps the newest: an outage must not fill the memory, and the older a claim is, the sooner its lease is over. */
  expectAnswer(key: string, tool: string): Unanswered {
    const id = unansweredId(key, tool)
    const earlier = this.unanswered.get(id)
    if (earlier !== undefined) return earlier
    if (this.unanswered.size >= mostUnanswered) this.unanswered.delete(this.unanswered.keys().next().value!)
    const claim: Unanswered = { claimId: this.newClaimId(), tool, asking: 0, token: undefined, late: undefined }
    this.unanswered.set(id, claim)
    return claim
  }

  forgetAnswer(key: string, claim: Unanswered): void {
    const id = unansweredId(key, claim.tool)
    if (this.unanswered.get(id) === claim) this.unanswered.delete(id)
  }

  newClaimId(): string {
    // Stryker disable next-line UpdateOperator: a number that no other claim of the process has
    return `${processId}-${++claims}`
  }
}

const registries = new WeakMap<IEffectStore, Registry>()

export const registryOf = (store: IEffectStore): Registry => {
  let registry = registries.get(store)
  if (registry === undefined) {
    registry = new Registry(store)
    registries.set(store, registry)
  }
  return registry
}
