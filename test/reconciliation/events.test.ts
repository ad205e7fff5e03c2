/**
 * What the world is told of a call: one event, one count, and the attributes of the span it runs in.
 */
import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectEvent, EffectStore, type IEffectStore } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Metric } from "effect"
import { TestClock } from "effect/testing"
import { anotherProcess, call, down, failsWith, failureOf, fork, gated, memory, told, withEvents } from "./support.ts"

const countOf = (tool: string, outcome: string) =>
  Effect.map(Metric.value(Metric.withAttributes(EffectEvent.calls, { tool, outcome })), ({ count }) => count)

describe("EffectEvent", () => {
  it.effect("every call ends in one outcome", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const other = anotherProcess(store)
      const tool = "outcomes"
      const events: Array<EffectEvent> = []
      const seen: Array<string> = []
      const expect = (...outcomes: ReadonlyArray<string>) => {
        assert.sameMembers(events.map(told), [...outcomes])
        seen.push(...outcomes.map((outcome) => outcome.split(" ")[0]!))
        events.length = 0
      }
      const run = (key: string, options: Parameters<typeof call>[1] = {}, on: IEffectStore = store) =>
        call(on, { key, tool, ...options })
      yield* Effect.gen(function*() {
        yield* run("a")
        expect("executed")
        yield* run("a")
        expect("recorded")
        yield* run("b", { alreadyApplied: () => "found" })
        expect("reconciled")
        const hook = gated()
        const callers = yield* Effect.forEach([1, 2, 3], () => fork(run("c", { execute: hook.execute })))
        yield* failsWith(run("c", { waitFor: 0 }, other), "EffectInProgressError")
        expect("inProgress")
        yield* Fiber.interrupt(callers[2]!)
        expect("interrupted")
        yield* hook.open()
        yield* Effect.forEach(callers.slice(0, 2), Fiber.join)
        expect("executed", "joined")
        yield* Fiber.interrupt(yield* fork(run("d", { execute: () => Effect.never })))
        expect("interrupted")
        yield* failsWith(run("d", { whenInDoubt: "fail" }), "EffectInDoubtError")
        expect("inDoubt")
        yield* failsWith(
          call(store, { key: "e", tool: "another" }).pipe(Effect.andThen(run("e"))),
          "EffectKeyConflictError"
        )
        events.shift()
        expect("conflict")
        yield* run("f", { input: 1 })
        events.shift()
        seen.push("executed")
        yield* failsWith(run("f", { input: 2, onInputChange: "fail" }), "EffectInputChangedError")
        expect("conflict inputChanged")
        yield* failureOf(run("g", { execute: () => Effect.fail("no") }))
        expect("failed")
        yield* failureOf(run("g", { execute: () => Effect.die("no") }))
        expect("failed")
        yield* failsWith(run("h", { execute: () => 10n }), "EffectResultUnavailableError")
        expect("failed")
        yield* failsWith(run("i", { execute: () => run("i") }), "EffectReentrantError")
        expect("failed", "failed")
        yield* failsWith(run("j", {}, { ...store, claim: () => down("claim") }), "EffectStoreError")
        expect("failed")
      }).pipe(withEvents(events))
      for (const outcome of new Set(seen)) {
        assert.strictEqual(yield* countOf(tool, outcome), seen.filter((one) => one === outcome).length, outcome)
      }
    }))

  it.effect("a call whose key cannot be computed ends in one outcome too", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const hook = gated()
      for (const options of [{ key: "" }, { key: " \n" }, { key: undefined as never }, { input: 10n }]) {
        const failing = failsWith(call(store, { ...options, execute: hook.execute }), "EffectKeyError")
        const { path } = yield* withEvents(events)(failing)
        assert.strictEqual(path, "input" in options ? "$" : "key")
      }
      assert.deepStrictEqual(events.map(({ key, tool }) => [key, tool]), [["", "t"], ["", "t"], ["", "t"], ["k", "t"]])
      assert.deepStrictEqual(events.map(told), ["failed", "failed", "failed", "failed"])
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("an error of a call inside of execute is not taken for one of the outer call", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const holder = yield* fork(call(anotherProcess(store), { key: "inner", execute: hook.execute }))
      const events: Array<EffectEvent> = []
      const execute = () => call(store, { key: "inner", tool: "t", waitFor: 0 })
      yield* withEvents(events)(failsWith(call(store, { execute }), "EffectInProgressError"))
      assert.deepStrictEqual(events.map((event) => `${event.key}: ${told(event)}`), ["inner: inProgress", "k: failed"])
      yield* hook.open()
      yield* Fiber.join(holder)
    }))

  it.effect("an error of a call of another tool inside of execute is not taken for one of the outer call", () =>
    Effect.gen(function*() {
      const elsewhere = yield* memory
      const hook = gated()
      const holder = yield* fork(call(anotherProcess(elsewhere), { tool: "u", execute: hook.execute }))
      const events: Array<EffectEvent> = []
      // the same key, in another ledger
      const execute = () => call(elsewhere, { tool: "u", waitFor: 0 })
      yield* withEvents(events)(failsWith(call(yield* memory, { execute }), "EffectInProgressError"))
      assert.deepStrictEqual(events.map((event) => `${event.tool}: ${told(event)}`), ["u: inProgress", "t: failed"])
      yield* hook.open()
      yield* Fiber.join(holder)
    }))

  it.effect("whatever a hook fails with is a failure, and no error of ours", () =>
    Effect.gen(function*() {
      const failures = [null, undefined, "no", 0, { _tag: "EffectInDoubtError", key: "k", tool: "t" }, new Error("no")]
      for (const failure of failures) {
        const events: Array<EffectEvent> = []
        const failing = call(yield* memory, { execute: () => Effect.fail(failure) })
        assert.strictEqual(yield* withEvents(events)(failureOf(failing)), failure)
        assert.deepStrictEqual(events.map(told), ["failed"])
      }
    }))

  it.effect("who leaves is told of what the application met", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([{ key: "k", tool: "t", runId: "", owner: "dead", claimId: "x", lease: 1, fingerprint: "" }])
      yield* TestClock.adjust(1)
      const events: Array<EffectEvent> = []
      const hook = gated()
      const callers = yield* Effect.forEach([1, 2], (input) =>
        fork(withEvents(events)(call(store, { input, execute: hook.execute }))))
      for (const caller of callers.toReversed())
        yield* Fiber.interrupt(caller)
      assert.deepStrictEqual(events.map(told), [
        "interrupted inputChanged takenOver executedInDoubt",
        "interrupted takenOver executedInDoubt"
      ])
    }))

  it.effect("flags tell what went aside", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      yield* Effect.gen(function*() {
        yield* store.claim([{
          key: "k",
          tool: "t",
          runId: "",
          owner: "dead",
          claimId: "x",
          lease: 1,
          fingerprint: "other"
        }])
        yield* TestClock.adjust(1)
        const unwritten: IEffectStore = { ...store, complete: () => down("complete") }
        yield* call(unwritten, { input: 1 })
      }).pipe(withEvents(events))
      assert.deepStrictEqual(events.map(({ key: _, runId: __, tool: ___, ...rest }) => rest), [{
        outcome: "executed",
        error: undefined,
        recordFailed: true,
        claimLost: false,
        inputChanged: true,
        takenOver: true,
        executedInDoubt: true
      }])
    }))

  it.effect("an event names key, tool and run", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      yield* withEvents(events)(call(store, { key: "a:b", tool: "tool", runId: "run" }))
      assert.deepStrictEqual(events.map(({ key, runId, tool }) => [key, tool, runId]), [["a:b", "tool", "run"]])
      assert.strictEqual((yield* store.get("a:b"))?.runId, "run")
      // outside of any run
      yield* withEvents(events)(call(store))
      assert.deepStrictEqual([events.at(-1)!.runId, (yield* store.get("k"))?.runId], ["", ""])
    }))

  it.effect("the span that a call runs in gets the outcome and the flags that are set", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* call(store, { input: 1 })
      const attributes = yield* Effect.gen(function*() {
        yield* call(store, { input: 2 })
        return (yield* Effect.currentSpan).attributes
      }).pipe(Effect.withSpan("caller"))
      assert.deepStrictEqual(Object.fromEntries(attributes), {
        "chamvi.effect.key": "k",
        "chamvi.effect.tool": "t",
        "chamvi.effect.outcome": "recorded",
        "chamvi.effect.inputChanged": true
      })
    }))

  it.effect("a listener that dies, fails or throws changes nothing", () =>
    Effect.gen(function*() {
      const listeners: ReadonlyArray<(event: EffectEvent) => Effect.Effect<void>> = [
        () => Effect.die("listener"),
        () => Effect.fail("listener") as never,
        () => Effect.interrupt,
        () => {
          throw new Error("listener")
        }
      ]
      for (const listener of listeners) {
        const store = yield* memory
        const heard = Effect.provideService(EffectEvent.Listener, listener)
        assert.strictEqual(yield* heard(call(store)), "done")
        assert.strictEqual(yield* heard(failureOf(call(store, { key: "l", execute: () => Effect.fail("no") }))), "no")
      }
    }))

  it.effect("a listener hears of a call before it returns", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const heard = Deferred.makeUnsafe<string>()
      yield* Effect.provideService(call(store), EffectEvent.Listener, ({ outcome }) =>
        Effect.asVoid(Deferred.succeed(heard, outcome)))
      assert.strictEqual(Deferred.isDoneUnsafe(heard) ? yield* Deferred.await(heard) : "", "executed")
    }))

  it.effect("the layer's listener hears every call below it", () =>
    Effect.gen(function*() {
      const outcomes: Array<string> = []
      const once = applyOnce({ key: "k", execute: () => Effect.succeed(1) })
      yield* Effect.all([once, once]).pipe(
        Effect.provide([
          EffectStore.layerMemory,
          EffectEvent.layer(({ outcome }) => Effect.sync(() => void outcomes.push(outcome)))
        ])
      )
      assert.deepStrictEqual(outcomes, ["executed", "recorded"])
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(Effect.provide(once, EffectStore.layerMemory))))
    }))
})
