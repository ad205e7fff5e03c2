import { describe, expect, it } from "@effect/vitest"
import { EffectStore, type IEffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as SqliteClient from "../src/SqliteClient.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const claim = (store: IEffectStore, key: string, claimId = "claim") =>
  store.claim([{ key, tool: "t", runId: "r", owner: "o", claimId, lease: 60_000, fingerprint: "f" }])

const complete = (store: IEffectStore, key: string, token: number) =>
  store.complete([{ key, token, result: `{"value":1}`, outcome: "executed", fingerprint: "f" }])

const Database = SqliteClient.layer({ filename: ":memory:" })

const OnDatabase = Layer.provideMerge(SqlEffectStore.layer(), Database)

describe("SqlEffectStore", () => {
  it.effect("runs outside of the caller's transaction", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* EffectStore
      yield* claim(store, "before")
      const error = yield* Effect.flip(sql.withTransaction(claim(store, "inside")))
      // SQLite has one writer, which the caller is: waiting for it would never end
      expect(error).toMatchObject({ _tag: "EffectStoreError", operation: "claim", key: "inside" })
      expect(error.message).toContain("transaction")
      expect(yield* store.get("inside")).toBe(undefined)
      expect(yield* claim(store, "inside")).toMatchObject([{ _tag: "Claimed" }])
    }).pipe(Effect.provide(OnDatabase)))

  it.live("waits while another fiber's transaction is open, and what it wrote outlives a rollback", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const store = yield* EffectStore
      yield* sql`CREATE TABLE mine (id INTEGER)`
      const transaction = yield* Effect.forkScoped(
        Effect.exit(sql.withTransaction(
          Effect.andThen(sql`INSERT INTO mine VALUES (1)`, Effect.delay(Effect.fail("rolled back"), 100))
        )),
        { startImmediately: true }
      )
      const [reply] = yield* claim(store, "key")
      expect(transaction.pollUnsafe()).not.toBe(undefined)
      yield* complete(store, "key", reply?._tag === "Claimed" ? reply.token : 0)
      expect(yield* sql`SELECT * FROM mine`).toEqual([])
      expect(yield* claim(store, "key")).toMatchObject([{ _tag: "Recorded" }])
    }).pipe(Effect.provide(OnDatabase)))

  it.effect("reads its numbers also where the program asks for BigInts", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      const [reply] = yield* claim(store, "key")
      expect(reply).toMatchObject({ _tag: "Claimed", token: 1 })
      expect(yield* store.get("key")).toMatchObject({ token: 1, attempt: 1 })
    }).pipe(Effect.provideService(SqlClient.SafeIntegers, true), Effect.provide(OnDatabase)))

  it.effect("works over a client that renames columns", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      yield* claim(store, "key")
      expect(yield* store.get("key")).toMatchObject({ runId: "r", claimId: "claim" })
    }).pipe(
      Effect.provide(Layer.provide(
        SqlEffectStore.layer(),
        SqliteClient.layer({
          filename: ":memory:",
          transformQueryNames: (name) => name.toUpperCase(),
          transformResultNames: (name) => name.toLowerCase().replace("_", "-")
        })
      ))
    ))

  it.effect("two stores over one client are one ledger", () =>
    Effect.gen(function*() {
      const one = yield* SqlEffectStore.make()
      const two = yield* SqlEffectStore.make()
      expect(yield* claim(one, "key", "one")).toMatchObject([{ _tag: "Claimed" }])
      expect(yield* claim(two, "key", "two")).toMatchObject([{ _tag: "Held" }])
    }).pipe(Effect.provide(Database)))

  it.effect("keeps its tables and rows in the program's database", () =>
    Effect.gen(function*() {
      const filename = `${yield* temporaryDirectory}/app.sqlite`
      const opened = <A, E>(use: (store: IEffectStore) => Effect.Effect<A, E>) =>
        Effect.provide(
          Effect.flatMap(EffectStore, use),
          Layer.provide(SqlEffectStore.layer(), SqliteClient.layer({ filename }))
        )
      yield* opened((store) => claim(store, "key"))
      expect(yield* opened((store) => store.get("key"))).toMatchObject({ key: "key", status: "held" })
    }))

  it.effect("no input is stored", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const columns = yield* sql<{ readonly name: string }>`SELECT name FROM pragma_table_info('chamvi_effect')`
      expect(columns.map(({ name }) => name).filter((name) => /input/.test(name))).toEqual([])
    }).pipe(Effect.provide(OnDatabase)))
})
