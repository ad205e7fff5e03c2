import { Effect, Option, type Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { exclusively, keyOf } from "./runKeys.ts"

/**
 * Values of a run, typed by schemas, each under a name. They are kept as JSON, in the form that the schema's JSON codec
 * encodes to.
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
  /**
   * Replaces the value of `name` by what `f` makes of it. Updates and sets of one process never overwrite each other; those
   * of two processes may.
   */
  readonly update: <A, I>(
    name: string,
    schema: Schema.Codec<A, I>,
    f: (value: A | undefined) => A
  ) => Effect.Effect<A, KeyValueStore.KeyValueStoreError | Schema.SchemaError>
}

/** The state of a run in a store. */
export const make = (store: KeyValueStore.KeyValueStore, runId: string): RunState => {
  // a codec is compiled once for each schema
  const typed = new WeakMap<object, unknown>()
  const storeOf = <A, I>(schema: Schema.Codec<A, I>): KeyValueStore.SchemaStore<Schema.Codec<A, I>> => {
    const known = typed.get(schema) ?? KeyValueStore.toSchemaStore(store, schema)
    typed.set(schema, known)
    return known as KeyValueStore.SchemaStore<Schema.Codec<A, I>>
  }
  const locked = <A, E>(name: string, effect: (key: string) => Effect.Effect<A, E>) => {
    const key = keyOf(runId, "state", name)
    return exclusively(store, key, effect(key))
  }
  return {
    get: (name, schema) => Effect.map(storeOf(schema).get(keyOf(runId, "state", name)), Option.getOrUndefined),
    set: (name, schema, value) => locked(name, (key) => storeOf(schema).set(key, value)),
    update: (name, schema, f) =>
      locked(name, (key) =>
        Effect.flatMap(storeOf(schema).get(key), (before) =>
          Effect.suspend(() => {
            const value = f(Option.getOrUndefined(before))
            return Effect.as(storeOf(schema).set(key, value), value)
          })))
  }
}
