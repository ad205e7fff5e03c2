/**
 * What is large in the values of a run: kept beside its state and artifacts, under names that are hashes, and forgotten with it.
 */
import { Effect } from "effect"
import type { KeyValueStore } from "effect/persistence"
import { keyOf } from "../toolContext/runKeys.ts"

export interface Blobs {
  readonly put: (name: string, content: string | Uint8Array) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
  /** Nothing where it is missing, or a piece of it. */
  readonly get: (
    name: string
  ) => Effect.Effect<string | Uint8Array | undefined, KeyValueStore.KeyValueStoreError>
}

/** Characters or bytes of a piece. Drivers refuse rows of many megabytes, or lose their connection over them. */
export const pieceSize = 4 * 1024 * 1024

export const make = (store: KeyValueStore.KeyValueStore, runId: string): Blobs => {
  const keyAt = (name: string, index: number) => keyOf(runId, "part", `${name}/${index}`)
  const headOf = (name: string) => keyOf(runId, "part", name)

  const pieces = (content: string | Uint8Array) =>
    Array.from(
      { length: Math.ceil(content.length / pieceSize) },
      (_, index) => content.slice(index * pieceSize, (index + 1) * pieceSize)
    )

  return {
    put: Effect.fnUntraced(function*(name, content) {
      // the name is a hash of the content: what is there need not be written again
      if ((yield* store.get(headOf(name))) !== undefined) return
      // in quotes: a piece may begin or end within a surrogate pair
      const text = pieces(typeof content === "string" ? JSON.stringify(content) : content)
      yield* Effect.forEach(
        text,
        (piece, index) => store.set(keyAt(name, index), typeof piece === "string" ? JSON.stringify(piece) : piece),
        { discard: true }
      )
      yield* store.set(headOf(name), `${typeof content === "string" ? "text" : "bytes"}/${text.length}`)
    }),
    get: Effect.fnUntraced(function*(name) {
      const [kind, count] = (yield* store.get(headOf(name)))?.split("/") ?? []
      if (kind === undefined) return undefined
      const indices = Array.from({ length: Number(count) }, (_, index) => index)
      if (kind === "text") {
        const found = yield* Effect.forEach(indices, (index) => store.get(keyAt(name, index)))
        return found.includes(undefined)
          ? undefined
          : JSON.parse(found.map((piece) => JSON.parse(piece!) as string).join("")) as string
      }
      const found = yield* Effect.forEach(indices, (index) => store.getUint8Array(keyAt(name, index)))
      return found.includes(undefined) ? undefined : new Uint8Array(Buffer.concat(found as Array<Uint8Array>))
    })
  }
}
