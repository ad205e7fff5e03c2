/**
 * Who waits for a key in Postgres: woken by notices, and without them by looking.
 */
import { PgClient } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { applyOnce, EffectResolution, EffectStore, type IEffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Effect, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { vi } from "vitest"
import { namesOf } from "../../src/sql/postgres/names.ts"
import { databaseUrl, freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { claim, complete, eventually, ledger, noting, request, tokenOf } from "./support.ts"

vi.setConfig({ testTimeout: 60_000 })

/** Watches a key, and counts the wakings. */
const watch = (store: IEffectStore, key: string) =>
  Effect.gen(function*() {
    const seen = { wakings: 0 }
    yield* Effect.forkScoped(Stream.runForEach(store.changes(key), () => Effect.sync(() => seen.wakings++)), {
      startImmediately: true
    })
    return seen
  })

/** The processes of the server that listen for a ledger. */
const listeners = (schema: string, tables: ReadonlyArray<string> = ["chamvi_effect"]) =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql.unsafe(
      "SELECT pid FROM pg_stat_activity WHERE state = 'idle' AND query = ANY($1)",
      [tables.map((table) => `LISTEN "${namesOf(schema, table).channel}"`)]
    ).values
    return rows.map(([pid]) => Number(pid))
  })

const eventuallyListening = (
  schema: string,
  count: number
): Effect.Effect<ReadonlyArray<number>, unknown, SqlClient.SqlClient> =>
  Effect.flatMap(
    listeners(schema),
    (pids) => pids.length === count ? Effect.succeed(pids) : Effect.delay(eventuallyListening(schema, count), 10)
  )

/** A poll so rare that no test sees one. */
const never = { pollInterval: "1 hour" } as const

const acts: Readonly<
  Record<string, (store: IEffectStore, key: string, token: number) => Effect.Effect<unknown, unknown>>
> = {
  "a record": complete,
  "a record in a batch": (store, key, token) =>
    store.complete([key, "another"].map((each) => ({
      key: each,
      token,
      result: `{"value":1}`,
      outcome: "executed",
      fingerprint: "f"
    }))),
  "a release": (store, key, token) => store.release([{ key, token, verdict: "clean", cleared: false }]),
  "a resolution": (store, key) => store.resolve(key, EffectResolution.applied(1)),
  "a removal": (store, key) => store.remove(key)
}

