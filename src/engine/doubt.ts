/**
 * The effect keys of runs that may or may not have been applied.
 */
import { Array, Effect, Stream } from "effect"
import type { EffectRecord } from "../EffectRecord.ts"
import type { IEffectStore } from "../EffectStore.ts"
import { EngineStoreError } from "./errors.ts"

const collected = (store: IEffectStore, what: string, filter: { readonly runId?: string }) =>
  Effect.mapError(
    Stream.runCollect(store.list({ ...filter, doubt: "inDoubt" })),
    (cause) => new EngineStoreError({ operation: `list the keys of ${what}`, problem: cause.message, cause })
  )

export const keysInDoubt = (
  store: IEffectStore,
  runId: string
): Effect.Effect<ReadonlyArray<EffectRecord>, EngineStoreError> => collected(store, `run ${runId}`, { runId })

/** Those of all runs, by run. */
export const keysInDoubtByRun = (
  store: IEffectStore
): Effect.Effect<Readonly<Record<string, ReadonlyArray<EffectRecord>>>, EngineStoreError> =>
  Effect.map(collected(store, "runs", {}), Array.groupBy(({ runId }) => runId ?? ""))
