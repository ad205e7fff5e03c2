/**
 * What the ledger in Postgres costs its database, and what it does with odd names, keys, rows and connections.
 */
import { describe, expect, it } from "@effect/vitest"
import { applyOnce, EffectResolution, EffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Config, ConfigProvider, Effect, Fiber, Layer, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { vi } from "vitest"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { claim, complete, item, ledger, noting, recorded, request, tokenOf } from "./support.ts"

vi.setConfig({ testTimeout: 60_000 })

/** Tests over one pool of connections each. */
const test = {
  live: <A, E>(title: string, body: Effect.Effect<A, E, SqlClient.SqlClient | Scope.Scope>) =>
    it.live(title, () => Effect.provide(body, pool({ maxConnections: 4 })))
}

describe.skipIf(noPostgres)("SqlEffectStore in Postgres", () => {
  describe("costs", () => {
    it.live("one round trip for a claim, one for a record, one for a replay, one for a release", () =>
      Effect.gen(function*() {
        const { client, statements } = yield* noting
        const schema = yield* freshSchema
        const store = yield* Effect.provideService(SqlEffectStore.make({ schema }), SqlClient.SqlClient, client)
        const taken = () => statements.splice(0).length
        taken()
        const reply = yield* claim(store, "key")
        expect(taken()).toBe(1)
        yield* complete(store, "key", tokenOf(reply))
        expect(taken()).toBe(1)
        expect(yield* claim(store, "key")).toMatchObject({ _tag: "Recorded" })
        expect(taken()).toBe(1)
        const other = tokenOf(yield* claim(store, "other"))
        expect(yield* claim(store, "other")).toMatchObject({ _tag: "Held" })
        expect(taken()).toBe(2)
        yield* store.renew([{ key: "other", token: other, lease: 1 }])
        yield* store.release([{ key: "other", token: other, verdict: "clean", cleared: false }])
        expect(taken()).toBe(2)
        // what was released is taken over by a statement of its own
        expect(yield* claim(store, "other")).toMatchObject({ _tag: "Claimed", attempt: 2 })
        expect(taken()).toBe(2)
      }).pipe(Effect.scoped, Effect.provide(pool())))

    it.live("one round trip each way for the calls of one turn", () =>
      Effect.gen(function*() {
        const { client, statements } = yield* noting
        const schema = yield* freshSchema
        const store = yield* Effect.provideService(SqlEffectStore.make({ schema }), SqlClient.SqlClient, client)
        statements.length = 0
        const keys = Array.from({ length: 64 }, (_, index) => `key-${index}`)
        const apply = Effect.forEach(keys, (key) => applyOnce({ key, execute: Effect.succeed }), {
          concurrency: "unbounded"
        })
        expect(yield* Effect.provideService(apply, EffectStore, store)).toEqual(keys)
        expect(statements.splice(0).length).toBe(2)
        expect(yield* Effect.provideService(apply, EffectStore, store)).toEqual(keys)
        expect(statements.splice(0).length).toBe(1)
      }).pipe(Effect.scoped, Effect.provide(pool())))

    test.live(
      "a replay neither writes nor locks",
      Effect.gen(function*() {
        const { store, table } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        yield* recorded(store, "key")
        yield* recorded(store, "other")
        yield* claim(store, "held")
        // `xmax` is who locked the row; the next number of a transaction moves when one writes
        const state = Effect.map(
          sql.unsafe(
            `SELECT pg_snapshot_xmax(pg_current_snapshot())::text, string_agg(ctid || ' ' || xmin || ' ' || xmax, ',')
              FROM ${table}`
          ).values,
          ([row]) => row
        )
        const before = yield* state
        for (let turn = 0; turn < 20; turn++) {
          expect(yield* claim(store, "key")).toMatchObject({ _tag: "Recorded" })
          expect(yield* claim(store, "held")).toMatchObject({ _tag: "Held" })
          expect(yield* store.claim(["key", "other", "held"].map((key) => request(key)))).toMatchObject([
            { _tag: "Recorded" },
            { _tag: "Recorded" },
            { _tag: "Held" }
          ])
        }
        expect(yield* state).toEqual(before)
      })
    )

    test.live(
      "indexes serve the lists of a run and of open keys, and prune",
      Effect.gen(function*() {
        const { table } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        const planOf = (query: string) =>
          sql.withTransaction(
            Effect.andThen(
              sql.unsafe("SET LOCAL enable_seqscan = off"),
              Effect.map(sql.unsafe(`EXPLAIN ${query}`).values, (rows) => rows.flat().join("\n"))
            )
          )
        const order = "ORDER BY created_at, id LIMIT 100"
        expect(yield* planOf(`SELECT * FROM ${table} WHERE left(run_id, 64) = 'r' AND run_id = 'r' ${order}`))
          .toContain("chamvi_effect_run")
        expect(yield* planOf(`SELECT * FROM ${table} WHERE doubt = 'inDoubt' AND status <> 'recorded' ${order}`))
          .toContain("chamvi_effect_open")
        expect(yield* planOf(`SELECT * FROM ${table} WHERE status = 'held' ${order}`)).toContain("chamvi_effect_open")
        expect(yield* planOf(`SELECT * FROM ${table} WHERE created_at < 5 ${order}`)).toContain("chamvi_effect_created")
      })
    )
  })

  describe("transactions", () => {
    test.live(
      "the caller's transaction has no part in what the store writes",
      Effect.gen(function*() {
        const { store } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        yield* Effect.exit(sql.withTransaction(Effect.andThen(recorded(store, "key"), Effect.fail("rolled back"))))
        expect(yield* claim(store, "key")).toMatchObject({ _tag: "Recorded" })
      })
    )

    test.live(
      "tables that are made inside of a transaction stay when it is rolled back",
      Effect.gen(function*() {
        const schema = yield* freshSchema
        const sql = yield* SqlClient.SqlClient
        yield* Effect.exit(sql.withTransaction(
          Effect.andThen(Effect.scoped(SqlEffectStore.make({ schema })), Effect.fail("rolled back"))
        ))
        expect(yield* sql.unsafe("SELECT to_regclass($1) IS NOT NULL", [`${schema}.chamvi_effect`]).values)
          .toEqual([[true]])
      })
    )

    it.live("an interrupted statement leaves the pool as it was", () =>
      Effect.gen(function*() {
        const { store, table } = yield* ledger()
        yield* recorded(store, "other")
        const token = tokenOf(yield* claim(store, "key"))
        // another connection holds the row, so that the record has to wait
        yield* Effect.gen(function*() {
          const other = yield* SqlClient.SqlClient
          yield* other.withTransaction(Effect.gen(function*() {
            yield* other.unsafe(`SELECT * FROM ${table} FOR UPDATE`)
            const waiting = yield* Effect.forkScoped(complete(store, "key", token), { startImmediately: true })
            yield* Effect.sleep(100)
            expect(waiting.pollUnsafe()).toBe(undefined)
            yield* Fiber.interrupt(waiting)
            // the pool has one connection
            expect(yield* claim(store, "other")).toMatchObject({ _tag: "Recorded" })
          }))
        }).pipe(Effect.scoped, Effect.provide(pool()))
        expect(yield* complete(store, "key", token)).toBe("ok")
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 1 }))))

    it.live("a client without prepared statements, as for an old pooler, is no trouble", () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        yield* recorded(store, "key")
        expect(yield* store.claim([request("key"), request("other")])).toMatchObject([
          { _tag: "Recorded" },
          { _tag: "Claimed" }
        ])
      }).pipe(Effect.scoped, Effect.provide(pool({ prepare: false }))))

    it.live("a client whose statements share connections is no trouble", () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => `key-${index}`),
          (key) => recorded(store, key),
          { concurrency: "unbounded" }
        )
        expect((yield* Stream.runCollect(store.list({ status: "recorded" }))).length).toBe(50)
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 2, multiplex: true }))))

    it.live("prepared statements that a pooler lost are prepared anew", () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        for (let turn = 0; turn < 3; turn++) {
          yield* recorded(store, `key-${turn}`)
          yield* sql`DEALLOCATE ALL`
          expect(yield* claim(store, `key-${turn}`)).toMatchObject({ _tag: "Recorded" })
        }
      }).pipe(Effect.scoped, Effect.provide(pool({ maxConnections: 1 }))))

    it.live("a database whose transactions are serializable by default is no trouble", () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        const replies = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => `key-${index % 5}`),
          (key) => claim(store, key),
          { concurrency: "unbounded" }
        )
        expect(replies.filter(({ _tag }) => _tag === "Claimed").length).toBe(5)
      }).pipe(
        Effect.scoped,
        Effect.provide(
          pool({ maxConnections: 16, startupParameters: { default_transaction_isolation: "serializable" } })
        )
      ))
  })

  describe("names", () => {
    const names = [`it's "odd"; DROP TABLE x --`, "Größe", "select", "\\", "$1", "%s", "x".repeat(48)]
    for (const name of names) {
      test.live(
        `the table and the schema may be called ${name}`,
        Effect.gen(function*() {
          const schema = yield* freshSchema
          const { store } = yield* ledger({ table: name })
          yield* recorded(store, name)
          expect(yield* claim(store, name)).toMatchObject({ _tag: "Recorded" })
          const odd = yield* SqlEffectStore.make({ schema: `${schema}${name}`.slice(0, 40) })
          yield* Effect.addFinalizer(() =>
            Effect.flatMap(
              SqlClient.SqlClient,
              (sql) => Effect.orDie(sql`DROP SCHEMA ${sql(`${schema}${name}`.slice(0, 40))} CASCADE`)
            )
          )
          yield* recorded(odd, name)
          expect((yield* Stream.runCollect(odd.list())).length).toBe(1)
        }).pipe(Effect.scoped)
      )
    }

    const refused = ["", " ", "a.b", "a\u0000b", "a\nb", "\ud800", "x".repeat(49), "ä".repeat(25)]
    for (const name of refused) {
      test.live(
        `${JSON.stringify(name)} is refused as the table's name`,
        Effect.gen(function*() {
          const error = yield* Effect.flip(SqlEffectStore.make({ table: name }))
          expect(error).toMatchObject({ _tag: "EffectStoreError", permanent: true })
          expect(error.message).toContain("the option table")
        })
      )
    }

    test.live(
      "two tables in one database are two ledgers",
      Effect.gen(function*() {
        const schema = yield* freshSchema
        const one = yield* SqlEffectStore.make({ schema, table: "one" })
        const two = yield* SqlEffectStore.make({ schema, table: "two" })
        yield* recorded(one, "key")
        expect(yield* claim(two, "key")).toMatchObject({ _tag: "Claimed" })
      })
    )

    test.live(
      "options come from a program's configuration",
      Effect.gen(function*() {
        const schema = yield* freshSchema
        const sql = yield* SqlClient.SqlClient
        const Ledger = SqlEffectStore.layerConfig({ schema: Config.String("SCHEMA"), table: Config.String("TABLE") })
        yield* Effect.provide(
          Effect.flatMap(EffectStore, (store) => recorded(store, "key")),
          Layer.provide(Ledger, ConfigProvider.layer(ConfigProvider.fromUnknown({ SCHEMA: schema, TABLE: "mine" })))
        )
        expect(yield* sql.unsafe(`SELECT key FROM "${schema}".mine`).values).toEqual([["key"]])
      })
    )
  })

  describe("texts", () => {
    const odd = {
      "a NUL": "a\u0000b",
      "the escape of a NUL": "a\u00010b",
      "a lone surrogate": "a\ud800b",
      "another lone surrogate": "a\udfffb",
      "64 kilobytes": "ä".repeat(32_768),
      "words of SQL": `'; DROP TABLE chamvi_effect; --`
    }
    test.live(
      "any string is a key of its own, and comes back as it was",
      Effect.gen(function*() {
        const { store } = yield* ledger()
        const keys = Object.values(odd)
        const replies = yield* store.claim(keys.map((key) => ({ ...request(key), tool: key, runId: key, owner: key })))
        expect(replies.map(({ _tag }) => _tag)).toEqual(keys.map(() => "Claimed"))
        const done = yield* store.complete(keys.map((key, index) => item(key, tokenOf(replies[index]!), key)))
        expect(done).toEqual(keys.map(() => "ok"))
        for (const key of keys) {
          expect(yield* store.get(key)).toMatchObject({ key, tool: key, runId: key, owner: key, result: key })
          expect((yield* Stream.runCollect(store.list({ runId: key, tool: key }))).map((row) => row.key)).toEqual([key])
        }
      })
    )

    it.live("a result that the client could not read again is refused, and no other with it", () =>
      Effect.gen(function*() {
        const { store } = yield* ledger()
        const one = tokenOf(yield* claim(store, "one"))
        const large = tokenOf(yield* claim(store, "large"))
        const error = yield* Effect.flip(store.complete([
          item("one", one),
          item("large", large, "x".repeat(1_000_000))
        ]))
        expect(error).toMatchObject({ _tag: "EffectStoreError", key: "large" })
        expect(error.message).toContain("maxMessageSize")
        expect(yield* complete(store, "one", one)).toBe("ok")
        expect(yield* claim(store, "large")).toMatchObject({ _tag: "Held" })
      }).pipe(Effect.scoped, Effect.provide(pool({ maxMessageSize: 1_000_000 }))))
  })

  describe("rows that cannot be read", () => {
    const broken = {
      "an unknown status": "status = 'paused'",
      "an unknown doubt": "status = 'released', doubt = 'perhaps'",
      "an unknown outcome": "status = 'recorded', result = '{}', outcome = 'guessed'",
      "no result": "status = 'recorded', outcome = 'executed'",
      "another key": "key = 'other'"
    }
    for (const [what, change] of Object.entries(broken)) {
      test.live(
        `a row with ${what} is never taken for an absent one`,
        Effect.gen(function*() {
          const { store, table } = yield* ledger()
          const sql = yield* SqlClient.SqlClient
          yield* claim(store, "key", { lease: 0 })
          yield* sql.unsafe(`UPDATE ${table} SET ${change}`)
          expect(yield* claim(store, "key")).toMatchObject({ _tag: "Unreadable", tool: "tool" })
          expect(yield* store.claim([request("key"), request("fresh")])).toMatchObject([
            { _tag: "Unreadable" },
            { _tag: "Claimed" }
          ])
          expect(yield* Effect.flip(store.get("key"))).toMatchObject({ _tag: "EffectRecordError", key: "key" })
          expect(yield* store.remove("key")).toBe(true)
          expect(yield* claim(store, "key")).toMatchObject({ _tag: "Claimed" })
        })
      )
    }

    test.live(
      "tokens do not come back after rows are deleted by hand",
      Effect.gen(function*() {
        const { store, table } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        const first = tokenOf(yield* claim(store, "key", { lease: 0 }))
        yield* store.resolve("key", EffectResolution.notApplied)
        const second = tokenOf(yield* claim(store, "key"))
        yield* sql.unsafe(`TRUNCATE ${table}`)
        const third = tokenOf(yield* claim(store, "key"))
        expect(first).toBeLessThan(second)
        expect(second).toBeLessThan(third)
        expect(yield* complete(store, "key", second)).toBe("lost")
      })
    )

    test.live(
      "tables of a newer version are refused when the store opens",
      Effect.gen(function*() {
        const { schema } = yield* ledger()
        const sql = yield* SqlClient.SqlClient
        yield* sql.unsafe(`INSERT INTO "${schema}".chamvi_effect_migrations (migration_id, name) VALUES (99, 'future')`)
        const error = yield* Effect.flip(SqlEffectStore.make({ schema }))
        expect(error).toMatchObject({ _tag: "EffectStoreError", permanent: true })
        expect(error.message).toContain("newer than this version")
      })
    )

    test.live(
      "a ledger that is there is opened without writing",
      Effect.gen(function*() {
        const { schema, store } = yield* ledger()
        yield* recorded(store, "key")
        const result = yield* Effect.provide(
          Effect.scoped(
            Effect.flatMap(SqlEffectStore.make({ schema }), (store) => Stream.runCollect(store.list()))
          ),
          pool({ startupParameters: { default_transaction_read_only: "on" } })
        )
        expect(result.map(({ key }) => key)).toEqual(["key"])
      })
    )
  })
})
