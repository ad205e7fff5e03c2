/**
 * Writes that share a commit: none of them may notice the others, but in time.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { DatabaseSync } from "node:sqlite"
import * as Database from "../../src/sqlite/database.ts"
import * as Executor from "../../src/sqlite/executor.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"

/** An executor on a new file with a table, what it did, and a second connection. */
const made = (eager: boolean) =>
  Effect.gen(function*() {
    const filename = `${yield* temporaryDirectory}/a.sqlite`
    const database = yield* Database.open({ filename, mode: "fast", busyTimeout: 20 })
    database.handle.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER UNIQUE) STRICT")
    const statements: Array<string> = []
    const spied: Database.Database = {
      ...database,
      valuesUnsafe: (sql, params) => {
        statements.push(sql.split(" ")[0]!)
        return database.valuesUnsafe(sql, params)
      }
    }
    const other = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (handle) => Effect.sync(() => handle.close())
    )
    const executor = Executor.grouped(spied, 2_000, eager)
    const insert = (value: unknown) =>
      executor.write({ sql: "INSERT INTO t (v) VALUES (?) RETURNING v", params: [value] })
    return {
      insert,
      statements,
      other,
      values: () => other.prepare("SELECT v FROM t ORDER BY id").all().map(({ v }) => v)
    }
  })

describe("grouped writes", () => {
  it.effect("a write alone is one plain statement", () =>
    Effect.gen(function*() {
      const { insert, statements } = yield* made(false)
      expect(yield* insert(1)).toEqual([[1]])
      expect(statements).toEqual(["INSERT"])
    }))

  it.effect("writes of one turn share a transaction, in their order", () =>
    Effect.gen(function*() {
      const { insert, statements, values } = yield* made(false)
      const answers = yield* Effect.forEach([3, 1, 2], insert, { concurrency: "unbounded" })
      expect(answers).toEqual([[[3]], [[1]], [[2]]])
      expect(statements).toEqual(["BEGIN", "INSERT", "INSERT", "INSERT", "COMMIT"])
      expect(values()).toEqual([3, 1, 2])
    }))

  it.effect("an eager first write goes at once, and those that follow share a transaction", () =>
    Effect.gen(function*() {
      const { insert, statements, values } = yield* made(true)
      yield* Effect.forEach([3, 1, 2], insert, { concurrency: "unbounded" })
      expect(statements).toEqual(["INSERT", "BEGIN", "INSERT", "INSERT", "COMMIT"])
      expect(values()).toEqual([3, 1, 2])
    }))

  it.effect("a statement that fails is undone alone", () =>
    Effect.gen(function*() {
      const { insert, values } = yield* made(false)
      const exits = yield* Effect.forEach([1, 1, 2, "x"], (value) => Effect.exit(insert(value)), {
        concurrency: "unbounded"
      })
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true, false])
      expect(values()).toEqual([1, 2])
    }))

  it.effect("a write whose caller left before the commit is not done", () =>
    Effect.gen(function*() {
      const { insert, values } = yield* made(false)
      const fibers = yield* Effect.forEach([1, 2, 3], (value) =>
        Effect.forkChild(insert(value), { startImmediately: true }))
      fibers[1]!.interruptUnsafe()
      expect(Exit.isSuccess(yield* Fiber.await(fibers[0]!))).toBe(true)
      yield* Fiber.await(fibers[2]!)
      expect(values()).toEqual([1, 3])
    }))

  it.effect("hundreds of writes in one turn are all done", () =>
    Effect.gen(function*() {
      const { insert, values } = yield* made(false)
      const all = Array.from({ length: 1_000 }, (_, index) => index)
      yield* Effect.forEach(all, insert, { concurrency: "unbounded", discard: true })
      expect(values()).toEqual(all)
    }))

  it.live("a group that meets another writer waits for it, and then is done whole", () =>
    Effect.gen(function*() {
      const { insert, other, values } = yield* made(false)
      other.exec("BEGIN IMMEDIATE; INSERT INTO t (v) VALUES (100)")
      yield* Effect.forkScoped(Effect.delay(Effect.sync(() => other.exec("COMMIT")), 200))
      const exits = yield* Effect.forEach([1, 100, 2], (value) => Effect.exit(insert(value)), {
        concurrency: "unbounded"
      })
      expect(exits.map(Exit.isSuccess)).toEqual([true, false, true])
      expect(values()).toEqual([100, 1, 2])
    }))
})
