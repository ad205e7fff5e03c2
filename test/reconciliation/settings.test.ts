/**
 * Where the settings of a call come from.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectSettings } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { anotherProcess, call, ended, failsWith, fork, gated, memory } from "./support.ts"

describe("EffectSettings", () => {
  it.effect("the defaults are those of the documentation", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* EffectSettings.Current, {
        whenInDoubt: "execute",
        onInputChange: "replay",
        lease: 30_000,
        waitFor: 60_000,
        storeTimeout: 10_000,
        recordTimeout: 10_000,
        largestResult: 1_048_576
      })
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      assert.strictEqual((yield* store.get("k"))?.leaseEnd, 30_000)
      const waiter = yield* fork(call(anotherProcess(store)))
      yield* TestClock.adjust(59_999)
      assert.isFalse(ended(waiter))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(waiter), "EffectInProgressError")
      yield* Fiber.interrupt(holder)
      assert.strictEqual(yield* call(store, { input: 1 }), "done")
      assert.strictEqual(yield* call(store, { input: 2 }), "done")
    }))

  it.effect("a tool's settings come before the others", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const leaseOf = (key: string, lease?: string) =>
        Effect.gen(function*() {
          const hook = gated()
          const fiber = yield* fork(
            call(store, { key, execute: hook.execute, ...(lease && { lease: lease as "1 second" }) })
          )
          const row = yield* store.get(key)
          yield* Fiber.interrupt(fiber)
          return row!.leaseEnd - row!.createdAt
        })
      assert.strictEqual(yield* leaseOf("a"), 30_000)
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* leaseOf("b"), 20_000)
        assert.strictEqual(yield* leaseOf("c", "1 second"), 1000)
        yield* Effect.gen(function*() {
          assert.strictEqual(yield* leaseOf("d"), 10_000)
          // what the inner layer does not say stays as the outer one said it
          yield* failsWith(call(store, { key: "b" }), "EffectInDoubtError")
          assert.strictEqual(yield* call(store, { key: "b", whenInDoubt: "execute" }), "done")
        }).pipe(Effect.provide(EffectSettings.layer({ lease: "10 seconds" })))
      }).pipe(Effect.provide(EffectSettings.layer({ lease: "20 seconds", whenInDoubt: "fail" })))
    }))

  it.effect("waits without an end are allowed", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const forever = "Infinity"
      const holder = yield* fork(
        call(store, { storeTimeout: forever, recordTimeout: forever, execute: hook.execute })
      )
      const waiter = yield* fork(call(anotherProcess(store), { waitFor: forever }))
      yield* TestClock.adjust("20 minutes")
      assert.isFalse(ended(holder) || ended(waiter))
      yield* hook.open("x")
      assert.deepStrictEqual([yield* Fiber.join(holder), yield* Fiber.join(waiter)], ["x", "x"])
    }))
})
