/**
 * Transactional effects over a store in trouble: what does not commit has not happened, and what has is found.
 */
import { assert, describe, it } from "@effect/vitest"
import { FaultyStore } from "chamvi-effect/testing"
import { Effect, Exit } from "effect"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { failsWith } from "../reconciliation/support.ts"
import { notesOf, transactional, worldOf, write } from "../transactional/world.ts"

const seeds = Array.from({ length: 40 }, (_, seed) => seed)

describe("transactional effects on faulty stores", () => {
  it.live(
    "are written once at most, and found by whoever asks again",
    () =>
      Effect.forEach(seeds, (seed) =>
        Effect.gen(function*() {
          const sql = yield* SqliteClient.make({ filename: ":memory:" })
          yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
          const world = yield* worldOf(sql, {})
          const { faulty, store } = yield* FaultyStore.decorate(world.store, {
            seed,
            rate: 0.5,
            faults: ["fail", "loseReply", "comeLate", "die", "dieAfter"],
            operations: ["claim", "complete", "transaction"],
            stall: 1
          })
          let run = 0
          const call = transactional(store, { execute: () => write(world, `note ${++run}`) })
          for (let asked = 0; asked < 8; asked++) {
            if (asked === 7) yield* faulty.mend
            const exit = yield* Effect.exit(call)
            const notes = yield* notesOf(world)
            assert.isAtMost(notes.length, 1)
            if (Exit.isSuccess(exit)) assert.deepStrictEqual(notes, [exit.value])
            else assert.isBelow(asked, 7, String(exit.cause))
          }
          assert.isNotEmpty(yield* faulty.report)
        }).pipe(Effect.scoped), { discard: true }),
    60_000
  )

  it.live("fail with the store's error where a step does, and are rolled back", () =>
    Effect.gen(function*() {
      const sql = yield* SqliteClient.make({ filename: ":memory:" })
      yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
      const world = yield* worldOf(sql, {})
      const { faulty, store } = yield* FaultyStore.decorate(world.store, {
        plan: [
          { operation: "complete", nth: 1, fault: "comeLate" },
          { operation: "complete", nth: 2, fault: "loseReply" },
          { operation: "transaction", nth: 3, fault: "loseReply" }
        ],
        stall: 0
      })
      const call = transactional(store, { execute: () => write(world, "note") })
      for (const left of [[], [], ["note"]]) {
        yield* failsWith(call, "EffectStoreError")
        assert.deepStrictEqual(yield* notesOf(world), left)
      }
      assert.strictEqual(yield* call, "note")
      assert.deepStrictEqual((yield* faulty.report).map(({ fault, operation }) => `${operation}: ${fault}`), [
        "complete: comeLate",
        "complete: loseReply",
        "transaction: loseReply"
      ])
    }).pipe(Effect.scoped))
})
