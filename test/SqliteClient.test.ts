import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { DatabaseSync } from "node:sqlite"
import * as SqliteClient from "../src/SqliteClient.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const inMemory = SqliteClient.layer({ filename: ":memory:" })

const table = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`CREATE TABLE t (id INTEGER PRIMARY KEY, v ANY UNIQUE)`)

describe("SqliteClient", () => {
  it.effect("binds and reads every kind of value", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const bytes = new Uint8Array([0, 1, 255])
      const values = [1, 1.5, "text", null, undefined, true, false, bytes, new Date(0), 2n ** 60n - 2n ** 60n]
      const rows = yield* Effect.forEach(values, (value) => sql<{ v: unknown }>`SELECT ${value as never} AS v`)
      expect(rows.map(([row]) => row?.v)).toEqual(
        [1, 1.5, "text", null, null, 1, 0, bytes, "1970-01-01T00:00:00.000Z", 0]
      )
    }).pipe(Effect.provide(inMemory)))

  it.effect("reads large integers where the program asks for BigInts, and fails instead of rounding", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const read = sql<{ v: bigint }>`SELECT 9007199254740993 AS v`
      expect(yield* Effect.provideService(read, SqlClient.SafeIntegers, true)).toEqual([{ v: 9007199254740993n }])
      expect(Exit.isFailure(yield* Effect.exit(read))).toBe(true)
      expect(yield* sql`SELECT 1 AS v`).toEqual([{ v: 1 }])
    }).pipe(Effect.provide(inMemory)))

  it.effect("the forms of a statement do not disturb each other", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* table
      expect(yield* sql`INSERT INTO t (v) VALUES ('a')`.raw).toMatchObject({ changes: 1 })
      const statement = sql`SELECT v FROM t`
      for (let round = 0; round < 2; round++) {
        expect(yield* statement).toEqual([{ v: "a" }])
        expect(yield* statement.values).toEqual([["a"]])
        expect(yield* statement.unprepared).toEqual([{ v: "a" }])
        expect(yield* Stream.runCollect(statement.stream)).toEqual([{ v: "a" }])
      }
    }).pipe(Effect.provide(inMemory)))

  it.effect("a transaction commits or rolls back whole, nested ones too", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* table
      yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`INSERT INTO t (v) VALUES ('kept')`
        yield* Effect.exit(sql.withTransaction(
          Effect.andThen(sql`INSERT INTO t (v) VALUES ('inner')`, Effect.fail("no"))
        ))
      }))
      yield* Effect.exit(sql.withTransaction(
        Effect.andThen(sql`INSERT INTO t (v) VALUES ('outer')`, Effect.fail("no"))
      ))
      expect(yield* sql`SELECT v FROM t`).toEqual([{ v: "kept" }])
    }).pipe(Effect.provide(inMemory)))

  it.live("a statement of another fiber waits for an open transaction", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* table
      const transaction = yield* Effect.forkChild(
        sql.withTransaction(Effect.andThen(sql`INSERT INTO t (v) VALUES (1)`, Effect.sleep(50))),
        { startImmediately: true }
      )
      expect(yield* sql`SELECT v FROM t`).toEqual([{ v: 1 }])
      expect(transaction.pollUnsafe()).not.toBe(undefined)
      yield* Fiber.join(transaction)
    }).pipe(Effect.provide(inMemory)))

  it.effect("errors are classified", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* table
      yield* sql`INSERT INTO t (v) VALUES (1)`
      const reason = (statement: string) => Effect.map(Effect.flip(sql.unsafe(statement)), (error) => error.reason._tag)
      expect(yield* reason("INSERT INTO t (v) VALUES (1)")).toBe("UniqueViolation")
      expect(yield* reason("INSERT INTO t (id) VALUES ('x')")).toBe("UnknownError")
      expect(yield* reason("nonsense")).toBe("UnknownError")
      const missing = SqliteClient.layer({ filename: `${yield* temporaryDirectory}/no/such.sqlite` })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(missing)))
      expect(error.reason._tag).toBe("ConnectionError")
    }).pipe(Effect.provide(inMemory)))

  it.effect("a file is in WAL mode, flushed as its mode says, and locked out by another writer", () =>
    Effect.gen(function*() {
      const filename = `${yield* temporaryDirectory}/a.sqlite`
      for (const [mode, synchronous] of [["durable", 2], ["fast", 1]] as const) {
        yield* Effect.gen(function*() {
          const sql = yield* SqlClient.SqlClient
          expect(yield* sql`PRAGMA journal_mode`).toEqual([{ journal_mode: "wal" }])
          expect(yield* sql`PRAGMA synchronous`).toEqual([{ synchronous }])
          const other = new DatabaseSync(filename)
          other.exec("BEGIN IMMEDIATE")
          const error = yield* Effect.flip(sql.withTransaction(sql`SELECT 1`))
          expect(error.reason._tag).toBe("LockTimeoutError")
          other.close()
          expect(yield* sql.withTransaction(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }])
        }).pipe(Effect.provide(SqliteClient.layer({ filename, mode, busyTimeout: 20 })))
      }
    }))
})
