/**
 * Where the values of a run stand in a `KeyValueStore`, and who may write one of them now.
 */
import { Effect, Semaphore } from "effect"
import type { KeyValueStore } from "effect/persistence"
import { sha256 } from "../internal/sha256.ts"

/** Longer parts are abbreviated, so that keys fit into the name of a file, which some stores make of them. */
const longestPart = 60

const escape = (character: string): string => `%${character.charCodeAt(0).toString(16)}`

/**
 * A name as a part of a key: no two names share one, none holds a slash, and none differs from another's only in case,
 * which some file systems cannot tell apart.
 */
const part = (name: string): string => {
  const encoded = encodeURIComponent(name.toWellFormed())
    .replace(/%../g, (code) => code.toLowerCase())
    .replace(/[A-Z]/g, escape)
  return encoded.length > longestPart || !name.isWellFormed()
    ? `${encoded.slice(0, 12)}~${sha256(JSON.stringify(name))}`
    : encoded
}

/** The key of a run's value of this kind and name; with the name left out, the prefix of all of the kind. */
export const keyOf = (runId: string, kind: "state" | "artifact" | "content" | "part", name?: string): string =>
  `chamvi/${part(runId)}/${kind}/${name === undefined ? "" : part(name)}`

/** What the keys of all that belongs to a run begin with. */
export const runPrefix = (runId: string): string => `chamvi/${part(runId)}/`

interface Lock {
  readonly semaphore: Semaphore.Semaphore
  users: number
}

const locks = new WeakMap<KeyValueStore.KeyValueStore, Map<string, Lock>>()

/** Runs `effect` while nobody else of this process runs one for the same key of the same store. */
export const exclusively = <A, E, R>(
  store: KeyValueStore.KeyValueStore,
  key: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const ofStore = locks.get(store) ?? new Map<string, Lock>()
      locks.set(store, ofStore)
      const lock = ofStore.get(key) ?? { semaphore: Semaphore.makeUnsafe(1), users: 0 }
      ofStore.set(key, lock)
      lock.users++
      return { lock, ofStore }
    }),
    ({ lock }) => lock.semaphore.withPermit(effect),
    ({ lock, ofStore }) =>
      Effect.sync(() => {
        if (--lock.users === 0) ofStore.delete(key)
      })
  )
