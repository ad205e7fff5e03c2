/**
 * Artifacts on a store that others write to, or that lost something: the newest content, or an error, and never half of two.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { KeyValueStore } from "effect/persistence"
import * as Artifacts from "../../src/toolContext/Artifacts.ts"

const memory = Effect.provide(KeyValueStore.KeyValueStore, KeyValueStore.layerMemory)

/** The keys of a kind in the store. */
const keysOf = (store: KeyValueStore.KeyValueStore, kind: "artifact" | "content") =>
  Effect.map(store.keys, (keys) => Array.from(keys).filter((key) => key.includes(`/${kind}/`)))

describe("artifacts", () => {
  it.effect("the same content put again stays, and another content takes its place", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const artifacts = Artifacts.make(store, "run")
      for (const content of ["one", "one", "two", new Uint8Array([1]), new Uint8Array([1]), new Uint8Array([2])]) {
        yield* artifacts.put("a", content, "x/y")
        assert.deepStrictEqual((yield* artifacts.get("a"))?.content, content)
        assert.strictEqual((yield* keysOf(store, "content")).length, 1)
      }
      yield* artifacts.remove("a")
      assert.deepStrictEqual(Array.from(yield* store.keys), [])
    }))

  it.effect("an entry or a content that is damaged is an error that names its key", () =>
    Effect.gen(function*() {
      for (const kind of ["artifact", "content"] as const) {
        const store = yield* memory
        const artifacts = Artifacts.make(store, "run")
        yield* artifacts.put("a", "one", "text/plain")
        const [key] = yield* keysOf(store, kind)
        yield* store.set(key!, "{}")
        const error = yield* Effect.flip(artifacts.get("a"))
        assert.deepInclude(error, { key: key!, method: "get", message: `The artifact under ${key} cannot be read` })
      }
    }))

  it.effect("a content that is gone is an error", () =>
    Effect.gen(function*() {
      for (const content of ["one", new Uint8Array([1])]) {
        const store = yield* memory
        const artifacts = Artifacts.make(store, "run")
        yield* artifacts.put("a", content, "x/y")
        const [key] = yield* keysOf(store, "content")
        yield* store.remove(key!)
        const error = yield* Effect.flip(artifacts.get("a"))
        assert.deepInclude(error, { key: key!, method: "get", message: `The content of artifact "a" is missing` })
      }
    }))

  it.effect("an artifact that is replaced while it is read is read anew", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const artifacts = Artifacts.make(base, "run")
      yield* artifacts.put("a", "one", "text/plain")
      let replacements = 2
      const store: KeyValueStore.KeyValueStore = {
        ...base,
        get: (key) =>
          key.includes("/content/") && replacements-- > 0
            ? Effect.andThen(artifacts.put("a", `new ${replacements}`, "text/plain"), base.get(key))
            : base.get(key)
      }
      assert.strictEqual((yield* Artifacts.make(store, "run").get("a"))?.content, "new 0")
    }))

  it.effect("a list leaves out what is removed meanwhile, and reads several entries at a time", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const artifacts = Artifacts.make(base, "run")
      for (const name of ["a", "b", "c"]) yield* artifacts.put(name, name, "text/plain")
      let [reading, most] = [0, 0]
      const store: KeyValueStore.KeyValueStore = {
        ...base,
        keys: Effect.tap(base.keys, () => artifacts.remove("b")),
        get: (key) =>
          Effect.suspend(() => {
            most = Math.max(most, ++reading)
            return Effect.andThen(Effect.yieldNow, Effect.ensuring(base.get(key), Effect.sync(() => reading--)))
          })
      }
      const found = yield* Artifacts.make(store, "run").list
      assert.deepStrictEqual(found.map(({ name }) => name), ["a", "c"])
      assert.strictEqual(most, 3)
    }))
})
