/**
 * Inputs and results of every shape, rows that somebody has edited, names of tables and prefixes, and texts full of markers:
 * a typed error or the right value, and no object of the program changed.
 */
import { NodeRedis } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { effectMarker, EffectStore, findMarker, type IEffectStore } from "chamvi-effect"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Arbitrary, Cause, Effect, Exit, Layer, Schema, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { vi } from "vitest"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { call, memory, tagOf } from "../reconciliation/support.ts"
import { redisIsThere, redisServer } from "../support/redis.ts"
import { text, texts } from "./hostile.ts"
import { stores } from "./stores.ts"

vi.setConfig({ testTimeout: 120_000 })

const nested = (levels: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = "bottom"
  for (let level = 0; level < levels; level++) value = wrap(value)
  return value
}

const cyclic: Record<string, unknown> = { name: "cycle" }
cyclic["self"] = [cyclic]

/** What JSON has no right form for. */
const unwritable: Readonly<Record<string, () => unknown>> = {
  cyclic: () => cyclic,
  "10,000 objects deep": () => nested(10_000, (inner) => ({ inner })),
  "10,000 lists deep": () => nested(10_000, (inner) => [inner]),
  "100,000 deep by toJSON": () => nested(100_000, (inner) => ({ toJSON: () => inner })),
  "endless by toJSON": () => {
    const endless = (): object => ({ toJSON: endless })
    return endless()
  },
  "a big integer": () => 1n,
  "no number": () => Number.NaN,
  "a lone surrogate": () => "\ud800",
  "a lone surrogate in a name": () => ({ "\udc00": 1 }),
  "a map": () => new Map([["a", 1]]),
  "a weak reference": () => new WeakRef({}),
  "a symbol": () => ({ symbol: Symbol("s") }),
  "a getter that throws": () => ({
    get secret() {
      throw new Error("no")
    }
  }),
  "a revoked proxy": () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return { proxy }
  },
  "a proxy that throws": () =>
    new Proxy({}, {
      ownKeys() {
        throw new Error("no")
      },
      get() {
        throw new Error("no")
      }
    }),
  "a typed array": () => new Uint8Array(8)
}

const ending = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isSuccess(exit) ? "it succeeded" : tagOf(Cause.squash(exit.cause)) ?? String(Cause.squash(exit.cause))

const untouched = () => {
  assert.deepStrictEqual(Object.keys(Object.prototype), [])
  assert.isUndefined(({} as { readonly admin?: unknown }).admin)
}

describe("values that JSON cannot carry", () => {
  for (const [name, make] of Object.entries(unwritable)) {
    it.effect(`(${name}) are no input, and the effect of one as a result is never applied again`, () =>
      Effect.gen(function*() {
        const store = yield* memory
        let applied = 0
        const asInput = yield* Effect.exit(
          call(store, { key: "input", input: make(), execute: () => Effect.sync(() => ++applied) })
        )
        assert.strictEqual(ending(asInput), "EffectKeyError")
        assert.strictEqual(applied, 0)
        const asResult = call(store, {
          execute: () =>
            Effect.sync(() => {
              applied++
              return make()
            })
        })
        assert.strictEqual(ending(yield* Effect.exit(asResult)), "EffectResultUnavailableError")
        assert.strictEqual(ending(yield* Effect.exit(asResult)), "EffectResultUnavailableError")
        assert.strictEqual(applied, 1)
      }))
  }
})

/** Any JSON, with members whose names mean something. */
const json: Arbitrary.Arbitrary<unknown> = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.schema(Schema.Array(Schema.Union([Schema.Literals(texts), Schema.Finite, Schema.Boolean, Schema.Null]))),
    Arbitrary.array(text, { maxLength: 8 })
  ]),
  ([leaves, names]) =>
    names.filter((name) => name.isWellFormed()).reduce<unknown>(
      (inner, name, index) =>
        index % 3 === 0
          ? [inner, name]
          : Object.fromEntries([[name, inner], ["__proto__", { admin: true }], ["", index]]),
      leaves.map((leaf) => typeof leaf === "string" ? leaf.toWellFormed() : leaf)
    )
)

for (const { isThere, layer, name } of stores) {
  describe.skipIf(!isThere)(`values on ${name}`, () => {
    it.live("come back as they were, whatever their members are called", () =>
      Effect.gen(function*() {
        const store = yield* EffectStore
        let count = 0
        const result = yield* Arbitrary.checkEffect(json, (value) =>
          Effect.gen(function*() {
            const key = `key ${++count}`
            const asked = call(store, { key, input: value, execute: () => Effect.succeed(value) })
            for (const answer of [yield* asked, yield* asked]) {
              assert.strictEqual(JSON.stringify(answer), JSON.stringify(value))
            }
            return true
          }), { runs: 60, seed: 1 })
        assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
        untouched()
      }).pipe(Effect.provide(Layer.fresh(layer))))
  })
}

