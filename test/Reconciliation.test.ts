import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectStore, EffectEvent, type IEffectStore } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

const once = (key: string, execute: () => Effect.Effect<unknown, unknown>) =>
  applyOnce({ key, execute: execute as () => Effect.Effect<string> })

describe("applyOnce", () => {
  it.effect("runs once and replays", () =>
    Effect.gen(function*() {
      let count = 0
      const call = once("k", () => Effect.sync(() => ++count))
      assert.strictEqual(yield* call, 1 as never)
      assert.strictEqual(yield* call, 1 as never)
      assert.strictEqual(count, 1)
    }).pipe(Effect.provide(EffectStore.layerMemory)))

  it.effect("joins", () =>
    Effect.gen(function*() {
      let count = 0
      const gate = yield* Deferred.make<void>()
      const call = once("k", () => Effect.andThen(Deferred.await(gate), Effect.sync(() => ++count)))
      const a = yield* Effect.forkChild(call, { startImmediately: true })
      const b = yield* Effect.forkChild(call, { startImmediately: true })
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(a), 1 as never)
      assert.strictEqual(yield* Fiber.join(b), 1 as never)
    }).pipe(Effect.provide(EffectStore.layerMemory)))

  it.effect("interrupts", () =>
    Effect.gen(function*() {
      let cleaned = false
      const call = once("k", () => Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => { cleaned = true }))))
      const a = yield* Effect.forkChild(call, { startImmediately: true })
      yield* Fiber.interrupt(a)
      assert.isTrue(cleaned)
      const store = yield* EffectStore
      const row = yield* store.get("k")
      assert.strictEqual(row?.doubt, "inDoubt")
      assert.strictEqual(row?.status, "released")
    }).pipe(Effect.provide(EffectStore.layerMemory)))

  it.effect("heartbeats", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const call = once("k", () => Effect.as(Deferred.await(gate), "x"))
      const a = yield* Effect.forkChild(call, { startImmediately: true })
      const store = yield* EffectStore
      yield* TestClock.adjust("5 minutes")
      const row = yield* store.get("k")
      assert.strictEqual(row?.leaseEnd, 330_000)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(a), "x")
    }).pipe(Effect.provide(EffectStore.layerMemory)))
})
