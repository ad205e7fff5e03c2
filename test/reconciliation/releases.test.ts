/**
 * Releases that fail, or whose replies are lost: they are sent again, and no process locks itself out.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import {
  assertIdle,
  call,
  down,
  ended,
  failsWith,
  fork,
  losingReply,
  memory,
  told,
  withEvents,
  withLogs
} from "./support.ts"

const statusOf = (store: IEffectStore) =>
  Effect.map(store.get("k"), (row) => `${row?.status} ${row?.doubt} attempt ${row?.attempt}`)

describe("reconciliation", () => {
  it.effect("a release that fails is sent again in the background", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let failures = 3
      const store: IEffectStore = {
        ...base,
        release: (items) => failures-- > 0 ? down("release") : base.release(items)
      }
      const lines: Array<string> = []
      yield* withLogs(lines)(failsWith(call(store, { execute: () => Effect.fail({ _tag: "No" }) }), "No"))
      assert.strictEqual(lines.length, 1)
      assert.include(
        lines[0],
        `Warn: The claim of effect key "k" could not be released yet; other processes wait for its lease to end.`
      )
      assert.strictEqual(yield* statusOf(base), "held none attempt 1")
      yield* TestClock.adjust("5 seconds")
      // its verdict is the truth about the attempt
      assert.strictEqual(yield* statusOf(base), "released tried attempt 1")
      yield* assertIdle(store)
    }))

  it.effect("a release that fails does not lock the own process out", () =>
    Effect.gen(function*() {
      const verdicts = [["tried", () => Effect.fail({ _tag: "No" })], [
        "inDoubt",
        () => Effect.die("half way")
      ]] as const
      for (const [doubt, execute] of verdicts) {
        const base = yield* memory
        // the first try and the one that the background makes at once
        let failures = 4
        const released: Array<string> = []
        const store: IEffectStore = {
          ...base,
          release: (items) => {
            if (failures-- > 0) return down("release")
            released.push(...items.map(({ key }) => key))
            return base.release(items)
          }
        }
        yield* Effect.ignoreCause(call(store, { execute }))
        yield* Effect.ignoreCause(call(store, { key: "l", execute }))
        const events: Array<EffectEvent> = []
        assert.strictEqual(yield* withEvents(events)(call(store, { waitFor: 0 })), "done")
        assert.deepStrictEqual(events.map(told), [doubt === "tried" ? "executed" : "executed executedInDoubt"])
        assert.deepStrictEqual(released, ["k"])
        yield* TestClock.adjust("1 minute")
        // the background has no more to say about it
        assert.deepStrictEqual(released, ["k", "l"])
        yield* assertIdle(store)
        assert.strictEqual((yield* base.get("k"))?.status, "recorded")
      }
    }))

  it.effect("a release whose reply is lost is released once", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let lost = 1
      const store: IEffectStore = {
        ...base,
        release: (items) => lost-- > 0 ? losingReply("release", base.release(items)) : base.release(items)
      }
      yield* failsWith(call(store, { execute: () => Effect.fail({ _tag: "No" }) }), "No")
      // another process comes in between; the repeated release must not touch its claim
      const running = Latch.makeUnsafe()
      const other = yield* fork(call(base, { execute: () => Effect.as(running.await, "other") }))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* statusOf(base), "held tried attempt 2")
      yield* running.open
      assert.strictEqual(yield* Fiber.join(other), "other")
      yield* assertIdle(store, base)
    }))

  it.effect("a release that never comes through leaves the key in doubt at the end of the lease", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store: IEffectStore = { ...base, release: () => down("release") }
      yield* failsWith(call(store, { execute: () => Effect.fail({ _tag: "No" }) }), "No")
      yield* failsWith(call(store), "EffectStoreError")
      yield* failsWith(call(base, { waitFor: 0 }), "EffectInProgressError")
      yield* TestClock.adjust("2 minutes")
      // nobody keeps it alive, and nobody sends the release for ever
      yield* failsWith(call(base, { whenInDoubt: "fail" }), "EffectInDoubtError")
      yield* assertIdle(store)
    }))

  it.effect("a release that is never answered holds the caller for no longer than the store's timeout", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store: IEffectStore = { ...base, release: () => Effect.never }
      const fiber = yield* fork(call(store, { storeTimeout: 500, execute: () => Effect.fail({ _tag: "No" }) }))
      yield* TestClock.adjust(499)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(fiber), "No")
    }))
})
