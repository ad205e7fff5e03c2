/**
 * A person's verdict on a key, given at any time: before, while and after somebody is at it.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectResolution, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  ended,
  failsWith,
  fork,
  gated,
  memory,
  told,
  turns,
  withEvents
} from "./support.ts"

const { applied, notApplied, unknown } = EffectResolution

const stateOf = (store: IEffectStore) => Effect.map(store.get("k"), (row) => `${row?.status} ${row?.doubt}`)

const leave = {
  inDoubt: (store: IEffectStore) => Effect.flatMap(fork(call(store, { execute: () => Effect.never })), Fiber.interrupt),
  tried: (store: IEffectStore) => failsWith(call(store, { execute: () => Effect.fail({ _tag: "No" }) }), "No"),
  none: (store: IEffectStore) => failsWith(call(store, { alreadyApplied: () => Effect.fail({ _tag: "No" }) }), "No")
}

describe("reconciliation", () => {
  it.effect("a key that nobody knows cannot be resolved", () =>
    Effect.gen(function*() {
      const store = yield* memory
      assert.strictEqual(yield* store.resolve("k", applied("x")), "missing")
      assert.strictEqual(yield* call(store), "done")
    }))

  it.effect("a released key takes any verdict", () =>
    Effect.gen(function*() {
      for (const [doubt, leaveIt] of Object.entries(leave)) {
        const store = yield* memory
        const hook = counting()
        const failing = { whenInDoubt: "fail", execute: hook.execute } as const
        yield* leaveIt(store)
        assert.strictEqual(yield* stateOf(store), `released ${doubt}`)
        assert.strictEqual(yield* store.resolve("k", unknown), "ok")
        yield* failsWith(call(store, failing), "EffectInDoubtError")
        assert.strictEqual(yield* store.resolve("k", notApplied), "ok")
        assert.strictEqual(yield* stateOf(store), "released none")
        yield* leaveIt(store)
        assert.strictEqual(yield* store.resolve("k", applied({ by: "hand" })), "ok")
        assert.deepStrictEqual(yield* call(store, failing), { by: "hand" })
        assert.deepStrictEqual(yield* call(anotherProcess(store), { alreadyApplied: hook.execute }), { by: "hand" })
        assert.strictEqual(hook.runs, 0)
      }
    }))

  it.effect("notApplied lets the next call apply, without a word of doubt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* leave.inDoubt(store)
      yield* store.resolve("k", notApplied)
      const events: Array<EffectEvent> = []
      assert.strictEqual(yield* withEvents(events)(call(store, { whenInDoubt: "fail" })), "done")
      assert.deepStrictEqual(events.map(told), ["executed"])
    }))

  it.effect("applied without a result fails later calls, until there is one", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* leave.inDoubt(store)
      const hook = counting()
      assert.strictEqual(yield* store.resolve("k", applied()), "ok")
      yield* failsWith(call(store, { execute: hook.execute }), "EffectResultUnavailableError")
      assert.strictEqual(yield* store.resolve("k", applied(undefined)), "ok")
      assert.isUndefined(yield* call(store, { execute: hook.execute }))
      // a result is never overwritten
      assert.strictEqual(yield* store.resolve("k", applied("other")), "recorded")
      assert.isUndefined(yield* call(store, { execute: hook.execute }))
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("a record is never overwritten, whatever the verdict", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* call(store)
      for (const verdict of [applied("other"), applied(), notApplied, unknown]) {
        assert.strictEqual(yield* store.resolve("k", verdict), "recorded")
      }
      assert.strictEqual(yield* call(store), "done")
    }))

  it.effect("a key that a live process holds is left alone, and those who wait for it too", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const waiter = yield* fork(call(anotherProcess(store)))
      for (const verdict of [applied("other"), notApplied, unknown]) {
        assert.strictEqual(yield* store.resolve("k", verdict), "held")
      }
      yield* turns
      assert.isFalse(ended(holder) || ended(waiter))
      yield* hook.open("mine")
      assert.deepStrictEqual([yield* Fiber.join(holder), yield* Fiber.join(waiter)], ["mine", "mine"])
    }))

  it.effect("a verdict on a key whose holder is frozen wakes who waits, and the holder finds its claim lost", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const frozen: IEffectStore = { ...anotherProcess(store), renew: () => Effect.never }
      const hook = gated()
      const events: Array<EffectEvent> = []
      const holder = yield* fork(withEvents(events)(call(frozen, { lease: 5000, execute: hook.execute })))
      yield* TestClock.adjust(4999)
      assert.strictEqual(yield* store.resolve("k", applied("by hand")), "held")
      // no other process claims at the end of the lease: the person is first
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* store.resolve("k", applied("by hand")), "ok")
      const waiter = yield* fork(call(store))
      assert.strictEqual(yield* Fiber.join(waiter), "by hand")
      yield* hook.open("mine")
      assert.strictEqual(yield* Fiber.join(holder), "by hand")
      assert.deepStrictEqual(events.map(told), ["recorded claimLost"])
    }))

  it.effect("a verdict between two turns is what the next waiter finds", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const hook = gated()
      const holder = yield* fork(call(base, { execute: hook.execute }))
      // the person is quicker than the waiter, whom nobody wakes
      const silent: IEffectStore = { ...base, changes: () => base.changes("another key") }
      const later = counting()
      const waiter = yield* fork(call(silent, { execute: later.execute }))
      yield* turns
      yield* Fiber.interrupt(holder)
      assert.strictEqual(yield* base.resolve("k", applied("by hand")), "ok")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* Fiber.join(waiter), "by hand")
      assert.strictEqual(later.runs, 0)
    }))

  it.effect("a removed key is applied anew", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      for (let round = 1; round <= 3; round++) {
        yield* call(store, { execute: hook.execute })
        yield* call(anotherProcess(store), { execute: hook.execute })
        assert.strictEqual(hook.runs, round)
        assert.isTrue(yield* store.remove("k"))
      }
      assert.isFalse(yield* store.remove("k"))
    }))

  it.effect("removing a key in doubt forgets the doubt, and the tool that held it", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* leave.inDoubt(store)
      yield* store.remove("k")
      assert.strictEqual(yield* call(store, { tool: "u", whenInDoubt: "fail" }), "done")
    }))

  it.effect("removing a held key lets the next one in, and the holder keeps its own result", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const other = anotherProcess(store)
      const [first, second] = [gated(), gated()]
      const events: Array<EffectEvent> = []
      const holder = yield* fork(withEvents(events)(call(store, { execute: first.execute })))
      const waiter = yield* fork(call(other, { execute: second.execute }))
      yield* turns
      yield* store.remove("k")
      yield* turns
      assert.strictEqual(second.runs, 1)
      yield* first.open("mine")
      // the present claim is not the removed one's to complete
      assert.strictEqual(yield* Fiber.join(holder), "mine")
      assert.deepStrictEqual(events.map(told), ["executed claimLost"])
      yield* second.open("theirs")
      assert.strictEqual(yield* Fiber.join(waiter), "theirs")
      assert.strictEqual(yield* call(store), "theirs")
      yield* assertIdle(store, other)
    }))
})
