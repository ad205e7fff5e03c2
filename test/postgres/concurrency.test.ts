/**
 * Many callers and many processes at once on one Postgres.
 */
import { describe, expect, it } from "@effect/vitest"
import { applyOnce, EffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readFileSync } from "node:fs"
import { vi } from "vitest"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { databaseUrl, freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { claim, complete, item, ledger, noting, request, tokenOf } from "./support.ts"

// processes start slowly on a busy machine
vi.setConfig({ testTimeout: 120_000 })

const worker = "ledgerWorker.ts"
const all = { concurrency: "unbounded" } as const
const keys = (count: number, name = "key") => Array.from({ length: count }, (_, index) => `${name}-${index}`)

describe.skipIf(noPostgres)("several processes on one Postgres", () => {
  it.live("that start at once make the tables once", () =>
    Effect.gen(function*() {
      const schema = yield* freshSchema
      const lines = yield* Effect.forEach(
        keys(10),
        () => Effect.flatMap(start(worker, "open", `${databaseUrl}#${schema}`), ({ line }) => line),
        all
      )
      expect(lines).toEqual(Array.from({ length: 10 }, () => "opened"))
    }))

  it.live("apply each key once, and all get its result", () =>
    Effect.gen(function*() {
      const ledger = `${databaseUrl}#${yield* freshSchema}`
      const log = `${yield* temporaryDirectory}/log`
      const [one, two] = yield* Effect.all([
        start(worker, "race", ledger, log, "40", "5"),
        start(worker, "race", ledger, log, "40", "5")
      ])
      const results = [yield* one.line, yield* two.line]
      expect(results[0]).toEqual(results[1])
      const applied = readFileSync(log, "utf8").trim().split("\n")
      expect(applied.toSorted()).toEqual(keys(40).toSorted())
    }))

  it.live("take a killed process's claim over when its lease ends, in doubt", () =>
    Effect.gen(function*() {
      const { schema, store } = yield* ledger()
      const holder = yield* start(worker, "hold", `${databaseUrl}#${schema}`, "key", "3000")
      expect(yield* holder.line).toMatchObject({ _tag: "Claimed" })
      yield* holder.kill("SIGKILL")
      yield* holder.ended
      let reply = yield* claim(store, "key")
      while (reply._tag === "Held") reply = yield* Effect.delay(claim(store, "key"), reply.remaining / 2 + 10)
      expect(reply).toMatchObject({ _tag: "Claimed", doubt: "inDoubt", takenOver: true, attempt: 2 })
    }).pipe(Effect.scoped, Effect.provide(pool())))
})

describe.skipIf(noPostgres)("many at once on one Postgres", () => {
  for (const maxConnections of [1, 16]) {
    it.live(`of many claims of one key one is granted, over a pool of ${maxConnections}`, () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        for (const key of keys(5)) {
          const replies = yield* Effect.forEach(keys(50), () => claim(store, key), all)
          expect(replies.filter(({ _tag }) => _tag === "Claimed").length).toBe(1)
          expect(replies.filter(({ _tag }) => _tag === "Held").length).toBe(49)
        }
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections }))))

    it.live(`of many takeovers of one key one is granted, over a pool of ${maxConnections}`, () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        for (const key of keys(5)) {
          yield* claim(store, key, { lease: 0 })
          const replies = yield* Effect.forEach(keys(50), () => claim(store, key), all)
          expect(replies.filter(({ _tag }) => _tag === "Claimed").length).toBe(1)
        }
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections }))))

    it.live(`thousands of calls end, each key applied once, over a pool of ${maxConnections}`, () =>
      Effect.gen(function*() {
        const { schema } = yield* ledger()
        // two stores are two processes to each other
        const stores = [yield* SqlEffectStore.make({ schema }), yield* SqlEffectStore.make({ schema })]
        const applied: Array<string> = []
        const calls = stores.flatMap((store) => keys(500).flatMap((key) => [{ key, store }, { key, store }]))
        const results = yield* Effect.forEach(calls, ({ key, store }) =>
          applyOnce({
            key,
            execute: (key) =>
              Effect.sync(() => {
                applied.push(key)
                return key
              })
          }).pipe(Effect.provideService(EffectStore, store)), all)
        expect(results).toEqual(calls.map(({ key }) => key))
        expect(applied.toSorted()).toEqual(keys(500).toSorted())
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections }))))
  }

  it.live("batches that meet in opposite orders never wait for each other in a circle", () =>
    Effect.gen(function*() {
      const { client, statements } = yield* noting
      const schema = yield* freshSchema
      const store = yield* Effect.provideService(SqlEffectStore.make({ schema }), SqlClient.SqlClient, client)
      const names = keys(400)
      const replies = yield* store.claim(names.map((key) => request(key)))
      const items = names.map((key, index) => ({ key, token: tokenOf(replies[index]!), lease: 60_000 }))
      statements.length = 0
      // a statement that the database undid would be sent again
      for (let round = 0; round < 10; round++) {
        yield* Effect.forEach(
          [items, items.toReversed(), items, items.toReversed(), items, items.toReversed()],
          (batch) => store.renew(batch),
          all
        )
      }
      expect(statements.length).toBe(60)
      const released = items.map(({ key, token }) => ({ key, token, verdict: "clean", cleared: false }) as const)
      const answers = yield* Effect.forEach([released, released.toReversed()], (batch) => store.release(batch), all)
      expect(new Set(answers.flat())).toEqual(new Set(["ok"]))
      const orders = [names, names.toReversed(), names, names.toReversed()]
      const claims = yield* Effect.forEach(orders, (order) => store.claim(order.map((key) => request(key))), all)
      expect(claims.flat().filter(({ _tag }) => _tag === "Claimed").length).toBe(400)
    }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 16 }))))

  it.live("a batch is answered item by item: a new key, a record, a released one, one in doubt, one of another tool", () =>
    Effect.gen(function*() {
      const { store } = yield* ledger()
      yield* complete(store, "recorded", tokenOf(yield* claim(store, "recorded")), "mine")
      yield* store.release([{
        key: "released",
        token: tokenOf(yield* claim(store, "released")),
        verdict: "tried",
        cleared: false
      }])
      yield* claim(store, "expired", { lease: 0 })
      yield* claim(store, "held")
      const repeated = request("repeated")
      yield* store.claim([repeated])
      const requests = ["new", "recorded", "released", "expired", "held"].map((key) => request(key))
      const replies = yield* store.claim([
        ...requests,
        repeated,
        { ...request("released"), tool: "other" },
        request("new"),
        request("recorded")
      ])
      expect(replies).toMatchObject([
        { _tag: "Claimed", attempt: 1, doubt: "none" },
        { _tag: "Recorded", result: "mine" },
        { _tag: "Claimed", attempt: 2, doubt: "tried", takenOver: false },
        { _tag: "Claimed", attempt: 2, doubt: "inDoubt", takenOver: true },
        { _tag: "Held", tool: "tool" },
        { _tag: "Claimed", attempt: 1 },
        { _tag: "Held", tool: "tool" },
        { _tag: "Held" },
        { _tag: "Recorded" }
      ])
      const done = yield* store.complete([
        item("new", tokenOf(replies[0]!), "one"),
        item("held", 1_000_000),
        item("new", tokenOf(replies[0]!), "two"),
        item("missing", 1),
        item("expired", tokenOf(replies[3]!)),
        item("released", Number.NaN)
      ])
      expect(done).toEqual(["ok", "lost", "ok", "lost", "ok", "lost"])
      expect(yield* claim(store, "new")).toMatchObject({ result: "one" })
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("prune leaves what another works on for the next time", () =>
    Effect.gen(function*() {
      const { store, table } = yield* ledger()
      for (const key of keys(3)) yield* complete(store, key, tokenOf(yield* claim(store, key)))
      yield* Effect.sleep(5)
      yield* Effect.gen(function*() {
        const sql = yield* SqlClient.SqlClient
        yield* sql.withTransaction(Effect.gen(function*() {
          yield* sql.unsafe(`SELECT * FROM ${table} WHERE key = 'key-1' FOR UPDATE`)
          expect(yield* store.prune({ olderThan: 0 })).toBe(2)
        }))
      }).pipe(Effect.provide(pool()))
      expect(yield* store.prune({ olderThan: 0 })).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(pool())))
})
