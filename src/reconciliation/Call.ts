import type { Effect } from "effect"
import type { Flags, Outcome } from "../EffectEvent.ts"
import type { Settings } from "../EffectSettings.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"

/**
 * One call of one key, as the reconciliation sees it: hooks whose services are provided and that are interruptible where
 * they may be cut, and nothing of the AI SDK.
 */
export interface Call {
  readonly store: IEffectStore
  readonly key: string
  readonly tool: string
  readonly runId: string
  /** SHA-256 of the canonical input, or `""` where there is none to compare. */
  readonly fingerprint: string
  /** The remote check. Its answer is a result, `undefined`, or an `EffectResolution`. */
  readonly alreadyApplied: (() => Effect.Effect<unknown, unknown>) | undefined
  /** Applies the effect. `signal` aborts when the application is asked to stop, for what is no Effect. */
  readonly execute: (application: { readonly signal: AbortSignal }) => Effect.Effect<unknown, unknown>
  /** The JSON text of a result (`undefined` for the result `undefined`); fails with what is wrong with it, in words. */
  readonly encode: (result: unknown) => Effect.Effect<string | undefined, string>
  /** Milliseconds for which a "no" of the remote is asked again, or `undefined`. */
  readonly settle: number | undefined
  /** Whether `execute` and its record are one transaction of the ledger's database. */
  readonly transactional: boolean
  readonly settings: Settings
}

/**
 * Whether the call's input is another one than that of a fingerprint, as far as both are known.
 */
export const inputsDiffer = (call: Call, fingerprint: string): boolean =>
  call.fingerprint !== "" && fingerprint !== "" && fingerprint !== call.fingerprint

/**
 * What is known of a call while it goes on; it becomes the call's event.
 */
export interface Report {
  key: string
  readonly tool: string
  readonly runId: string
  outcome: Outcome | undefined
  flags: Flags
}

/**
 * How an application ended, for everybody who waits for it. What is shared is the text of the result: each caller reads a
 * copy of its own.
 */
export interface Applied {
  /** The text of `RecordedResult`. */
  readonly text: string
  readonly outcome: "executed" | "recorded" | "reconciled"
}
