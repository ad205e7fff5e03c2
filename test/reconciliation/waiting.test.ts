/**
 * Waiting for the process that holds a key: for its record, for one's turn after a release, and no longer than `waitFor`.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, type IEffectStore } from "chamvi-effect"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
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
  tagOf,
  told,
  turns,
  withEvents
} from "./support.ts"

describe("reconciliation", () => {
  it.effect("joined callers share success and failure", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const failure = { _tag: "No" }
      for (const outcome of [Exit.succeed("x"), Exit.fail(failure)]) {
        const hook = gated()
        const options = { execute: () => Effect.andThen(hook.execute(), () => outcome), waitFor: 0 }
        const callers = yield* Effect.forEach([1, 2, 3], () => fork(withEvents(events)(call(store, options))))
        // in one process there is no limit of time
        yield* TestClock.adjust("1 hour")
        assert.isFalse(callers.some(ended))
        yield* hook.open()
        for (const exit of yield* Effect.forEach(callers, Fiber.await)) {
          if (Exit.isSuccess(outcome)) assert.deepStrictEqual(exit, outcome)
          else assert.strictEqual(Exit.isFailure(exit) && Cause.squash(exit.cause), failure)
        }
        assert.strictEqual(hook.runs, 1)
        yield* store.remove("k")
      }
      assert.sameMembers(events.map(told), ["executed", "joined", "joined", "failed", "failed", "failed"])
    }))

  it.effect("another process's caller waits for the record", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const other = counting("other")
      const events: Array<EffectEvent> = []
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const waiter = yield* fork(
        withEvents(events)(
          call(anotherProcess(store), { alreadyApplied: other.execute, execute: other.execute })
        )
      )
      yield* TestClock.adjust("50 seconds")
      assert.isFalse(ended(waiter))
      yield* hook.open("x")
      // woken by the change, without time passing
      assert.strictEqual(yield* Fiber.join(waiter), "x")
      yield* Fiber.join(holder)
      assert.strictEqual(other.runs, 0)
      assert.deepStrictEqual(events.map(told), ["recorded"])
    }))

  it.effect("waiters claim in turn after a release", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hooks = [gated(), gated(), gated(), gated()]
      const processes = hooks.map(() => anotherProcess(store))
      const callers = yield* Effect.forEach(hooks, ({ execute }, i) => fork(call(processes[i]!, { execute })))
      const running = () => hooks.flatMap(({ runs }, i) => runs > 0 ? [i] : [])
      yield* turns
      for (let turn = 1; turn <= 3; turn++) {
        assert.strictEqual(running().length, turn)
        const last = hooks.findIndex((hook, i) => hook.runs === 1 && !ended(callers[i]!))
        if (turn < 3) {
          yield* Fiber.interrupt(callers[last]!)
        } else yield* hooks[last]!.open("third")
        yield* turns
      }
      assert.strictEqual(running().length, 3)
      const rest = callers.filter((_, i) => hooks[i]!.runs === 0)
      assert.deepStrictEqual(yield* Effect.forEach(rest, Fiber.join), ["third"])
      yield* assertIdle(...processes)
    }))

  it.effect("a waiter that gets its turn after a failure applies", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(failsWith(
        call(store, { execute: () => Effect.andThen(hook.execute(), Effect.fail({ _tag: "No" })) }),
        "No"
      ))
      const waiters = yield* Effect.forEach([1, 2], (i) => fork(call(anotherProcess(store), { execute: () => i })))
      yield* hook.open()
      yield* Fiber.join(holder)
      const [a, b] = yield* Effect.forEach(waiters, Fiber.join)
      assert.strictEqual(a, b)
    }))

  it.effect("waitFor ends in EffectInProgressError", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const events: Array<EffectEvent> = []
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const owner = (yield* store.get("k"))!.owner
      const later = counting()
      const waiter = yield* fork(
        withEvents(events)(
          call(anotherProcess(store), { waitFor: 25_000, execute: later.execute })
        )
      )
      yield* TestClock.adjust(24_999)
      assert.isFalse(ended(waiter))
      yield* TestClock.adjust(1)
      const error = yield* failsWith(Fiber.join(waiter), "EffectInProgressError")
      // renewed at 20 s, for 30 s
      assert.deepStrictEqual([error["owner"], error["remaining"], error["key"], error["tool"]], [
        owner,
        25_000,
        "k",
        "t"
      ])
      assert.isTrue(error["isRetryable"])
      assert.deepStrictEqual(events.map(told), ["inProgress"])
      assert.strictEqual(later.runs, 0)
      yield* hook.open("x")
      yield* Fiber.join(holder)
    }))

  it.effect("waitFor of zero asks without waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      yield* failsWith(call(anotherProcess(store), { waitFor: 0 }), "EffectInProgressError")
      yield* hook.open("x")
      yield* Fiber.join(holder)
      assert.strictEqual(yield* call(anotherProcess(store), { waitFor: 0 }), "x")
    }))

  it.effect("turns are taken on what is left of each waiter's own waitFor", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const [first, second] = [gated(), gated()]
      const holder = yield* fork(call(store, { execute: first.execute }))
      const next = yield* fork(call(anotherProcess(store), { waitFor: "1 minute", execute: second.execute }))
      yield* TestClock.adjust("10 seconds")
      const waiter = yield* fork(call(anotherProcess(store), { waitFor: "30 seconds" }))
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.interrupt(holder)
      yield* turns
      yield* second.entered
      yield* TestClock.adjust(9_999)
      assert.isFalse(ended(waiter))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(waiter), "EffectInProgressError")
      // the application itself has no such limit
      yield* TestClock.adjust("10 minutes")
      yield* second.open("x")
      assert.strictEqual(yield* Fiber.join(next), "x")
    }))

  it.effect("a waiter finds the record without being woken", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const silent: ReadonlyArray<IEffectStore["changes"]> = [
        () => Stream.never,
        () => Stream.empty,
        () => Stream.die("no listener"),
        () => {
          throw new Error("no listener")
        }
      ]
      for (const changes of silent) {
        const hook = gated()
        const holder = yield* fork(call(store, { execute: hook.execute }))
        const waiter = yield* fork(call({ ...store, changes }))
        yield* turns
        yield* hook.open("x")
        yield* Fiber.join(holder)
        assert.isFalse(ended(waiter))
        yield* TestClock.adjust(1100)
        assert.strictEqual(yield* Fiber.join(waiter), "x")
        yield* store.remove("k")
      }
    }))

  it.effect("waking without a cause neither ends the wait nor shortens it", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let claims = 0
      const claim: IEffectStore["claim"] = (requests) => {
        claims++
        return base.claim(requests)
      }
      const store: IEffectStore = { ...base, claim, changes: () => Stream.tick(100) }
      const hook = gated()
      const holder = yield* fork(call(base, { execute: hook.execute }))
      const waiter = yield* fork(call(store, { waitFor: "20 seconds" }))
      yield* TestClock.adjust(19_999)
      assert.isFalse(ended(waiter))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(waiter), "EffectInProgressError")
      // one for each time it was woken
      assert.isAtMost(claims, 210)
      yield* hook.open()
      yield* Fiber.join(holder)
    }))

  it.effect("a change between the claim and the wait is not missed", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const hook = gated()
      const holder = yield* fork(call(base, { execute: hook.execute }))
      let claims = 0
      const store: IEffectStore = {
        ...base,
        // the holder finishes right after it was found to hold the key
        claim: (requests) =>
          Effect.tap(base.claim(requests), () => ++claims === 2 ? Effect.andThen(hook.open("x"), turns) : Effect.void)
      }
      const waiter = yield* fork(call(store))
      yield* turns
      assert.strictEqual(yield* Fiber.join(waiter), "x")
      yield* Fiber.join(holder)
    }))

  it.effect("a waiter whose key another tool takes meanwhile gets the conflict", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const waiter = yield* fork(call(anotherProcess(store)))
      yield* turns
      yield* Effect.andThen(
        store.remove("k"),
        store.claim([{
          key: "k",
          tool: "u",
          runId: "",
          owner: "another",
          claimId: "x",
          lease: 30_000,
          fingerprint: ""
        }])
      )
      yield* turns
      assert.strictEqual((yield* failsWith(Fiber.join(waiter), "EffectKeyConflictError"))["heldBy"], "u")
      yield* hook.open("mine")
      assert.strictEqual(yield* Fiber.join(holder), "mine")
    }))

  it.effect("joiners of a waiting call share what it gets", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const other = anotherProcess(store)
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      const waiters = yield* Effect.forEach([1, 2], () => fork(call(other, { waitFor: 1000 })))
      yield* TestClock.adjust(1000)
      const failures = yield* Effect.forEach(waiters, Fiber.await)
      assert.deepStrictEqual(
        failures.map((exit) => Exit.isFailure(exit) && tagOf(Cause.squash(exit.cause))),
        ["EffectInProgressError", "EffectInProgressError"]
      )
      yield* hook.open()
      yield* Fiber.join(holder)
      yield* assertIdle(store, other)
    }))
})
