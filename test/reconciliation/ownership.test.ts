/**
 * Whose an application is: callers come and go, it ends with its last one, and its value is never lost on the way.
 */
import { assert, describe, it } from "@effect/vitest"
import type { IEffectStore } from "chamvi-effect"
import { Deferred, Effect, Fiber, Latch } from "effect"
import { Application } from "../../src/reconciliation/Application.ts"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  ended,
  failsWith,
  fork,
  gated,
  isInterrupted,
  memory,
  turns,
  withLogs
} from "./support.ts"

/** A store whose claims wait at a latch, before or after they are granted. */
const claimingSlowly = (store: IEffectStore, when: "before" | "after") => {
  const latch = Latch.makeUnsafe()
  const claim: IEffectStore["claim"] = (requests) =>
    when === "before"
      ? Effect.andThen(latch.await, store.claim(requests))
      : Effect.tap(store.claim(requests), () => latch.await)
  return { latch, store: { ...store, claim } }
}

describe("reconciliation", () => {
  it.effect("a caller that leaves does not disturb the others", () =>
    Effect.gen(function*() {
      for (const leaver of [0, 1, 2]) {
        const store = yield* memory
        const hook = gated()
        const callers = yield* Effect.forEach([0, 1, 2], () => fork(call(store, { execute: hook.execute })))
        yield* Fiber.interrupt(callers[leaver]!)
        assert.isTrue(isInterrupted(yield* Fiber.await(callers[leaver]!)))
        yield* hook.open("x")
        for (const caller of callers) if (caller !== callers[leaver]) assert.strictEqual(yield* Fiber.join(caller), "x")
        assert.deepStrictEqual([hook.runs, hook.cut], [1, 0])
        yield* assertIdle(store)
      }
    }))

  it.effect("the last caller to leave interrupts execute and waits", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const finalizer = Latch.makeUnsafe()
      const execute = () => Effect.onInterrupt(Effect.never, () => finalizer.await)
      const first = yield* fork(call(store, { execute }))
      const second = yield* fork(call(store))
      const firstLeaves = yield* fork(Fiber.interrupt(first))
      assert.isTrue(ended(firstLeaves))
      const secondLeaves = yield* fork(Fiber.interrupt(second))
      yield* turns
      assert.isFalse(ended(secondLeaves))
      yield* finalizer.open
      yield* Fiber.join(secondLeaves)
      yield* assertIdle(store)
      const row = yield* store.get("k")
      assert.deepStrictEqual([row?.status, row?.doubt], ["released", "inDoubt"])
    }))

  it.effect("the last caller waits for the finalizers of a check that supplies a result", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* Effect.ignore(call(store, { execute: () => 10n }))
      const finalizer = Latch.makeUnsafe()
      const fiber = yield* fork(
        call(store, { alreadyApplied: () => Effect.onInterrupt(Effect.never, () => finalizer.await) })
      )
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* turns
      assert.isFalse(ended(leaves))
      yield* finalizer.open
      yield* Fiber.join(leaves)
    }))

  it.effect("a caller leaves at once while a claim is pending", () =>
    Effect.gen(function*() {
      for (const when of ["before", "after"] as const) {
        const { latch, store } = claimingSlowly(yield* memory, when)
        const hook = counting()
        const callers = yield* Effect.forEach([1, 2], () =>
          fork(call(store, { alreadyApplied: hook.execute, execute: hook.execute })))
        const leaves = yield* fork(Fiber.interruptAll(callers))
        assert.isTrue(ended(leaves))
        yield* latch.open
        yield* turns
        assert.strictEqual(hook.runs, 0)
        yield* assertIdle(store)
        const row = yield* store.get("k")
        assert.deepStrictEqual([row?.status, row?.doubt], ["released", "none"])
        assert.strictEqual(yield* call(store), "done")
      }
    }))

  it.effect("a claim of a key in doubt that is granted after the last caller left goes back without a word", () =>
    Effect.gen(function*() {
      const base = yield* memory
      yield* Effect.flatMap(fork(call(base, { execute: () => Effect.never })), Fiber.interrupt)
      const { latch, store } = claimingSlowly(base, "after")
      const hook = counting()
      const lines: Array<string> = []
      yield* Effect.flatMap(fork(withLogs(lines)(call(store, { execute: hook.execute }))), Fiber.interrupt)
      yield* latch.open
      yield* turns
      assert.deepStrictEqual([lines, hook.runs], [[], 0])
      assert.strictEqual((yield* store.get("k"))?.doubt, "inDoubt")
      yield* assertIdle(store)
    }))

  it.effect("a caller leaves at once while another process holds the key", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const other = anotherProcess(store)
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const waiter = yield* fork(call(other))
      yield* turns
      const leaves = yield* fork(Fiber.interrupt(waiter))
      yield* turns
      assert.isTrue(ended(leaves))
      yield* hook.open()
      yield* Fiber.join(holder)
      yield* turns
      yield* assertIdle(store, other)
    }))

  it.effect("a caller that comes while an unwanted claim is pending starts anew", () =>
    Effect.gen(function*() {
      const { latch, store } = claimingSlowly(yield* memory, "after")
      const unwanted = counting()
      const first = yield* fork(call(store, { execute: unwanted.execute }))
      yield* Fiber.interrupt(first)
      const second = yield* fork(call(store, { execute: () => "second" }))
      yield* turns
      assert.isFalse(ended(second))
      yield* latch.open
      assert.strictEqual(yield* Fiber.join(second), "second")
      assert.strictEqual(unwanted.runs, 0)
      yield* assertIdle(store)
    }))

  it.effect("the value of an uninterruptible execute is recorded", () =>
    Effect.gen(function*() {
      const shapes: ReadonlyArray<(effect: Effect.Effect<unknown>) => Effect.Effect<unknown>> = [
        Effect.uninterruptible,
        (effect) => Effect.uninterruptibleMask(() => effect),
        (effect) => Effect.uninterruptible(Effect.andThen(effect, (value) => Effect.as(Effect.yieldNow, value))),
        (effect) =>
          Effect.uninterruptible(Effect.tap(effect, () => Effect.forEach(new Array(5000), () => Effect.void))),
        (effect) => Effect.scoped(Effect.uninterruptible(effect)),
        (effect) =>
          Effect.uninterruptible(Effect.scoped(Effect.tap(effect, () => Effect.addFinalizer(() => Effect.yieldNow))))
      ]
      for (const shape of shapes) {
        const store = yield* memory
        const hook = gated()
        const fiber = yield* fork(call(store, { execute: () => shape(hook.execute() as Effect.Effect<unknown>) }))
        yield* hook.entered
        const leaves = yield* fork(Fiber.interrupt(fiber))
        yield* turns
        assert.isFalse(ended(leaves))
        yield* hook.open("applied")
        yield* Fiber.join(leaves)
        assert.strictEqual((yield* store.get("k"))?.status, "recorded")
        const later = counting()
        assert.strictEqual(yield* call(store, { execute: later.execute }), "applied")
        assert.strictEqual(yield* call(anotherProcess(store), { execute: later.execute }), "applied")
        assert.deepStrictEqual([hook.runs, hook.cut, later.runs], [1, 0, 0])
      }
    }))

  it.effect("an interrupt while the scope of a finished execute closes does not cost its value", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const closing = Latch.makeUnsafe()
      const entered = Deferred.makeUnsafe<void>()
      const execute = () =>
        Effect.as(
          Effect.addFinalizer(() => Effect.andThen(Deferred.succeed(entered, undefined), closing.await)),
          "applied"
        )
      const fiber = yield* fork(call(store, { execute }))
      yield* Deferred.await(entered)
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* closing.open
      yield* Fiber.join(leaves)
      const later = counting()
      assert.strictEqual(yield* call(store, { execute: later.execute }), "applied")
      assert.strictEqual(later.runs, 0)
    }))

  it.effect("an interrupt after execute does not stop the record", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const writing = Latch.makeUnsafe()
      const entered = Deferred.makeUnsafe<void>()
      const store: IEffectStore = {
        ...base,
        complete: (items) =>
          Deferred.succeed(entered, undefined).pipe(Effect.andThen(writing.await), Effect.andThen(base.complete(items)))
      }
      const fiber = yield* fork(call(store, { execute: () => "applied" }))
      yield* Deferred.await(entered)
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* turns
      yield* writing.open
      yield* Fiber.join(leaves)
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
      yield* assertIdle(store)
    }))

  it.effect("an execute that was not started when its last caller left is not started", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const check = gated()
      const hook = counting()
      const options = { alreadyApplied: () => Effect.uninterruptible(check.execute()), execute: hook.execute }
      const fiber = yield* fork(call(store, options))
      yield* check.entered
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* check.open(undefined)
      yield* Fiber.join(leaves)
      assert.strictEqual(hook.runs, 0)
      const row = yield* store.get("k")
      assert.deepStrictEqual([row?.status, row?.doubt], ["released", "none"])
    }))

  it.effect("what an uninterruptible check finds is recorded although its last caller left", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const check = gated()
      const fiber = yield* fork(call(store, { alreadyApplied: () => Effect.uninterruptible(check.execute()) }))
      yield* check.entered
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* check.open("found")
      yield* Fiber.join(leaves)
      assert.strictEqual((yield* store.get("k"))?.outcome, "reconciled")
    }))

  it.effect("a caller during an interruption waits for its end", () =>
    Effect.gen(function*() {
      // the interrupted one leaves a record
      const store = yield* memory
      const hook = gated()
      const later = counting("later")
      const first = yield* fork(call(store, { execute: () => Effect.uninterruptible(hook.execute()) }))
      const leaves = yield* fork(Fiber.interrupt(first))
      const second = yield* fork(call(store, { execute: later.execute }))
      yield* turns
      assert.isFalse(ended(second))
      yield* hook.open("first")
      assert.strictEqual(yield* Fiber.join(second), "first")
      yield* Fiber.join(leaves)
      assert.strictEqual(later.runs, 0)

      // it leaves none
      const finalizer = Latch.makeUnsafe()
      const options = { key: "l", execute: () => Effect.onInterrupt(Effect.never, () => finalizer.await) }
      const third = yield* fork(call(store, options))
      yield* fork(Fiber.interrupt(third))
      const fourth = yield* fork(call(store, { key: "l", execute: later.execute }))
      const fifth = yield* fork(call(store, { key: "l", execute: later.execute }))
      yield* turns
      assert.strictEqual(later.runs, 0)
      yield* finalizer.open
      assert.deepStrictEqual([yield* Fiber.join(fourth), yield* Fiber.join(fifth)], ["later", "later"])
      assert.strictEqual(later.runs, 1)
      yield* assertIdle(store)
    }))

  it.effect("a caller during an interruption does not take part in the failure that it ends with", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const execute = () => Effect.uninterruptible(Effect.andThen(hook.execute(), Effect.fail({ _tag: "No" })))
      const first = yield* fork(call(store, { execute }))
      const leaves = yield* fork(Fiber.interrupt(first))
      const second = yield* fork(call(store, { execute: () => "second" }))
      yield* hook.open()
      assert.strictEqual(yield* Fiber.join(second), "second")
      yield* Fiber.join(leaves)
    }))

  it.effect("a caller that waits for an interrupted application's end leaves at once", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const first = yield* fork(call(store, { execute: () => Effect.uninterruptible(hook.execute()) }))
      yield* fork(Fiber.interrupt(first))
      const second = yield* fork(call(store))
      yield* turns
      const leaves = yield* fork(Fiber.interrupt(second))
      yield* turns
      assert.isTrue(ended(leaves))
      yield* hook.open()
      yield* turns
      yield* assertIdle(store)
    }))

  it.effect("a changed input is not held against an application that ends without a trace", () =>
    Effect.gen(function*() {
      const { latch, store } = claimingSlowly(yield* memory, "after")
      yield* Fiber.interrupt(yield* fork(call(store, { input: 1 })))
      const second = yield* fork(call(store, { input: 2, onInputChange: "fail" }))
      yield* latch.open
      assert.strictEqual(yield* Fiber.join(second), "done")
    }))

  it.effect("another tool does not wait for the end of an application that is being interrupted", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const cleaned = Latch.makeUnsafe()
      const execute = () => Effect.onInterrupt(Effect.never, () => cleaned.await)
      const leaves = yield* Effect.flatMap(fork(call(store, { execute })), (fiber) => fork(Fiber.interrupt(fiber)))
      const other = yield* fork(call(store, { tool: "u" }))
      assert.isTrue(ended(other))
      yield* failsWith(Fiber.join(other), "EffectKeyConflictError")
      yield* cleaned.open
      yield* Fiber.join(leaves)
      yield* assertIdle(store)
    }))

  it.effect("a caller that leaves in the moment of the end aborts nothing", () =>
    Effect.gen(function*() {
      for (const ended of [false, true]) {
        const application = new Application({ key: "k", tool: "t", fingerprint: "", transactional: false })
        const leave = application.join(() => {})
        const { signal } = application
        if (ended) application.end({ _tag: "Over" })
        yield* leave!
        assert.strictEqual(signal.aborted, !ended)
      }
    }))

  it.effect("an uninterruptible caller gets its result although it is interrupted", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const results: Array<unknown> = []
      const fiber = yield* fork(
        Effect.uninterruptible(
          Effect.tap(call(store, { execute: hook.execute }), (result) => Effect.sync(() => results.push(result)))
        )
      )
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* turns
      assert.isFalse(ended(leaves))
      yield* hook.open("x")
      yield* Fiber.join(leaves)
      assert.deepStrictEqual([results, hook.cut], [["x"], 0])
      yield* assertIdle(store)
    }))

  it.effect("an application outlives the fiber that started it", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const starter = yield* fork(Effect.andThen(fork(call(store, { execute: hook.execute })), Effect.never))
      const joined = yield* fork(call(store))
      yield* Fiber.interrupt(starter)
      yield* hook.open("x")
      assert.strictEqual(yield* Fiber.join(joined), "x")
      assert.deepStrictEqual([hook.runs, hook.cut], [1, 0])
    }))

  it.effect("an execute that interrupts itself leaves nobody waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const exit = yield* Effect.exit(call(store, { execute: () => Effect.interrupt }))
      assert.isTrue(isInterrupted(exit))
      assert.strictEqual((yield* store.get("k"))?.doubt, "inDoubt")
      yield* assertIdle(store)
    }))
})
