/**
 * What the harness and its workers say to each other, and the work that they speak of.
 */
import type { EffectEvent } from "chamvi-effect"

/**
 * - `clerk`: its remote knows no idempotency keys; each tool looks before it acts (`alreadyApplied`).
 * - `courier`: its remote honours the key; its tools look at nothing, and apply again where they are in doubt.
 */
export type Kind = "clerk" | "courier"

export interface Run {
  readonly kind: Kind
  readonly runId: string
}

/** The effects of each run, in groups that the model asks for together. */
export const groups = [["label"], ["comment", "assign"], ["charge"], ["notify"]] as const

export type ToolName = typeof groups[number][number]

export const toolNames: ReadonlyArray<ToolName> = groups.flat()

/** What an agent needs to know of the world. */
export interface World {
  /** The address of the remote. */
  readonly remote: string
  /** A tool that is defined as a plain one: it has no effect key, and must be convicted. */
  readonly unprotected?: ToolName | undefined
}

/** What a worker is told. Durations are in milliseconds. */
export interface Orders extends World {
  readonly engine:
    | { readonly _tag: "Cluster"; readonly url: string; readonly schema: string }
    // nobody else can reach the engine: the worker starts the runs
    | { readonly _tag: "Sqlite"; readonly filename: string; readonly runs: ReadonlyArray<Run> }
  readonly lease: number
  /** How many runs it executes at once. */
  readonly concurrency: number
  /** How long it may take to leave. */
  readonly drain: number
  /** After how long without a sign of life others take its runs over. */
  readonly takeover: number
}

/** What a worker tells, as lines of JSON on its standard output: what was written outlives it. */
export type Told =
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Called"; readonly event: EffectEvent }
  /** All runs have ended: only a worker that started them says so. */
  | { readonly _tag: "Done" }

/** What a check asks the remote. */
export interface Finding {
  readonly key: string
}

/** What a model asks the remote, and a part of what a tool asks. */
export interface Asked {
  readonly runId: string
  readonly step: number
  /** The process that asks. */
  readonly worker: number
}

export interface Applying extends Asked {
  readonly tool: ToolName
  readonly key: string
  /** Whether the key comes as an `Idempotency-Key`. */
  readonly idempotent: boolean
}
