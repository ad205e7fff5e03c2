/**
 * How the engine writes values of a run into its rows: what JSON cannot carry in tagged form, what is large apart.
 */
import { Effect, Schedule } from "effect"
import * as StoredValue from "../internal/storedValue.ts"
import type { Blobs } from "./blobs.ts"
import { EngineStoreError, RunRowTooLargeError } from "./errors.ts"

export interface Values {
  /** `name` says in the error what was too large. */
  readonly write: (
    name: string,
    value: unknown
  ) => Effect.Effect<string, RunRowTooLargeError | StoredValue.Unwritable>
  readonly read: (text: string) => Effect.Effect<unknown>
}

/** The largest row, in bytes. */
export const defaultMaxRowSize = 1024 * 1024

/** Storage that fails comes back, or its process is stopped: there is nobody to tell meanwhile. */
export const untilStored = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, never, R> =>
  effect.pipe(
    Effect.tapError((error) => Effect.logWarning("The engine's storage failed, and is tried again", error)),
    Effect.retry(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")])),
    Effect.orDie
  )

/** What is large goes to `kept`. */
export const make = (kept: Blobs, maxRowSize: number): Values => ({
  write: (name, value) =>
    Effect.flatMap(encode(value), ({ blobs, text }) => {
      const size = Buffer.byteLength(text)
      return size > maxRowSize
        ? Effect.fail(new RunRowTooLargeError({ name, size, limit: maxRowSize }))
        : Effect.as(
          untilStored(Effect.forEach(
            blobs,
            ([blob, content]) => kept.put(blob, content),
            { discard: true }
          )),
          text
        )
    }),
  read: (text) =>
    Effect.flatMap(
      untilStored(Effect.forEach(StoredValue.blobsIn(text), (blob) =>
        Effect.map(kept.get(blob), (content) =>
          content === undefined ? [] : [[blob, content] as const]))),
      (blobs) =>
        Effect.orDie(Effect.try({
          try: () =>
            StoredValue.decode(text, new Map(blobs.flat())),
          catch: (cause) =>
            new EngineStoreError({
              operation: "read a value of a run",
              problem: `${
                cause instanceof Error ? cause.message : String(cause)
              }. Bring the engine's storage back as it was, and retry the run`,
              cause
            })
        }))
    )
})

const encode = (value: unknown): Effect.Effect<StoredValue.Encoded, StoredValue.Unwritable> =>
  Effect.try({
    try: () => StoredValue.encode(value),
    catch: (error) =>
      error instanceof StoredValue.Unwritable
        ? error
        : new StoredValue.Unwritable(`it cannot be read: ${String(error)}`)
  })
