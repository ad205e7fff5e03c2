/**
 * What a simulated world is made of: who calls, what is under way, and what is counted.
 */
import { type applyOnce, EffectStoreError, type OnInputChange } from "chamvi-effect"
import type { Effect, Exit, Fiber } from "effect"
import type { registryOf } from "../../src/reconciliation/Registry.ts"
import type { LedgerFault } from "./Ledger.ts"
import type { Process } from "./Process.ts"
import type { Kind } from "./Remote.ts"

/** The program under exploration: the real one, or one with a bug. */
export interface Program {
  readonly applyOnce: typeof applyOnce
  readonly registryOf: typeof registryOf
}

export interface CallerPlan {
  readonly name: string
  readonly process: number
  /** Default: `key`, which is everybody's. */
  readonly key?: string
  /** Default: "tool", which is everybody's. */
  readonly tool?: string
  /** What its effect is made from. */
  readonly input?: string
  readonly onInputChange?: OnInputChange
  /** Only once this process has crashed. */
  readonly afterCrashOf?: number
  /** In the same turn as this caller, and never else. */
  readonly startsWith?: string
}

export interface Scenario {
  readonly name: string
  readonly kind: Kind
  readonly callers: ReadonlyArray<CallerPlan>
  /** How often time may pass before everything calms down. */
  readonly mostTicks: number
  /** Whether the store asks for batches. */
  readonly batch?: boolean
  /** Whether the store sees at once that a process has crashed. */
  readonly seesDeath?: boolean
  /** Whether a process may close its store. */
  readonly closes?: boolean
  readonly ledgerFault?: LedgerFault | undefined
  readonly program: Program
}

export interface Caller {
  readonly plan: CallerPlan
  readonly process: Process
  readonly fiber: Fiber.Fiber<unknown, unknown>
  interrupted: boolean
  /** How many applications of its key there were when it ended. */
  appliedAtEnd: number
}

export type OperationKind = "claim" | "complete" | "release" | "renew" | "get" | "resolve" | "check" | "apply"

/**
 * A request to the store or the remote. `waiting`: it has not arrived. `slow`: nor will it soon, and time passes without
 * it. `answered`: it arrived, and its answer is on the way.
 */
export interface Operation {
  readonly label: string
  readonly kind: OperationKind
  readonly process: Process
  /** What it says, as far as that makes a difference. */
  readonly says: string
  /** Whether its arrival would change nothing but its process. */
  readonly onlyReads: () => boolean
  /** What happens when it arrives; answers the reply. */
  readonly perform: () => unknown
  readonly resume: (answer: Effect.Effect<unknown, unknown>) => void
  /** What the reply says to the process, as far as that makes a difference to it. */
  readonly means: (reply: unknown) => string
  /** What follows from it for this world once the process knows. */
  readonly told: (() => void) | undefined
  stage: "waiting" | "slow" | "answered"
  reply: unknown
}

/** What happened that may excuse a second application. */
export interface Account {
  crashes: number
  /** Interrupted callers, and attempts of which `execute` could not say how they ended. */
  cuts: number
  /** Claims that were taken over from a process that had let its lease run out. */
  lostLeases: number
  ticks: number
  faults: number
}

export const key = "k"

export const keyOf = (plan: CallerPlan): string => plan.key ?? key

export const toolOf = (plan: CallerPlan): string => plan.tool ?? "tool"

/** What a caller got: `undefined` while it has nothing. */
export const exitOf = (caller: Caller): Exit.Exit<unknown, unknown> | undefined => caller.fiber.pollUnsafe()

/** The store is out of order. */
export const storeTrouble = new EffectStoreError({ operation: "any", problem: "it is down" })

/** The store's layer has been closed. */
export const storeClosed = new EffectStoreError({ operation: "any", problem: "it is closed", permanent: true })
