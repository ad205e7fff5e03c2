import type { Effect, Schema } from "effect"
import type { KeyValueStore } from "effect/persistence"

/**
 * Values of a run, typed by schemas, each under a name.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunState {
  /** The value of `name`, or `undefined` where none was set. */
  readonly get: <A, I>(
    name: string,
    schema: Schema.Codec<A, I>
  ) => Effect.Effect<A | undefined, KeyValueStore.KeyValueStoreError | Schema.SchemaError>
  /** Sets the value of `name`. */
  readonly set: <A, I>(
    name: string,
    schema: Schema.Codec<A, I>,
    value: A
  ) => Effect.Effect<void, KeyValueStore.KeyValueStoreError | Schema.SchemaError>
  /** Replaces the value of `name` by what `f` makes of it; updates of one process never overwrite each other. */
  readonly update: <A, I>(
    name: string,
    schema: Schema.Codec<A, I>,
    f: (value: A | undefined) => A
  ) => Effect.Effect<A, KeyValueStore.KeyValueStoreError | Schema.SchemaError>
}
