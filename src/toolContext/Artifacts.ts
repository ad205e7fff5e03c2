import type { Effect } from "effect"
import type { KeyValueStore } from "effect/persistence"

/**
 * What `list` tells about an artifact without reading it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ArtifactInfo {
  readonly name: string
  /** For example `text/plain` or `application/pdf`. */
  readonly mediaType: string
  /** The size in bytes (text counts as UTF-8). */
  readonly size: number
}

/**
 * Named bytes and texts of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Artifacts {
  /** Stores `content` under `name`, in place of an earlier one. */
  readonly put: (
    name: string,
    content: string | Uint8Array,
    mediaType: string
  ) => Effect.Effect<ArtifactInfo, KeyValueStore.KeyValueStoreError>
  /** The artifact's content as it was put, a text as a text, or `undefined`. */
  readonly get: (
    name: string
  ) => Effect.Effect<
    (ArtifactInfo & { readonly content: string | Uint8Array }) | undefined,
    KeyValueStore.KeyValueStoreError
  >
  /** All artifacts of the run, sorted by name. */
  readonly list: Effect.Effect<ReadonlyArray<ArtifactInfo>, KeyValueStore.KeyValueStoreError>
  /** Removes the artifact, if there is one. */
  readonly remove: (name: string) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
}
