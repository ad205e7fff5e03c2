/**
 * What errors, records and grants say, where a caller or a store's author has to act on it.
 */
import { assert, describe, it } from "@effect/vitest"
import { applyOnce, type EffectEvent, EffectResolution, EffectStore, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber, Option, Schema } from "effect"
import { TestClock } from "effect/testing"
import { read, readJson, schemaCodec } from "../../src/reconciliation/resultCodec.ts"
import { call, counting, failsWith, failureOf, fork, memory, told, withEvents } from "./support.ts"

const textOfCall = (options: Parameters<typeof call>[1]) =>
  Effect.map(
    Effect.flatMap(memory, (store) => failureOf(call(store, options))),
    (failure) => (failure as Error).message
  )

describe("reconciliation", () => {
  it.effect("an answer of the remote check that is none says what to answer", () =>
    Effect.gen(function*() {
      const answers = [
        [Option.none(), "an Option"],
        [10n, "something that cannot be recorded (it holds a bigint, at $)"]
      ] as const
      for (const [answer, problem] of answers) {
        assert.strictEqual(
          yield* textOfCall({ alreadyApplied: () => answer }),
          `alreadyApplied of tool "t" answered ${problem}. Nothing was recorded and nothing was executed. Answer what `
            + `execute would have returned, undefined for "not applied", or an EffectResolution.`
        )
      }
    }))

  it.effect("a result that is unavailable says why", () =>
    Effect.gen(function*() {
      const reasonOf = (options: Parameters<typeof call>[1]) =>
        Effect.gen(function*() {
          return (yield* failsWith(call(yield* memory, options), "EffectResultUnavailableError"))["reason"]
        })
      assert.strictEqual(
        yield* reasonOf({ alreadyApplied: () => EffectResolution.applied() }),
        "the remote check knows that the effect was applied, but not its result"
      )
      assert.strictEqual(
        yield* reasonOf({ alreadyApplied: () => "x".repeat(100), largestResult: 100 }),
        "it is larger than 100 bytes"
      )
      const schema = Schema.Finite as unknown as Schema.Codec<unknown, unknown>
      assert.include(yield* reasonOf({ schema, execute: () => "x" }), "it cannot be recorded: Expected number")
    }))

  it.effect("a record that cannot be read says what is wrong with it", () =>
    Effect.gen(function*() {
      const problemOf = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.map(failsWith(effect, "EffectRecordError"), (error) => error["problem"])
      assert.strictEqual(
        yield* problemOf(readJson("k", "t", "?")),
        "its result is not a text that this version of the library writes"
      )
      const decoding = read("k", "t", `{"value":"x"}`, schemaCodec(Schema.Finite))
      assert.include(yield* problemOf(decoding), "its result does not decode: Expected number")
      const base = yield* memory
      const claim: IEffectStore["claim"] = () =>
        Effect.succeed([
          { _tag: "Recorded", tool: "t", result: undefined, outcome: "executed", fingerprint: "" } as never
        ])
      assert.strictEqual(yield* problemOf(call({ ...base, claim })), "it holds no text of a result")
    }))

  it("a schema is compiled once", () => {
    const schema = Schema.Struct({ a: Schema.Finite })
    assert.strictEqual(schemaCodec(schema), schemaCodec(schema))
  })

  it.effect("a store that fails without an error of its own is told as such", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const problems: ReadonlyArray<readonly [Effect.Effect<never>, string]> = [
        [Effect.succeed([]) as never, "it did not answer one reply per item"],
        [Effect.die("broken"), "it failed"]
      ]
      for (const [reply, problem] of problems) {
        const error = yield* failsWith(call({ ...base, claim: () => reply }), "EffectStoreError")
        assert.deepInclude(error, { operation: "claim", key: "k", problem })
      }
      const fiber = yield* fork(call({ ...base, claim: () => Effect.never }, { storeTimeout: 700 }))
      yield* TestClock.adjust(700)
      const error = yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      assert.deepInclude(error, { operation: "claim", key: "k", problem: "no answer within 700 ms" })
    }))

  it.effect("a store that does not take a release is told as such by the next call", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), release: () => Effect.die("broken") }
      yield* failureOf(call(store, { execute: () => Effect.fail("no") }))
      const error = yield* failsWith(call(store), "EffectStoreError")
      assert.deepInclude(error, { operation: "release", key: "k", problem: "it failed" })
    }))

  it.effect("a hook that answers an Effect of an Effect is named", () =>
    Effect.gen(function*() {
      const nested = () => Effect.succeed(Effect.succeed("x"))
      for (const hook of ["alreadyApplied", "execute"] as const) {
        assert.include(yield* textOfCall({ [hook]: nested }), `${hook} answered an Effect inside of another Effect`)
      }
    }))

  it.effect("a grant that does not say what came before it is a grant", () =>
    Effect.gen(function*() {
      for (const earlier of [undefined, { age: 0, fingerprint: "" }]) {
        const base = yield* memory
        const claim: IEffectStore["claim"] = (requests) =>
          Effect.map(base.claim(requests), (replies) =>
            replies.map((reply) => ({ ...reply, doubt: "inDoubt", earlier } as never)))
        const events: Array<EffectEvent> = []
        const options = { input: 1, settle: 100, onInputChange: "fail" } as const
        const check = counting(undefined)
        const fiber = yield* fork(
          withEvents(events)(call({ ...base, claim }, { ...options, alreadyApplied: check.execute }))
        )
        yield* TestClock.adjust(100)
        assert.strictEqual(yield* Fiber.join(fiber), "done")
        assert.strictEqual(check.runs, 2)
        yield* withEvents(events)(call({ ...base, claim }, { ...options, key: "l" }))
        assert.deepStrictEqual(events.map(told), ["executed", "executed executedInDoubt"])
      }
    }))

  it.effect("a call with an input joins one without, which has nothing to differ from", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const execute = () => Effect.as(Effect.yieldNow, "x")
      yield* Effect.all([
        call(store, { execute }),
        call(store, { input: 1, onInputChange: "fail" }),
        call(store, { input: 2, onInputChange: "fail" })
      ], { concurrency: 3 }).pipe(withEvents(events))
      assert.sameMembers(events.map(told), ["executed", "joined", "joined"])
    }))

  it.effect("a joined call is told of its own changed input and of what the application met", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([{ key: "k", tool: "t", runId: "", owner: "dead", claimId: "x", lease: 1, fingerprint: "" }])
      yield* TestClock.adjust(1)
      const events: Array<EffectEvent> = []
      const execute = () => Effect.as(Effect.yieldNow, "x")
      yield* Effect.all([1, 2].map((input) => call(store, { input, execute })), { concurrency: 2 }).pipe(
        withEvents(events)
      )
      assert.sameMembers(events.map(told), [
        "executed takenOver executedInDoubt",
        "joined inputChanged takenOver executedInDoubt"
      ])
    }))

  it.effect("a caller that waits looks again about once in a second", () =>
    Effect.gen(function*() {
      const base = yield* memory
      yield* base.claim([
        { key: "k", tool: "t", runId: "", owner: "other", claimId: "x", lease: 10_000_000, fingerprint: "" }
      ])
      let asked = 0
      const store: IEffectStore = {
        ...base,
        claim: (requests) => {
          asked++
          return base.claim(requests)
        }
      }
      yield* fork(call(store, { waitFor: "1 hour" }))
      yield* TestClock.adjust("1000 seconds")
      assert.isAtLeast(asked, 970)
      assert.isAtMost(asked, 1030)
    }))

  it.effect("a call that names no tool has the key for applyOnce", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* Effect.provideService(applyOnce({ key: "k", execute: () => Effect.succeed(1) }), EffectStore, store)
      assert.strictEqual((yield* store.get("k"))?.tool, "applyOnce")
    }))
})
