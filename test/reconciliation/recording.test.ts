/**
 * The effect has happened: whatever the store does now, the call succeeds, and the record gets written.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectStore, type IEffectStore } from "chamvi-effect"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  down,
  ended,
  failsWith,
  fork,
  gated,
  losingReply,
  memory,
  told,
  turns,
  withEvents,
  withLogs
} from "./support.ts"

type Complete = IEffectStore["complete"]

/** A store that cannot record until it is `up`. */
const recordingLater = (base: IEffectStore, wrong: Complete = () => down("complete")) => {
  const complete: Complete = (items) => {
    store.asked++
    return store.up ? base.complete(items) : wrong(items)
  }
  const store = { ...base, up: false, asked: 0, complete }
  return store
}

const nonsense = (answer: unknown): Complete => () => Effect.succeed(answer as ReadonlyArray<"ok">)

describe("reconciliation", () => {
  it.effect("a failing record leaves the call a success", () =>
    Effect.gen(function*() {
      const wrongs: ReadonlyArray<readonly [string, (base: IEffectStore) => Complete]> = [
        ["fails", () => () => down("complete")],
        ["dies", () => () => Effect.die("broken")],
        ["throws", () => () => {
          throw new Error("broken")
        }],
        ["is interrupted", () => () => Effect.interrupt],
        ["loses its reply", (base) => (items) => losingReply("complete", base.complete(items))],
        ["answers nothing", () => nonsense(undefined)],
        ["answers an empty list", () => nonsense([])],
        ["answers no list", () => nonsense("ok")],
        ["answers a word of its own", () => nonsense(["yes"])],
        ["answers null", () => nonsense([null])]
      ]
      for (const [name, wrong] of wrongs) {
        const base = yield* memory
        const store = recordingLater(base, wrong(base))
        const events: Array<EffectEvent> = []
        const lines: Array<string> = []
        const hook = counting("x")
        const first = call(store, { execute: hook.execute }).pipe(withEvents(events), withLogs(lines))
        assert.strictEqual(yield* first, "x", name)
        assert.deepStrictEqual(events.map(told), ["executed recordFailed"], name)
        assert.include(
          lines[0],
          `Warn: The effect of key "k" (tool "t") was applied, but its record could not be written yet. `
            + `It is retried in the background; until then only this process knows of it.`,
          name
        )
        store.up = true
        yield* TestClock.adjust("10 seconds")
        yield* assertIdle(store)
        assert.strictEqual(yield* call(anotherProcess(base), { execute: hook.execute }), "x", name)
        assert.strictEqual(hook.runs, 1)
      }
    }))

  it.effect("a record that takes longer than recordTimeout leaves the call a success", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base, () => Effect.never)
      const events: Array<EffectEvent> = []
      const fiber = yield* fork(withEvents(events)(call(store, { recordTimeout: 700 })))
      yield* TestClock.adjust(699)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "done")
      assert.deepStrictEqual(events.map(told), ["executed recordFailed"])
      store.up = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
    }))

  it.effect("joined callers are told of a failed record too", () =>
    Effect.gen(function*() {
      const store = recordingLater(yield* memory)
      const events: Array<EffectEvent> = []
      const options = { execute: () => Effect.as(Effect.yieldNow, "x") }
      yield* Effect.all([call(store, options), call(store, options)], { concurrency: 2 }).pipe(withEvents(events))
      assert.sameMembers(events.map(told), ["executed recordFailed", "joined recordFailed"])
    }))

  it.effect("a failed record is retried and answered from memory", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      const hook = counting("x")
      yield* call(store, { input: 1, execute: hook.execute })
      const events: Array<EffectEvent> = []
      yield* Effect.gen(function*() {
        yield* TestClock.adjust("10 minutes")
        // the claim is kept alive, so that nobody else applies the effect
        yield* failsWith(call(anotherProcess(base), { waitFor: 0, execute: hook.execute }), "EffectInProgressError")
        const check = counting("found")
        assert.strictEqual(yield* call(store, { input: 1, alreadyApplied: check.execute, execute: hook.execute }), "x")
        assert.strictEqual(check.runs, 0)
        const before = store.asked
        assert.strictEqual(yield* call(store, { input: 2, execute: hook.execute }), "x")
        yield* turns
        // there is a writer already
        assert.strictEqual(store.asked, before)
        yield* failsWith(call(store, { input: 2, onInputChange: "fail" }), "EffectInputChangedError")
        yield* failsWith(call(store, { tool: "u" }), "EffectKeyConflictError")
        store.up = true
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* base.get("k"))?.status, "recorded")
        yield* assertIdle(store)
        assert.strictEqual(yield* call(store), "x")
      }).pipe(withEvents(events))
      assert.deepStrictEqual(events.map(told), [
        "inProgress",
        "recorded",
        "recorded inputChanged",
        "conflict inputChanged",
        "conflict",
        "recorded"
      ])
      assert.strictEqual(hook.runs, 1)
      const asked = store.asked
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(store.asked, asked)
    }))

  it.effect("the background retry neither stops nor floods the store", () =>
    Effect.gen(function*() {
      const store = recordingLater(yield* memory)
      yield* call(store)
      yield* TestClock.adjust("1 hour")
      // capped at five seconds, jittered by a fifth
      assert.isAtLeast(store.asked, 600)
      assert.isAtMost(store.asked, 920)
    }))

  it.effect("a write that is refused in the background ends the answers from memory", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      const lines: Array<string> = []
      yield* withLogs(lines)(Effect.all([call(store, { execute: () => "mine" }), call(store, { key: "l" })]))
      assert.strictEqual(lines.length, 2)
      yield* base.remove("k")
      yield* call(base, { execute: () => "other" })
      assert.strictEqual(yield* call(store), "mine")
      store.up = true
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(lines.slice(2), [
        `Warn: The claim of effect key "k" was taken over while its effect was applied; it may have been applied once more. `
        + `Raise the lease if tool "t" is slow.`
      ])
      yield* assertIdle(store)
      assert.strictEqual(yield* call(store), "other")
    }))

  it.effect("what the remote check found is recorded with the same care", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      assert.strictEqual(yield* call(store, { alreadyApplied: () => "found" }), "found")
      assert.strictEqual(yield* call(store), "found")
      store.up = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* base.get("k"))?.outcome, "reconciled")
    }))

  it.effect("closing the store tries the record once more", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      yield* call(store)
      yield* call(store, { key: "l" })
      store.up = true
      const asked = store.asked
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(store.asked, asked + 2)
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
      yield* assertIdle(store)
      // the background writer and the heartbeat are gone too
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(store.asked, asked + 2)
    }))

  it.effect("closing the store does not wait for longer than recordTimeout, and then lets the claim go", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      const hook = counting("x")
      yield* call(store, { recordTimeout: 700, execute: hook.execute })
      yield* call(store, { key: "l", recordTimeout: 700 })
      store.complete = () => Effect.never
      const lines: Array<string> = []
      const closing = yield* fork(withLogs(lines)(Scope.close(scope, Exit.void)))
      yield* TestClock.adjust(699)
      assert.isFalse(ended(closing))
      yield* TestClock.adjust(1)
      yield* Fiber.join(closing)
      assert.include(
        lines[0],
        `Error: The record of effect key "k" was never written. Its claim is left to expire: the next call in another `
          + `process asks alreadyApplied, or finds the key in doubt.`
      )
      assert.strictEqual(lines.length, 2)
      let asked = 0
      store.complete = (items) => {
        asked++
        return base.complete(items)
      }
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(asked, 0)
      // this process still knows better than to apply the effect again, and writes what it knows
      assert.strictEqual(yield* call(store, { execute: hook.execute }), "x")
      yield* turns
      assert.strictEqual(asked, 1)
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
      assert.strictEqual(hook.runs, 1)
      yield* call(store, { key: "l" })
      yield* turns
      yield* assertIdle(store)
    }))

  it.effect("a call that outlives its store's closing says that its record is missing, and lets its claim go", () =>
    Effect.gen(function*() {
      for (const wrong of [() => down("complete"), () => Effect.andThen(Effect.yieldNow, down("complete"))]) {
        const base = yield* memory
        let renewals = 0
        const store = Object.assign(recordingLater(base, wrong), {
          renew: (items: Parameters<typeof base.renew>[0]) => {
            renewals++
            return base.renew(items)
          }
        })
        const scope = yield* Scope.make()
        yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
        const hook = gated()
        const lines: Array<string> = []
        const options = { recordTimeout: 700, lease: 3000, execute: () => Effect.uninterruptible(hook.execute()) }
        const caller = yield* fork(withLogs(lines)(call(store, options)))
        const closing = yield* fork(Scope.close(scope, Exit.void))
        yield* TestClock.adjust(700)
        yield* Fiber.join(closing)
        yield* hook.open("x")
        assert.strictEqual(yield* Fiber.join(caller), "x")
        const missing = () => lines.filter((line) => line.includes("was never written")).length
        // nothing keeps the process alive
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual([missing(), store.asked, renewals], [1, 2, 0])
        // each call that is answered from memory writes it once
        assert.strictEqual(yield* withLogs(lines)(call(store, options)), "x")
        yield* turns
        assert.deepStrictEqual([missing(), store.asked], [2, 3])
        store.up = true
        assert.strictEqual(yield* call(store, options), "x")
        yield* turns
        assert.deepStrictEqual([(yield* base.get("k"))?.status, hook.runs], ["recorded", 1])
        yield* assertIdle(store)
      }
    }))

  it.effect("what is logged of a record that is missing says what the store did", () =>
    Effect.gen(function*() {
      const store = recordingLater(yield* memory, () => Effect.die("broken"))
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      const lines: Array<string> = []
      yield* Effect.andThen(call(store), Scope.close(scope, Exit.void)).pipe(withLogs(lines))
      assert.deepStrictEqual(lines.map((line) => line.split(" ", 1)[0]), ["Warn:", "Error:"])
      for (const line of lines) assert.include(line, `could not record for effect key "k": it failed`)
      registryOf(store).unwritten.clear()
    }))

  it.effect("a claim whose record was written later is not renewed any more", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let renewals = 0
      const store = Object.assign(recordingLater(base), {
        renew: (items: Parameters<typeof base.renew>[0]) => {
          renewals++
          return base.renew(items)
        }
      })
      yield* call(store)
      store.up = true
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([(yield* base.get("k"))?.status, renewals], ["recorded", 0])
    }))

  it.effect("a claim that is let go at the end is in doubt for other processes", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base)
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      yield* call(store)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 minute")
      yield* failsWith(call(base, { whenInDoubt: "fail" }), "EffectInDoubtError")
      assert.strictEqual(yield* call(base, { alreadyApplied: () => "found" }), "found")
      registryOf(store).unwritten.clear()
    }))

  it.effect("a store out of reach executes nothing", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const claims: ReadonlyArray<IEffectStore["claim"]> = [
        () => down("claim"),
        () => Effect.die("broken"),
        () => {
          throw new Error("broken")
        },
        () => Effect.interrupt,
        () => Effect.succeed([]),
        () => Effect.succeed(undefined as never),
        () => Effect.succeed(["ok"] as never),
        () => Effect.succeed([null] as never),
        () => Effect.succeed([{ _tag: "Perhaps" }] as never),
        () => undefined as never
      ]
      for (const claim of claims) {
        const store = { ...base, claim }
        const hook = counting()
        const options = { alreadyApplied: hook.execute, execute: hook.execute }
        const callers = yield* Effect.forEach([1, 2], () => fork(call(store, options)))
        for (const caller of callers) {
          const error = yield* failsWith(Fiber.join(caller), "EffectStoreError")
          assert.isTrue(error["isRetryable"])
        }
        assert.strictEqual(hook.runs, 0)
        assert.strictEqual(registryOf(store).applications.size, 0)
      }
      assert.strictEqual(yield* call(base), "done")
    }))

  it.effect("a store that does not answer executes nothing", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), claim: () => Effect.never }
      const hook = counting()
      const fiber = yield* fork(call(store, { storeTimeout: 700, execute: hook.execute }))
      yield* TestClock.adjust(699)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("the record is retried although the call that wrote it was interrupted", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = recordingLater(base, () => Effect.never)
      const fiber = yield* fork(call(store))
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(leaves)
      store.up = true
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
      yield* assertIdle(store)
    }))
})
