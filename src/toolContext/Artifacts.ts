import { Effect, Order, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { sha256 } from "../internal/sha256.ts"
import { exclusively, keyOf } from "./runKeys.ts"

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
  /** Stores `content` under `name`, in place of an earlier one. A reader gets the earlier one or this one, whole. */
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
  /** All artifacts of the run, sorted by name. It goes through the keys of all runs in the store. */
  readonly list: Effect.Effect<ReadonlyArray<ArtifactInfo>, KeyValueStore.KeyValueStoreError>
  /** Removes the artifact, if there is one. */
  readonly remove: (name: string) => Effect.Effect<void, KeyValueStore.KeyValueStoreError>
}

/** What stands under an artifact's name; the content stands apart, under a name that changes with it. */
const Entry = Schema.Struct({
  name: Schema.String,
  mediaType: Schema.String,
  size: Schema.Finite,
  kind: Schema.Literals(["text", "bytes"]),
  content: Schema.String
})

const Text = Schema.fromJsonString(Schema.String)

const order = Order.mapInput(Order.String, ({ name }: ArtifactInfo) => name)

// not `slice`: that of a Buffer shares its memory
const copy = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)

const infoOf = ({ mediaType, name, size }: ArtifactInfo): ArtifactInfo => ({ name, mediaType, size })

const unreadable = (key: string, method: string) => (cause: Schema.SchemaError) =>
  new KeyValueStore.KeyValueStoreError({ key, method, message: `The artifact under ${key} cannot be read`, cause })

/** The artifacts of a run in a store. */
export const make = (store: KeyValueStore.KeyValueStore, runId: string): Artifacts => {
  const entries = KeyValueStore.toSchemaStore(store, Entry)
  const prefix = keyOf(runId, "artifact")

  const entryAt = (key: string) =>
    Effect.map(
      Effect.catchTag(entries.get(key), "SchemaError", (cause) => Effect.fail(unreadable(key, "get")(cause))),
      (entry) => entry._tag === "Some" ? entry.value : undefined
    )

  // texts are kept in quotes: some stores drop a byte order mark, and none keeps half of a surrogate pair
  const readContent = (
    { content, kind }: typeof Entry.Type
  ): Effect.Effect<string | Uint8Array | undefined, KeyValueStore.KeyValueStoreError> =>
    kind === "bytes"
      ? Effect.map(store.getUint8Array(content), (bytes) => bytes === undefined ? undefined : copy(bytes))
      : Effect.flatMap(store.get(content), (json) =>
        json === undefined
          ? Effect.undefined
          : Effect.mapError(Schema.decodeEffect(Text)(json), unreadable(content, "get")))

  const read = (
    name: string,
    before: string | undefined
  ): Effect.Effect<
    (ArtifactInfo & { readonly content: string | Uint8Array }) | undefined,
    KeyValueStore.KeyValueStoreError
  > =>
    Effect.flatMap(
      entryAt(keyOf(runId, "artifact", name)),
      (entry) =>
        entry === undefined ? Effect.undefined : Effect.flatMap(readContent(entry), (content) => {
          if (content !== undefined) return Effect.succeed({ ...infoOf(entry), content })
          // replaced between the two reads: the entry says something else by now
          return entry.content !== before ? read(name, entry.content) : Effect.fail(
            new KeyValueStore.KeyValueStoreError({
              key: entry.content,
              method: "get",
              message: `The content of artifact ${JSON.stringify(name)} is missing`
            })
          )
        })
    )

  return {
    put: (name, content, mediaType) =>
      Effect.suspend(() => {
        const key = keyOf(runId, "artifact", name)
        const kind = typeof content === "string" ? "text" : "bytes"
        const stored = typeof content === "string" ? JSON.stringify(content) : copy(content)
        const size = typeof content === "string" ? Buffer.byteLength(content) : content.byteLength
        const digest = sha256(`${kind}:${typeof stored === "string" ? stored : Buffer.from(stored).toString("base64")}`)
        const entry = {
          name,
          mediaType,
          size,
          kind,
          content: keyOf(runId, "content", sha256(`${key}:${digest}`))
        } as const
        return exclusively(
          store,
          key,
          Effect.gen(function*() {
            const earlier = yield* entryAt(key)
            yield* store.set(entry.content, stored)
            yield* Effect.catchTag(entries.set(key, entry), "SchemaError", Effect.die)
            if (earlier !== undefined && earlier.content !== entry.content) yield* store.remove(earlier.content)
            return infoOf(entry)
          })
        )
      }),
    get: (name) => read(name, undefined),
    list: Effect.gen(function*() {
      const keys = (yield* store.keys).filter((key) => key.startsWith(prefix))
      const found = yield* Effect.forEach(keys, entryAt, { concurrency: 16 })
      return found.flatMap((entry) => entry === undefined ? [] : [infoOf(entry)]).sort(order)
    }),
    remove: (name) => {
      const key = keyOf(runId, "artifact", name)
      return exclusively(
        store,
        key,
        Effect.flatMap(
          entryAt(key),
          (entry) => entry === undefined ? Effect.void : Effect.andThen(store.remove(key), store.remove(entry.content))
        )
      )
    }
  }
}
