/**
 * The order in which a call goes through its steps, and who shares them.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  ended,
  failsWith,
  failureOf,
  fork,
  gated,
  memory,
  told,
  withEvents
} from "./support.ts"

/** The store, with every operation of a call noted in `log`. */
const noting = (store: IEffectStore, log: Array<string>): IEffectStore => ({
  ...store,
  claim: (requests) =>
    Effect.tap(store.claim(requests), ([reply]) => Effect.sync(() => log.push(`claim ${reply!._tag}`))),
  complete: (items) => Effect.tap(store.complete(items), () => Effect.sync(() => log.push("complete"))),
  release: (items) => Effect.tap(store.release(items), () => Effect.sync(() => log.push("release")))
})

const say = (log: Array<string>, what: string, answer?: unknown) => () =>
  Effect.sync(() => {
    log.push(what)
    return answer
  })

describe("reconciliation", () => {
  it.effect("the record is written after execute and before the answer", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const store = noting(yield* memory, log)
      yield* call(store, { alreadyApplied: say(log, "check"), execute: say(log, "execute", "x") })
      log.push("answer")
      assert.deepStrictEqual(log, ["claim Claimed", "check", "execute", "complete", "answer"])
      assert.strictEqual((yield* store.get("k"))?.result, `{"value":"x"}`)
    }))

  it.effect("a recorded key runs nothing", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const store = noting(yield* memory, log)
      yield* call(store, { execute: say(log, "execute", "x") })
      log.length = 0
      const again = { alreadyApplied: say(log, "check", "y"), execute: say(log, "execute", "z") }
      assert.strictEqual(yield* call(store, again), "x")
      assert.strictEqual(yield* call(anotherProcess(store), again), "x")
      assert.deepStrictEqual(log, ["claim Recorded", "claim Recorded"])
    }))

  it.effect("the remote check comes before execute and its answer is recorded", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const store = noting(yield* memory, log)
      const options = { alreadyApplied: say(log, "check", "found"), execute: say(log, "execute", "x") }
      assert.strictEqual(yield* call(store, options), "found")
      assert.deepStrictEqual(log, ["claim Claimed", "check", "complete"])
      const row = yield* store.get("k")
      assert.strictEqual(row?.outcome, "reconciled")
      assert.strictEqual(yield* call(anotherProcess(store), { execute: say(log, "execute", "x") }), "found")
      assert.notInclude(log, "execute")
    }))

  it.effect("a held key runs no hook before its claim is granted", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const other = anotherProcess(store)
      const first = gated()
      const log: Array<string> = []
      const a = yield* fork(call(store, { execute: first.execute }))
      const b = yield* fork(call(other, { alreadyApplied: say(log, "check"), execute: say(log, "execute", "y") }))
      yield* first.open("x")
      assert.strictEqual(yield* Fiber.join(a), "x")
      assert.strictEqual(yield* Fiber.join(b), "x")
      assert.deepStrictEqual(log, [])
    }))

  it.effect("parallel calls of one key share one application", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const first = gated()
      const others = counting("other")
      const a = yield* fork(call(store, { execute: first.execute }))
      const joined = yield* Effect.forEach([1, 2, 3], () => fork(call(store, { execute: others.execute })))
      yield* first.open("x")
      assert.deepStrictEqual(yield* Effect.forEach([a, ...joined], Fiber.join), ["x", "x", "x", "x"])
      assert.deepStrictEqual([first.runs, others.runs], [1, 0])
      yield* assertIdle(store)
    }))

  it.effect("calls of different keys do not wait for each other", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const first = gated()
      const a = yield* fork(call(store, { key: "a", execute: first.execute }))
      assert.strictEqual(yield* call(store, { key: "b" }), "done")
      assert.isFalse(ended(a))
      yield* first.open()
      yield* Fiber.join(a)
    }))

  it.effect("another tool with the same key gets a conflict", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const foreign = counting()
      const conflicts = (key: string, on: IEffectStore) =>
        Effect.map(
          failsWith(
            call(on, { key, tool: "u", alreadyApplied: foreign.execute, execute: foreign.execute }),
            "EffectKeyConflictError"
          ),
          (error) => assert.deepStrictEqual([error["key"], error["tool"], error["heldBy"]], [key, "u", "t"])
        )
      yield* call(store, { key: "recorded" })
      yield* conflicts("recorded", store)
      yield* failsWith(call(store, { key: "tried", execute: () => Effect.fail({ _tag: "No" }) }), "No")
      yield* conflicts("tried", store)
      const inFlight = gated()
      const holder = yield* fork(call(store, { key: "held", execute: inFlight.execute }))
      yield* conflicts("held", store)
      yield* conflicts("held", anotherProcess(store))
      yield* inFlight.open("mine")
      assert.strictEqual(yield* Fiber.join(holder), "mine")
      assert.strictEqual(foreign.runs, 0)
    }))

  it.effect("a call in flight answers a conflict at once", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const first = gated()
      const a = yield* fork(call(store, { input: { n: 1 }, execute: first.execute }))
      const second = counting()
      yield* failsWith(call(store, { tool: "u", execute: second.execute }), "EffectKeyConflictError")
      yield* failsWith(
        call(store, { input: { n: 2 }, onInputChange: "fail", execute: second.execute }),
        "EffectInputChangedError"
      )
      assert.isFalse(ended(a))
      const joined = yield* fork(call(store, { input: { n: 1 }, onInputChange: "fail" }))
      yield* first.open("x")
      assert.strictEqual(yield* Fiber.join(joined), "x")
      assert.strictEqual(second.runs, 0)
    }))

  it.effect("another input under one key replays and is reported", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const first = gated()
      yield* Effect.gen(function*() {
        const a = yield* fork(call(store, { input: 1, execute: first.execute }))
        const joined = yield* fork(call(store, { input: 2 }))
        yield* first.open("x")
        assert.strictEqual(yield* Fiber.join(joined), "x")
        yield* Fiber.join(a)
        assert.strictEqual(yield* call(store, { input: 2 }), "x")
        assert.strictEqual(yield* call(anotherProcess(store), { input: 3 }), "x")
        assert.strictEqual(yield* call(store, { input: 1 }), "x")
        // no input says nothing about a change
        assert.strictEqual(yield* call(store), "x")
      }).pipe(withEvents(events))
      assert.sameMembers(events.slice(0, 2).map(told), ["executed", "joined inputChanged"])
      assert.deepStrictEqual(events.slice(2).map(told), [
        "recorded inputChanged",
        "recorded inputChanged",
        "recorded",
        "recorded"
      ])
    }))

  it.effect("onInputChange fail makes another input an error", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const hook = counting()
      const changed = { input: 2, onInputChange: "fail", alreadyApplied: hook.execute, execute: hook.execute } as const
      yield* Effect.gen(function*() {
        // recorded
        yield* call(store, { key: "recorded", input: 1 })
        yield* failsWith(call(store, { key: "recorded", ...changed }), "EffectInputChangedError")
        // in doubt
        const cut = gated()
        const fiber = yield* fork(call(store, { key: "in doubt", input: 1, execute: cut.execute }))
        yield* Fiber.interrupt(fiber)
        yield* failsWith(call(store, { key: "in doubt", ...changed }), "EffectInputChangedError")
        // once more: the refusal did not become the attempt that the row speaks of
        yield* failsWith(call(anotherProcess(store), { key: "in doubt", ...changed }), "EffectInputChangedError")
        assert.strictEqual((yield* store.get("in doubt"))?.doubt, "inDoubt")
        assert.strictEqual(hook.runs, 0)
        // tried: nothing was applied, so there is nothing that the new input differs from
        yield* failsWith(call(store, { key: "tried", input: 1, execute: () => Effect.fail({ _tag: "No" }) }), "No")
        assert.strictEqual(yield* call(store, { ...changed, key: "tried", alreadyApplied: () => undefined }), "done")
      }).pipe(withEvents(events))
      assert.deepStrictEqual(events.map(told), [
        "executed",
        "conflict inputChanged",
        "interrupted",
        "conflict inputChanged",
        "conflict inputChanged",
        "failed",
        "executed"
      ])
    }))

  it.effect("a result that the remote has of an attempt which had denied it is told as that of another input", () =>
    Effect.gen(function*() {
      for (const onInputChange of ["replay", "fail"] as const) {
        const store = yield* memory
        const events: Array<EffectEvent> = []
        yield* failureOf(call(store, { input: 1, execute: () => Effect.fail("no") }))
        const hook = counting()
        const options = { input: 2, onInputChange, alreadyApplied: () => "found", execute: hook.execute }
        const second = withEvents(events)(call(store, options))
        if (onInputChange === "fail") yield* failsWith(second, "EffectInputChangedError")
        else assert.strictEqual(yield* second, "found")
        assert.strictEqual(hook.runs, 0)
        assert.deepStrictEqual(events.map(told), [
          onInputChange === "fail" ? "conflict inputChanged" : "reconciled inputChanged"
        ])
      }
    }))

  it.effect("an executed record belongs to the input that was executed, whatever an earlier attempt had", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* failureOf(call(store, { input: 1, execute: () => Effect.fail("no") }))
      yield* call(store, { input: 2 })
      assert.strictEqual(yield* call(store, { input: 2, onInputChange: "fail" }), "done")
      yield* failsWith(call(store, { input: 1, onInputChange: "fail" }), "EffectInputChangedError")
    }))

  it.effect("a reconciled record belongs to the input of the attempt that applied the effect", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const cut = gated()
      yield* Fiber.interrupt(yield* fork(call(store, { input: 1, execute: cut.execute })))
      const events: Array<EffectEvent> = []
      yield* Effect.gen(function*() {
        assert.strictEqual(yield* call(store, { input: 2, alreadyApplied: () => "found" }), "found")
        assert.strictEqual(yield* call(store, { input: 1, onInputChange: "fail" }), "found")
        yield* failsWith(call(store, { input: 2, onInputChange: "fail" }), "EffectInputChangedError")
      }).pipe(withEvents(events))
      assert.deepStrictEqual(events.map(told), ["reconciled inputChanged", "recorded", "conflict inputChanged"])
    }))
})