describe.skipIf(noPostgres)("waiting for another store on Postgres", () => {
  for (const [what, act] of Object.entries(acts)) {
    it.live(`a notice of ${what} wakes who waits`, () =>
      Effect.gen(function*() {
        const { schema, store: holder } = yield* ledger()
        const waiter = yield* SqlEffectStore.make({ schema, ...never })
        const token = tokenOf(yield* claim(holder, "key", { lease: what === "a resolution" ? 0 : 60_000 }))
        const seen = yield* watch(waiter, "key")
        yield* eventuallyListening(schema, 1)
        // the row says that somebody waits once the look after the first notice of the connection is over
        yield* Effect.sleep(100)
        const before = seen.wakings
        yield* act(holder, "key", token)
        yield* eventually(() => seen.wakings > before)
      }).pipe(Effect.scoped, Effect.provide(pool())))
  }

  it.live("listens only while somebody waits, on one connection however many wait", () =>
    Effect.gen(function*() {
      const { schema, store: holder } = yield* ledger()
      const waiter = yield* SqlEffectStore.make({ schema, ...never })
      yield* claim(holder, "one")
      yield* claim(holder, "two")
      expect(yield* listeners(schema)).toEqual([])
      yield* Effect.scoped(Effect.gen(function*() {
        for (const key of ["one", "one", "two"]) yield* watch(waiter, key)
        yield* eventuallyListening(schema, 1)
        yield* Effect.sleep(200)
        expect((yield* listeners(schema)).length).toBe(1)
      }))
      yield* eventuallyListening(schema, 0)
      const again = yield* watch(waiter, "two")
      yield* eventuallyListening(schema, 1)
      yield* eventually(() => again.wakings > 0)
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("a record that nobody waits for sends no notice", () =>
    Effect.gen(function*() {
      const { store, table } = yield* ledger()
      const sql = yield* SqlClient.SqlClient
      yield* complete(store, "key", tokenOf(yield* claim(store, "key")))
      expect(yield* sql.unsafe(`SELECT awaited FROM ${table}`).values).toEqual([[false]])
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("a connection that breaks is made again, and what it missed is found", () =>
    Effect.gen(function*() {
      const { schema, store: holder } = yield* ledger()
      const waiter = yield* SqlEffectStore.make({ schema, pollInterval: 200 })
      const token = tokenOf(yield* claim(holder, "key"))
      const other = tokenOf(yield* claim(holder, "other"))
      const seen = yield* watch(waiter, "key")
      const seenOther = yield* watch(waiter, "other")
      const [pid] = yield* eventuallyListening(schema, 1)
      const sql = yield* SqlClient.SqlClient
      const before = seen.wakings
      yield* sql`SELECT pg_terminate_backend(${pid})`
      yield* complete(holder, "key", token)
      yield* eventually(() => seen.wakings > before)
      const [next] = yield* eventuallyListening(schema, 1)
      expect(next).not.toBe(pid)
      const beforeOther = seenOther.wakings
      yield* complete(holder, "other", other)
      yield* eventually(() => seenOther.wakings > beforeOther)
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("a lost notice costs one interval", () =>
    Effect.gen(function*() {
      const { schema, store: holder, table } = yield* ledger()
      const waiter = yield* SqlEffectStore.make({ schema, pollInterval: 300 })
      const token = tokenOf(yield* claim(holder, "key"))
      const seen = yield* watch(waiter, "key")
      yield* eventuallyListening(schema, 1)
      yield* Effect.sleep(400)
      const sql = yield* SqlClient.SqlClient
      // so no notice is sent
      yield* sql.unsafe(`UPDATE ${table} SET awaited = false, status = 'recorded', result = '1', outcome = 'executed'
        WHERE token = ${token}`)
      const before = seen.wakings
      yield* eventually(() => seen.wakings > before)
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("a key is looked at once an interval, however many wait for it, and in one statement with others", () =>
    Effect.gen(function*() {
      const { schema, store: holder } = yield* ledger()
      const { client, statements } = yield* noting
      const waiter = yield* Effect.provideService(
        SqlEffectStore.make({ schema, pollInterval: 200 }),
        SqlClient.SqlClient,
        client
      )
      yield* holder.claim(["one", "two"].map((key) => request(key)))
      for (let index = 0; index < 100; index++) yield* watch(waiter, index % 2 === 0 ? "one" : "two")
      yield* Effect.sleep(500)
      statements.length = 0
      yield* Effect.sleep(1_000)
      expect(statements.length).toBeGreaterThan(0)
      // at nine tenths of the interval with its jitter
      expect(statements.length).toBeLessThanOrEqual(6)
    }).pipe(Effect.scoped, Effect.provide(pool())))

  it.live("a pool of one connection is never kept from statements: changes are found by looking", () =>
    Effect.gen(function*() {
      const { schema, store: holder } = yield* ledger()
      const waiter = yield* SqlEffectStore.make({ schema, pollInterval: 100 })
      const token = tokenOf(yield* claim(holder, "key"))
      const seen = yield* watch(waiter, "key")
      yield* eventually(() => seen.wakings > 0)
      expect(yield* listeners(schema)).toEqual([])
      yield* complete(holder, "key", token)
      const before = seen.wakings
      yield* eventually(() => seen.wakings > before)
    }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 1 }))))

  it.live("a client that is one connection is never kept from statements either", () =>
    Effect.gen(function*() {
      const { store } = yield* ledger({ pollInterval: 100 })
      const token = tokenOf(yield* claim(store, "key"))
      yield* watch(store, "key")
      yield* Effect.sleep(300)
      // at most until listening is given up
      expect(yield* Effect.timeout(complete(store, "key", token), "10 seconds")).toBe("ok")
      yield* Effect.sleep(300)
      expect(yield* Effect.timeout(claim(store, "key"), "1 second")).toMatchObject({ _tag: "Recorded" })
    }).pipe(
      Effect.scoped,
      Effect.provide(PgClient.layerFrom(PgClient.makeClient({ url: Redacted.make(databaseUrl) })))
    ))

  it.live("several stores over one pool leave it a connection for statements", () =>
    Effect.gen(function*() {
      const schema = yield* freshSchema
      const tables = ["a", "b", "c"]
      const stores = yield* Effect.forEach(
        tables,
        (table) => SqlEffectStore.make({ schema, table, pollInterval: 100 })
      )
      for (const store of stores) {
        yield* claim(store, "key")
        yield* watch(store, "key")
      }
      yield* Effect.sleep(300)
      for (const store of stores) expect(yield* claim(store, "key")).toMatchObject({ _tag: "Held" })
      expect((yield* listeners(schema, tables)).length).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 2 }))))

  it.live("another process's caller gets the record as soon as it is there", () =>
    Effect.gen(function*() {
      const { schema, store: holder } = yield* ledger()
      const waiter = yield* SqlEffectStore.make({ schema, ...never })
      const token = tokenOf(
        yield* Effect.map(
          holder.claim([{ ...request("key"), tool: "applyOnce" }]),
          ([reply]) => reply!
        )
      )
      const call = yield* Effect.forkScoped(
        applyOnce({ key: "key", tool: "applyOnce", execute: () => Effect.succeed(2) }).pipe(
          Effect.provideService(EffectStore, waiter)
        )
      )
      yield* eventuallyListening(schema, 1)
      yield* complete(holder, "key", token)
      yield* eventually(() => call.pollUnsafe() !== undefined)
      expect(call.pollUnsafe()).toMatchObject({ value: 1 })
    }).pipe(Effect.scoped, Effect.provide(pool())))
})