/** Texts that somebody may put where a result stands. */
const planted: ReadonlyArray<string> = [
  `{"__proto__":{"admin":true}}`,
  `{"value":{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}}`,
  `{"value":1,"__proto__":{"admin":true}}`,
  `{"value":1,"undefined":true}`,
  `{"unavailable":{"admin":true}}`,
  `{"undefined":1}`,
  `[1]`,
  `null`,
  `"text"`,
  `{`,
  ``,
  `{"value":${"[".repeat(100_000)}`,
  `{"value":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
]

const readsPlanted = Effect.fnUntraced(
  function*(store: IEffectStore, plant: (text: string) => Effect.Effect<void, unknown>) {
    for (const text of planted) {
      yield* store.remove("k")
      yield* call(store, { execute: () => Effect.succeed("mine") })
      yield* plant(text)
      let applied = 0
      const exit = yield* Effect.exit(call(store, { execute: () => Effect.sync(() => ++applied) }))
      assert.strictEqual(applied, 0, text.slice(0, 60))
      if (Exit.isSuccess(exit)) {
        assert.isUndefined((exit.value as { readonly admin?: unknown } | undefined)?.admin, text.slice(0, 60))
        assert.isTrue(text.startsWith(`{"value":`), text.slice(0, 60))
      } else {
        assert.include(["EffectRecordError", "EffectResultUnavailableError"], ending(exit), text.slice(0, 60))
      }
      untouched()
    }
  }
)

describe("rows that somebody has edited", () => {
  it.live("in a SQL database are read as data, or refused, and nothing is applied", () =>
    Effect.gen(function*() {
      const sql = yield* SqliteClient.make({ filename: ":memory:" })
      const store = yield* Effect.provideService(SqlEffectStore.make({}), SqlClient.SqlClient, sql)
      yield* readsPlanted(store, (text) => sql`UPDATE chamvi_effect SET result = ${text} WHERE key = 'k'`)
    }).pipe(Effect.scoped))

  it.live.skipIf(!redisIsThere)(
    "in Redis are read as data, or refused, and nothing is applied",
    () =>
      Effect.gen(function*() {
        const url = process.env["REDIS_URL"] ?? (yield* redisServer()).url
        yield* Effect.gen(function*() {
          const redis = yield* NodeRedis.NodeRedis
          const store = yield* RedisEffectStore.make({ prefix: "planted:" })
          yield* readsPlanted(store, (text) =>
            Effect.gen(function*() {
              const [key] = yield* redis.use((client) => client.keys("planted:k*"))
              const fields = yield* redis.use((client) => client.hGetAll(key!))
              const field = Object.keys(fields).find((field) => fields[field]!.includes("mine"))
              yield* redis.use((client) => client.hSet(key!, field!, text))
            }))
        }).pipe(Effect.provide(NodeRedis.layer({ url })))
      }).pipe(Effect.scoped)
  )
})

describe("names of a store's own", () => {
  it.live("are quoted or refused, and reach no other table", () =>
    Effect.gen(function*() {
      const sql = yield* SqliteClient.make({ filename: ":memory:" })
      yield* sql`CREATE TABLE precious (note TEXT)`
      yield* sql`INSERT INTO precious VALUES ('here')`
      for (const name of [...texts, "precious\"; DROP TABLE precious; --", "x' OR '1'='1", "sqlite_master", "a.b"]) {
        const exit = yield* Effect.exit(
          Effect.gen(function*() {
            const store = yield* Effect.provideService(SqlEffectStore.make({ table: name }), SqlClient.SqlClient, sql)
            const once = call(store, { execute: () => Effect.succeed(name.toWellFormed()) })
            assert.strictEqual(yield* once, name.toWellFormed())
            assert.strictEqual((yield* Stream.runCollect(store.list())).length, 1, JSON.stringify(name))
            yield* store.remove("k")
          })
        )
        if (Exit.isFailure(exit)) assert.strictEqual(ending(exit), "EffectStoreError", JSON.stringify(name))
        assert.deepStrictEqual(yield* sql`SELECT note FROM precious`, [{ note: "here" }])
      }
    }).pipe(Effect.scoped))
})

describe("markers", () => {
  it("are found as they were written, among whatever somebody has planted", () => {
    const secret = "of the server"
    const property = (parts: ReadonlyArray<string>) => {
      const keys = parts.filter((part) => part.isWellFormed() && part !== "")
      const mangled = parts.map((part) =>
        `<!-- chamvi:effect=${part} hmac=${"0".repeat(64)} -->${
          effectMarker(part || "x").slice(0, -4)
        } <!-- chamvi:effect=`
      )
      const body = keys.map((key, index) => `${mangled[index]}\n${effectMarker(key, { secret })}\n${parts[index]}`)
        .join("")
      const found = findMarker(body, { secret })
      assert.deepStrictEqual(found, [...new Set(keys)])
      return true
    }
    return Effect.runPromise(Effect.map(
      Arbitrary.checkEffect(Arbitrary.array(text, { maxLength: 6 }), property, { runs: 500, seed: 1 }),
      (result) => assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
    ))
  })
})
