/**
 * What this process knows about the keys of one store: who is at which key, and which results are not written yet.
 *
 * It belongs to the store's object, so that everything that wraps the same store shares it.
 */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import type { Fiber } from "effect"
import type { CompleteItem, ReleaseItem } from "../EffectRecord.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import type { Application } from "./Application.ts"
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

// Claim ids must differ over all processes that share a store. Effect's `Random` may be seeded alike in two of them.
const processId = randomUUID()
let claims = 0

const mostUnanswered = 10_000

export class Registry {
  readonly store: IEffectStore
  /** Names this process for people who find it in an error or in the ledger. */
  readonly owner = `${hostname()} pid ${process.pid}`
  readonly applications = new Map<string, Application>()
  readonly unwritten = new Map<string, Unwritten>()
  /** By key. */
  readonly unanswered = new Map<string, Unanswered>()
  /** Releases that the store has not confirmed, by key. */
  readonly unreleased = new Map<string, ReleaseItem>()
  readonly heartbeats = new WeakMap<object, Heartbeats>()

  constructor(store: IEffectStore) {
    this.store = store
  }

  /** Keeps the newest: an outage must not fill the memory, and the older a claim is, the sooner its lease is over. */
  expectAnswer(key: string, claim: Unanswered): void {
    if (this.unanswered.size >= mostUnanswered) this.unanswered.delete(this.unanswered.keys().next().value!)
    this.unanswered.set(key, claim)
  }

  newClaimId(): string {
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
