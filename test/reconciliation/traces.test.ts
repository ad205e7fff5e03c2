/**
 * What a call leaves behind: in its event when it fails, and in the ledger of its input.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectOutcomeUnknownError, EffectStore, type IEffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Effect, Fiber, Layer, Stream } from "effect"
import { SqlClient } from "effect/sql"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { call, failureOf, fork, memory, withEvents } from "./support.ts"

describe("EffectEvent", () => {
  it.effect("the event and the span of a failed call name what it failed with", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const failures: ReadonlyArray<readonly [name: string | undefined, execute: () => unknown]> = [
        ["Down", () => Effect.fail({ _tag: "Down", secret: "s3cret" })],
        ["EffectOutcomeUnknownError", () => Effect.fail(new EffectOutcomeUnknownError({ cause: new Error("s3cret") }))],
        ["TypeError", () => Effect.die(new TypeError("s3cret"))],
        ["string", () => Effect.fail("s3cret")],
        [undefined, () => Effect.interrupt],
        [undefined, () => Effect.succeed("s3cret")]
      ]
      for (const [name, execute] of failures) {
        const attributes = yield* Effect.gen(function*() {
          yield* Effect.exit(call(store, { execute }))
          return (yield* Effect.currentSpan).attributes
        }).pipe(Effect.withSpan("caller"), withEvents(events))
        const said = [events.at(-1)!.error, attributes.get("chamvi.effect.error")]
        assert.deepStrictEqual(said, [name, name])
        assert.notInclude(JSON.stringify([events.at(-1), [...attributes]]), "s3cret")
      }
      yield* withEvents(events)(failureOf(call(store, { tool: "u" })))
      assert.strictEqual(events.at(-1)?.error, "EffectKeyConflictError")
    }))
})

/** Rows of every kind, each of a call with this input. */
const leaveRows = Effect.fnUntraced(function*(store: IEffectStore, input: unknown) {
  yield* call(store, { key: "recorded", input })
  yield* call(store, { key: "reconciled", input, alreadyApplied: () => "found" })
  yield* failureOf(call(store, { key: "tried", input, execute: () => Effect.fail("no") }))
  yield* Fiber.interrupt(yield* fork(call(store, { key: "in doubt", input, execute: () => Effect.never })))
  return yield* fork(call(store, { key: "held", input, execute: () => Effect.never }))
})

describe("The ledger", () => {
  const input = { card: "4111-1111", note: ["private"] }

  it.effect("holds nothing of an input but its fingerprint", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      const holder = yield* leaveRows(store, input)
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`SELECT * FROM chamvi_effect`
      assert.lengthOf(rows, 5)
      assert.notMatch(JSON.stringify(rows), /4111-1111|private|card|note/)
      const kept = yield* memory
      const keeper = yield* leaveRows(kept, input)
      const records = yield* Stream.runCollect(kept.list())
      assert.lengthOf(records, 5)
      assert.notMatch(JSON.stringify(records), /4111-1111|private|card|note/)
      yield* Fiber.interruptAll([holder, keeper])
    }).pipe(
      Effect.provide(Layer.provideMerge(SqlEffectStore.layer(), SqliteClient.layer({ filename: ":memory:" })))
    ))
})
