/**
 * What a transactional call does that its callers left, or that its store stops.
 */
import { assert, describe, it } from "@effect/vitest"
import type { EffectEvent } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import { own } from "../../src/store/lifetime.ts"
import { hindered } from "../transactional/hindered.ts"
import { transactional } from "../transactional/world.ts"
import { assertIdle, call, counting, ended, fork, gated, memory, told, turns, withEvents, withLogs } from "./support.ts"

describe("A transactional call", () => {
  for (const point of ["begin", "claim"] as const) {
    it.effect(`may be left at once before its ${point} is answered, and then does nothing`, () =>
      Effect.gen(function*() {
        const gate = yield* Deferred.make<void>()
        // a wait that cannot be cut
        const { seen, store } = hindered(yield* memory, { [point]: Effect.uninterruptible(Deferred.await(gate)) })
        const hook = counting()
        const events: Array<EffectEvent> = []
        const fiber = yield* fork(withEvents(events)(transactional(store, hook)))
        yield* turns
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(events.map(told), ["interrupted"])
        assert.strictEqual(registryOf(store).applications.size, 0)
        yield* Deferred.succeed(gate, undefined)
        yield* turns
        assert.deepStrictEqual([hook.runs, seen.at(-1)], [0, "rollback"])
        yield* assertIdle(store)
      }))
  }

  it.effect("does not begin for a caller who left while a release was due", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const gate = yield* Deferred.make<void>()
      const { seen, store } = hindered({
        ...base,
        release: (items) => Effect.andThen(Deferred.await(gate), base.release(items))
      })
      const failing = yield* fork(Effect.exit(call(store, { storeTimeout: 10, execute: () => Effect.fail("no") })))
      yield* TestClock.adjust(10)
      yield* Fiber.join(failing)
      const fiber = yield* fork(transactional(store))
      yield* turns
      yield* Fiber.interrupt(fiber)
      yield* Deferred.succeed(gate, undefined)
      yield* turns
      assert.deepStrictEqual(seen, [])
    }).pipe(withLogs([])))

  it.effect("asks for nothing where its last caller leaves while it begins, in the same turn", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const gate = yield* Deferred.make<void>()
      let leave = () => {}
      const { seen, store } = hindered({
        ...base,
        release: (items) => Effect.andThen(Deferred.await(gate), base.release(items))
      }, { begin: Effect.sync(() => leave()) })
      const failing = yield* fork(Effect.exit(call(store, { storeTimeout: 10, execute: () => Effect.fail("no") })))
      yield* TestClock.adjust(10)
      yield* Fiber.join(failing)
      const fiber = yield* fork(transactional(store))
      yield* turns
      leave = () => fiber.interruptUnsafe()
      yield* Deferred.succeed(gate, undefined)
      yield* turns
      assert.deepStrictEqual(seen, ["begin", "rollback"])
      yield* assertIdle(store)
    }).pipe(withLogs([])))

  it.effect("waits for the rollback where its last caller leaves in execute", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { seen, store } = hindered(yield* memory, { rollback: Deferred.await(gate) })
      const hook = gated()
      const fiber = yield* fork(transactional(store, hook))
      yield* hook.entered
      const leaving = yield* fork(Fiber.interrupt(fiber))
      yield* turns
      assert.isFalse(ended(leaving))
      const next = yield* fork(transactional(store))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(leaving)
      assert.strictEqual(yield* Fiber.join(next), "done")
      assert.strictEqual(hook.cut, 1)
      assert.deepStrictEqual(seen, ["begin", "claim", "rollback", "begin", "claim", "commit"])
    }))

  it.effect("commits, and is waited for, where its last caller leaves during the commit", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { seen, store } = hindered(yield* memory, { commit: Deferred.await(gate) })
      const leaving = yield* Effect.flatMap(fork(transactional(store)), (fiber) => fork(Fiber.interrupt(fiber)))
      yield* turns
      assert.isFalse(ended(leaving))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(leaving)
      assert.deepStrictEqual(seen, ["begin", "claim", "commit"])
      yield* assertIdle(store)
    }))

  it.effect("is stopped by the end of its store", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { seen, store } = hindered(yield* memory)
      yield* Scope.provide(own(store), scope)
      const hook = gated()
      const fiber = yield* fork(Effect.exit(transactional(store, hook)))
      yield* hook.entered
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(fiber)))
      assert.deepStrictEqual([hook.cut, seen.at(-1)], [1, "rollback"])
      yield* assertIdle(store)
    }))
})
