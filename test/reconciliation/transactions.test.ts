/**
 * What a transactional call does where its database keeps it waiting, fails, or answers nonsense.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectStoreError, type IEffectStore } from "chamvi-effect"
import { Clock, Deferred, type Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { checkOptions } from "../../src/EffectSettings.ts"
import type { EffectTransactions } from "../../src/store/IEffectStore.ts"
import { hindered } from "../transactional/hindered.ts"
import { claimOf, transactional } from "../transactional/world.ts"
import { assertIdle, call, counting, ended, failsWith, fork, memory, turns, withLogs } from "./support.ts"

const limits = { storeTimeout: 1_000, recordTimeout: 2_000, waitFor: 5_000 }

/** The call has not ended a millisecond before, and has after `millis`. */
const endsAfter = Effect.fnUntraced(function*(millis: number, fiber: Fiber.Fiber<unknown, unknown>) {
  yield* TestClock.adjust(millis - 1)
  yield* turns
  assert.isFalse(ended(fiber), `before ${millis} ms`)
  yield* TestClock.adjust(1)
  yield* turns
  assert.isTrue(ended(fiber), `after ${millis} ms`)
})

describe("A transactional call", () => {
  it.effect("needs a store that lives in the program's own database, and runs nothing on others", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      const error = yield* failsWith(transactional(store, hook), "EffectStoreError")
      assert.deepInclude({ ...error }, { operation: "begin a transaction", key: "k", permanent: true })
      assert.include(error["message"], "SqlEffectStore")
      assert.strictEqual(hook.runs, 0)
      yield* assertIdle(store)
    }))

  it.effect("waits for a connection for storeTimeout, and does nothing with one that comes later", () =>
    Effect.gen(function*() {
      const connection = yield* Deferred.make<void>()
      const { seen, store } = hindered(yield* memory, { begin: Deferred.await(connection) })
      const hook = counting()
      const fiber = yield* fork(Effect.flip(transactional(store, { ...limits, ...hook })))
      yield* endsAfter(1_000, fiber)
      assert.deepInclude(yield* Fiber.join(fiber), {
        _tag: "EffectStoreError",
        operation: "begin a transaction",
        key: "k",
        problem: "no answer within 1000 ms"
      })
      yield* Deferred.succeed(connection, undefined)
      yield* turns
      assert.deepStrictEqual(seen, ["begin", "rollback"])
      assert.strictEqual(hook.runs, 0)
      yield* assertIdle(store)
    }))

  it.effect("takes a claim without an answer for another's transaction where the store is alive, until waitFor", () =>
    Effect.gen(function*() {
      const { seen, store } = hindered(yield* memory, { claim: Effect.never })
      const fiber = yield* fork(Effect.flip(transactional(store, limits)))
      yield* endsAfter(5_000, fiber)
      assert.deepInclude(yield* Fiber.join(fiber), {
        _tag: "EffectInProgressError",
        key: "k",
        tool: "t",
        owner: "a transaction that has not ended",
        remaining: 0
      })
      yield* turns
      assert.deepStrictEqual(seen, ["begin", "claim", "rollback"])
      yield* assertIdle(store)
    }))

  it.effect("gives the claim time for an answer, however short waitFor is", () =>
    Effect.gen(function*() {
      const { store } = hindered(yield* memory, { claim: Effect.never })
      yield* endsAfter(200, yield* fork(Effect.flip(transactional(store, { ...limits, waitFor: 0 }))))
      const slow = hindered(yield* memory, { claim: Effect.sleep(199) })
      const fiber = yield* fork(transactional(slow.store, { ...limits, waitFor: 0 }))
      yield* TestClock.adjust(199)
      assert.strictEqual(yield* Fiber.join(fiber), "done")
    }))

  it.effect("waits for another's transaction for waitFor where that is shorter than storeTimeout", () =>
    Effect.gen(function*() {
      const { store } = hindered(yield* memory, { claim: Effect.never })
      yield* endsAfter(500, yield* fork(Effect.flip(transactional(store, { ...limits, waitFor: 500 }))))
    }))

  it.effect("counts waitFor from the call, not from the begin of its transaction", () =>
    Effect.gen(function*() {
      const { store } = hindered(yield* memory, { begin: Effect.sleep(250), claim: Effect.never })
      yield* endsAfter(500, yield* fork(Effect.flip(transactional(store, { ...limits, waitFor: 500 }))))
    }))

  it.effect("gives each of its steps its own time, and leaves no timer", () =>
    Effect.gen(function*() {
      const { store } = hindered(yield* memory, {
        begin: Effect.sleep(900),
        claim: Effect.sleep(900),
        commit: Effect.sleep(1_900)
      })
      const clock = yield* Clock.Clock
      let timers = 0
      const counted: Clock.Clock = Object.create(clock, {
        sleep: {
          value: (duration: Duration.Duration) =>
            Effect.suspend(() => {
              timers++
              return Effect.onExit(clock.sleep(duration), () => Effect.sync(() => void timers--))
            })
        }
      })
      const fiber = yield* fork(
        Effect.provideService(
          transactional(store, { ...limits, execute: () => Effect.as(Effect.sleep(10_000), "done") }),
          Clock.Clock,
          counted
        )
      )
      yield* TestClock.adjust(13_700)
      assert.strictEqual(yield* Fiber.join(fiber), "done")
      yield* turns
      assert.strictEqual(timers, 0)
    }))

  it.effect("that was given up runs nothing when its claim is answered, not even what cannot be interrupted", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const { seen, store } = hindered(yield* memory, { claim: Effect.uninterruptible(Deferred.await(gate)) })
      const hook = counting()
      const execute = () => Effect.uninterruptible(hook.execute())
      yield* endsAfter(5_000, yield* fork(Effect.flip(transactional(store, { ...limits, execute }))))
      yield* Deferred.succeed(gate, undefined)
      yield* turns
      assert.deepStrictEqual([hook.runs, seen.at(-1)], [0, "rollback"])
    }))

  it.effect("that was given up neither runs nor says so where its claim as a whole cannot be interrupted", () => {
    const logs: Array<string> = []
    return Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const base = yield* memory
      const token = yield* claimOf(base)
      yield* base.release([{ key: "k", token, verdict: "inDoubt", cleared: false }])
      const { seen, store: cut } = hindered(base, { claim: Deferred.await(gate) })
      const run: EffectTransactions["run"] = (work) =>
        cut.transactions!.run((ledger) =>
          work({ ...ledger, claim: (request) => Effect.uninterruptible(ledger.claim(request)) })
        )
      const store = { ...cut, transactions: { ...cut.transactions!, run } }
      const hook = counting()
      const execute = () => Effect.uninterruptible(hook.execute())
      yield* endsAfter(5_000, yield* fork(Effect.flip(transactional(store, { ...limits, execute }))))
      yield* Deferred.succeed(gate, undefined)
      yield* turns
      assert.deepStrictEqual([hook.runs, seen], [0, ["begin", "claim", "rollback"]])
      assert.deepStrictEqual(logs, [])
      yield* assertIdle(store)
    }).pipe(withLogs(logs))
  })

  it.effect("fails where a store that is asked in the meantime does not answer either", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const { store } = hindered({ ...base, get: () => Effect.never }, { claim: Effect.never })
      const fiber = yield* fork(Effect.flip(transactional(store, limits)))
      yield* endsAfter(2_000, fiber)
      assert.deepInclude(yield* Fiber.join(fiber), { _tag: "EffectStoreError", operation: "claim", key: "k" })
    }))

  const probes = [["and does not answer", Effect.never], ["and answers later", Effect.sleep(600)]] as const
  for (const [name, answer] of probes) {
    it.effect(`goes on with a claim that is answered while the store is asked whether it lives, ${name}`, () =>
      Effect.gen(function*() {
        const base = yield* memory
        const asked = { ...base, get: (key: string) => Effect.andThen(answer, base.get(key)) }
        const { store } = hindered(asked, { claim: Effect.sleep(1_500) })
        const fiber = yield* fork(
          transactional(store, { ...limits, execute: () => Effect.as(Effect.sleep(60_000), "slow") })
        )
        yield* TestClock.adjust(61_499)
        yield* turns
        assert.isFalse(ended(fiber))
        yield* TestClock.adjust(1)
        assert.strictEqual(yield* Fiber.join(fiber), "slow")
      }))
  }

  it.effect("that gets no answer to its commit within recordTimeout says that nobody knows", () =>
    Effect.gen(function*() {
      const commit = yield* Deferred.make<void>()
      const { seen, store } = hindered(yield* memory, { commit: Deferred.await(commit) })
      const fiber = yield* fork(Effect.flip(transactional(store, limits)))
      yield* endsAfter(2_000, fiber)
      const error = yield* Fiber.join(fiber)
      assert.deepInclude(error, {
        _tag: "EffectStoreError",
        operation: "commit",
        key: "k",
        problem:
          "no answer within 2000 ms; the effect and its record are both there, or both not: the next call finds out"
      })
      yield* Deferred.succeed(commit, undefined)
      yield* turns
      assert.deepStrictEqual(seen, ["begin", "claim", "commit"])
      assert.strictEqual(yield* transactional(store, { execute: () => Effect.die("it ran") }), "done")
    }))

  it.effect("gives its failure, with or without an answer to the rollback", () =>
    Effect.gen(function*() {
      const failure = { _tag: "No" }
      const { store } = hindered(yield* memory, { rollback: Effect.never })
      const fiber = yield* fork(Effect.flip(transactional(store, { ...limits, execute: () => Effect.fail(failure) })))
      yield* endsAfter(1_000, fiber)
      assert.strictEqual(yield* Fiber.join(fiber), failure)
    }))

  it.effect("does not wait for ever for the end of a transaction that found a record", () =>
    Effect.gen(function*() {
      const base = yield* memory
      yield* call(base)
      const { store } = hindered(base, { commit: Effect.never })
      const fiber = yield* fork(Effect.flip(transactional(store, limits)))
      yield* endsAfter(1_000, fiber)
      assert.deepInclude(yield* Fiber.join(fiber), { _tag: "EffectStoreError", operation: "claim" })
    }))

  const nonsense = [undefined, { _tag: "Claimed" }, { _tag: "Held" }, "yes"]
  for (const claimed of nonsense) {
    it.effect(`takes the reply ${JSON.stringify(claimed)} to its claim for a failure of the store`, () =>
      Effect.gen(function*() {
        const hook = counting()
        const { seen, store } = hindered(yield* memory, { claimed })
        const error = yield* failsWith(transactional(store, hook), "EffectStoreError")
        assert.deepInclude({ ...error }, {
          operation: "claim",
          key: "k",
          problem: "it did not answer one reply per item"
        })
        assert.deepStrictEqual([hook.runs, seen.at(-1)], [0, "rollback"])
      }))
  }

  it.effect("whose record cannot be read runs nothing", () =>
    Effect.gen(function*() {
      const { store } = hindered(yield* memory, { claimed: { _tag: "Unreadable", tool: "t", problem: "it is torn" } })
      const error = yield* failsWith(transactional(store, { execute: () => Effect.die("it ran") }), "EffectRecordError")
      assert.strictEqual(error["problem"], "it is torn")
    }))

  it.effect("is rolled back where its record is refused", () =>
    Effect.gen(function*() {
      const { seen, store } = hindered(yield* memory, { completed: "lost" })
      const error = yield* failsWith(transactional(store), "EffectStoreError")
      assert.deepInclude({ ...error }, {
        operation: "record",
        key: "k",
        problem: "the row of the key is not the transaction's any more (execute was rolled back)"
      })
      assert.strictEqual(seen.at(-1), "rollback")
    }))

  it.effect("passes on what the store says of a claim, or of a record, that failed", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const cause = new Error("why")
      const fails = (operation: string) =>
        Effect.fail(new EffectStoreError({ operation, problem: "it is down", permanent: true, cause }))
      const claiming = yield* failsWith(
        transactional(hindered(base, { claim: fails("claim") }).store),
        "EffectStoreError"
      )
      assert.deepInclude({ ...claiming }, { operation: "claim", problem: "it is down" })
      const broken = { ...base, complete: () => fails("complete") }
      const recording = yield* failsWith(transactional(hindered(broken).store), "EffectStoreError")
      assert.deepInclude({ ...recording }, {
        operation: "record",
        problem: "it is down (execute was rolled back)",
        permanent: true
      })
      assert.strictEqual(recording["cause"], cause)
      const down = { ...base, complete: () => Effect.fail(new EffectStoreError({ operation: "x", problem: "down" })) }
      const passing = yield* failsWith(transactional(hindered(down).store), "EffectStoreError")
      assert.notInclude(Object.keys(passing), "permanent")
      assert.notInclude(Object.keys(passing), "cause")
    }))

  it.effect("sends a release that is due before it claims", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let down = true
      const held: IEffectStore = { ...base, release: (items) => down ? Effect.never : base.release(items) }
      const { store } = hindered(held)
      const failing = yield* fork(Effect.exit(call(store, { storeTimeout: 10, execute: () => Effect.fail("no") })))
      yield* TestClock.adjust(10)
      yield* Fiber.join(failing)
      down = false
      assert.strictEqual(yield* transactional(store, { waitFor: 0 }), "done")
      yield* TestClock.adjust("1 minute")
      yield* assertIdle(store)
    }).pipe(withLogs([])))

  it("refuses settings that mean nothing beside it", () => {
    for (
      const [options, said] of [
        [{ transactional: true, lease: 5 }, "The option lease of x is 5; give none beside transactional: true"],
        [{ transactional: 1 as never }, "The option transactional of x is 1; give true or false."]
      ] as const
    ) {
      assert.throws(() => checkOptions("x", options), said)
    }
    checkOptions("x", { transactional: false, lease: 5 })
    checkOptions("x", { transactional: true })
  })
})
