/**
 * Transactional calls on Postgres, where another process's call waits for the row.
 */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { call, ended, failsWith, fork } from "../reconciliation/support.ts"
import { databaseUrl, freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { transactionalCases } from "./cases.ts"
import { transactionalProcesses } from "./processes.ts"
import { notesOf, transactional, untouched, worldOf, write } from "./world.ts"

const open = (maxConnections = 6) =>
  Effect.gen(function*() {
    const schema = yield* freshSchema
    const context = yield* Layer.build(pool({ maxConnections, startupParameters: { search_path: schema } }))
    const sql = Context.get(context, SqlClient.SqlClient)
    yield* sql`CREATE SCHEMA ${sql(schema)}`
    yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
    return { ...(yield* worldOf(sql, {})), database: `${databaseUrl}#${schema}` }
  })

describe.skipIf(noPostgres)("A transactional call on Postgres", () => {
  transactionalCases(open())
})

transactionalProcesses("Postgres", !noPostgres, open())

/** An execute that writes and then waits. */
const holding = (world: Parameters<typeof write>[0]) => {
  const gate = Deferred.makeUnsafe<string, unknown>()
  const entered = Deferred.makeUnsafe<void>()
  return {
    gate,
    entered: Deferred.await(entered),
    execute: () =>
      Effect.andThen(write(world, "first"), Effect.andThen(Deferred.succeed(entered, undefined), Deferred.await(gate)))
  }
}

describe.skipIf(noPostgres)("A transactional call whose key another transaction has", () => {
  it.live("waits for its commit, and replays", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const held = holding(world)
      const first = yield* fork(transactional(world.store, held))
      yield* held.entered
      const second = yield* fork(transactional(world.another, { execute: () => Effect.die("it ran") }))
      yield* Effect.sleep(50)
      assert.isFalse(ended(second))
      yield* Deferred.succeed(held.gate, "done")
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["done", "done"])
      assert.deepStrictEqual(yield* notesOf(world), ["first"])
    })))

  it.live("waits for its rollback, and applies", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const held = holding(world)
      const first = yield* fork(Effect.flip(transactional(world.store, held)))
      yield* held.entered
      const second = yield* fork(transactional(world.another, { execute: () => write(world, "second") }))
      yield* Effect.sleep(50)
      assert.isFalse(ended(second))
      yield* Deferred.fail(held.gate, "no")
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["no", "second"])
      assert.deepStrictEqual(yield* notesOf(world), ["second"])
    })))

  it.live("waits for at most waitFor, and gives its connection back", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open(3)
      const held = holding(world)
      const first = yield* fork(transactional(world.store, held))
      yield* held.entered
      for (let turn = 0; turn < 3; turn++) {
        const error = yield* failsWith(transactional(world.another, { waitFor: 250 }), "EffectInProgressError")
        assert.deepInclude({ ...error }, { owner: "a transaction that has not ended", remaining: 0 })
      }
      yield* Deferred.succeed(held.gate, "done")
      assert.strictEqual(yield* Fiber.join(first), "done")
    })))

  it.live("is waited for by a call of another kind, too", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const held = holding(world)
      const first = yield* fork(transactional(world.store, held))
      yield* held.entered
      const second = yield* fork(call(world.another, { execute: () => Effect.die("it ran") }))
      yield* Effect.sleep(50)
      assert.isFalse(ended(second))
      yield* Deferred.succeed(held.gate, "done")
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["done", "done"])
    })))

  it.live("leaves at once when it is interrupted", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const held = holding(world)
      const first = yield* fork(transactional(world.store, held))
      yield* held.entered
      const second = yield* fork(transactional(world.another, { execute: () => write(world, "second") }))
      yield* Effect.sleep(50)
      yield* Fiber.interrupt(second)
      assert.isFalse(ended(first))
      yield* Deferred.fail(held.gate, "no")
      yield* Fiber.await(first)
      yield* untouched(world)
      yield* untouched({ ...world, store: world.another })
    })))
})

describe.skipIf(noPostgres)("A transactional call on Postgres", () => {
  it.live("needs one connection only", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open(1)
      const calls = Array.from({ length: 4 }, (_, index) =>
        transactional(world.store, { key: `key-${index}`, execute: () => write(world, `note-${index}`) }))
      yield* Effect.all(calls, { concurrency: "unbounded" })
      assert.strictEqual((yield* notesOf(world)).length, 4)
    })))

  it.live("fails where no connection comes within storeTimeout, and does nothing with one that comes later", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open(1)
      const connection = yield* Deferred.make<void>()
      const taken = yield* Deferred.make<void>()
      const holder = yield* fork(
        world.sql.withTransaction(Effect.andThen(Deferred.succeed(taken, undefined), Deferred.await(connection)))
      )
      yield* Deferred.await(taken)
      const error = yield* failsWith(
        transactional(world.store, { storeTimeout: 50, execute: () => write(world, "late") }),
        "EffectStoreError"
      )
      assert.deepInclude({ ...error }, { operation: "begin a transaction", problem: "no answer within 50 ms" })
      yield* Deferred.succeed(connection, undefined)
      yield* Fiber.join(holder)
      yield* untouched(world)
    })))

  it.live("cannot be recorded in a transaction that a swallowed error has broken, and is rolled back", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const execute = () =>
        Effect.andThen(write(world, "half"), Effect.exit(world.sql`SELECT no_such_function()`)).pipe(Effect.as("done"))
      const error = yield* failsWith(transactional(world.store, { execute }), "EffectStoreError")
      assert.strictEqual(error["operation"], "record")
      assert.include(error["message"], "execute was rolled back")
      yield* untouched(world)
    })))

  it.live("that the database refuses to commit is rolled back", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const { sql } = world
      yield* sql`CREATE TABLE parents (id INT PRIMARY KEY)`
      yield* sql`CREATE TABLE children (id INT REFERENCES parents DEFERRABLE INITIALLY DEFERRED)`
      const execute = () => Effect.andThen(write(world, "half"), sql`INSERT INTO children VALUES (1)`)
      const error = yield* failsWith(transactional(world.store, { execute }), "EffectStoreError")
      assert.strictEqual(error["operation"], "commit")
      assert.include(error["message"], "foreign key")
      assert.include(error["message"], "all was rolled back")
      yield* untouched(world)
    })))

  it.live("begins as the program says, and leaves its other transactions alone", () =>
    Effect.scoped(Effect.gen(function*() {
      const world = yield* open()
      const { sql } = world
      const execute = () => Effect.map(sql`SHOW transaction_isolation`, ([row]) => ({ ...row }))
      assert.deepStrictEqual(
        yield* Effect.provideService(
          transactional(world.store, { execute }),
          SqlClient.BeginTransaction,
          "BEGIN ISOLATION LEVEL SERIALIZABLE"
        ),
        { transaction_isolation: "serializable" }
      )
    })))
})
