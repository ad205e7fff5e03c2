/**
 * Where transactional calls, and calls inside of them, may stand.
 */
import { assert, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { call, failsWith, failureOf, fork, memory, turns } from "../reconciliation/support.ts"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { type InWorld, notesOf, transactional, untouched, write } from "./world.ts"

export const nestingCases = (inWorld: InWorld): void => {
  it.live(
    "lets no other effect run inside of it, on any store",
    inWorld((world) =>
      Effect.gen(function*() {
        const { store } = world
        const elsewhere = yield* memory
        const inner = { key: "inner", tool: "label", execute: () => Effect.die("it ran") }
        for (
          const nested of [
            call(store, inner),
            call(elsewhere, inner),
            transactional(store, inner),
            Effect.promise(() => Effect.runPromise(failureOf(call(elsewhere, inner)))).pipe(
              Effect.flatMap(Effect.fail)
            )
          ]
        ) {
          const error = yield* failsWith(
            transactional(store, { execute: () => Effect.andThen(write(world, "half"), nested) }),
            "EffectNestedError"
          )
          assert.deepInclude({ ...error }, { key: "inner", tool: "label", outerKey: "k" })
          yield* untouched(world)
          assert.isUndefined(yield* store.get("inner"))
          assert.isUndefined(yield* elsewhere.get("inner"))
        }
        const asked = transactional(store, { alreadyApplied: () => call(elsewhere, inner) })
        yield* failsWith(asked, "EffectNestedError")
        yield* untouched(world)
      })
    )
  )

  it.live(
    "lets none that is under way be joined inside of it",
    inWorld((world) =>
      Effect.gen(function*() {
        const elsewhere = yield* memory
        const gate = yield* Deferred.make<string>()
        const running = yield* fork(call(elsewhere, { key: "inner", execute: () => Deferred.await(gate) }))
        yield* turns
        yield* failsWith(
          transactional(world.store, { execute: () => call(elsewhere, { key: "inner" }) }),
          "EffectNestedError"
        )
        yield* Deferred.succeed(gate, "done")
        assert.strictEqual(yield* Fiber.join(running), "done")
      })
    )
  )

  it.live(
    "may have others after it, also from a fiber that outlives it",
    inWorld((world) =>
      Effect.gen(function*() {
        const elsewhere = yield* memory
        const gate = yield* Deferred.make<void>()
        const later = Effect.andThen(Deferred.await(gate), call(elsewhere, { key: "later" }))
        let fiber: Fiber.Fiber<unknown, unknown> | undefined
        const execute = () =>
          Effect.map(Effect.forkDetach(later), (forked) => {
            fiber = forked
            return "done"
          })
        yield* transactional(world.store, { execute })
        yield* Deferred.succeed(gate, undefined)
        assert.strictEqual(yield* Fiber.join(fiber!), "done")
      })
    )
  )

  it.live(
    "may run inside of an effect that is not transactional",
    inWorld((world) =>
      Effect.gen(function*() {
        const elsewhere = yield* memory
        const outer = call(elsewhere, {
          key: "outer",
          execute: () => transactional(world.store, { execute: () => write(world, "inner") })
        })
        assert.strictEqual(yield* outer, "inner")
        assert.deepStrictEqual(yield* notesOf(world), ["inner"])
      })
    )
  )

  it.live(
    "does not run in a transaction of its caller's",
    inWorld((world) =>
      Effect.gen(function*() {
        const { sql, store } = world
        const error = yield* failsWith(
          sql.withTransaction(transactional(store, { execute: () => write(world, "inside") })),
          "EffectNestedError"
        )
        assert.deepStrictEqual([error["key"], error["outerKey"]], ["k", undefined])
        yield* untouched(world)
      })
    )
  )

  it.live(
    "does not run for a program whose client is another one than the ledger's",
    inWorld((world) =>
      Effect.gen(function*() {
        const strange = yield* SqliteClient.make({ filename: ":memory:" })
        const execute = () => write(world, "elsewhere")
        const error = yield* failsWith(
          Effect.provideService(transactional(world.store, { execute }), SqlClient.SqlClient, strange),
          "EffectStoreError"
        )
        assert.include(error["message"], "not the one that the ledger was made with")
        assert.deepInclude({ ...error }, { operation: "begin a transaction", key: "k", permanent: true })
        yield* untouched(world)
        yield* Effect.provideService(transactional(world.store, { execute }), SqlClient.SqlClient, world.sql)
        assert.deepStrictEqual(yield* notesOf(world), ["elsewhere"])
      })
    )
  )
}
