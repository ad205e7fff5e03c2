import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectStore, type IEffectStore } from "chamvi-effect"
import { type FaultKind, FaultyStore, type FaultyStoreOptions } from "chamvi-effect/testing"
import { Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ended, fork, memory, tagOf, turns } from "../reconciliation/support.ts"

const request = (claimId: string, key = "k") => ({
  key,
  tool: "t",
  runId: "r",
  owner: "o",
  claimId,
  lease: 1_000_000,
  fingerprint: ""
})

const faulty = (options: FaultyStoreOptions) =>
  Effect.gen(function*() {
    const below = yield* memory
    const { faulty, store } = yield* FaultyStore.decorate(below, options)
    const held = Effect.map(below.get("k"), (row) => row?.status === "held")
    return { below, store, faulty, held, claim: store.claim([request("c")]) }
  })

/** How an operation ended, in a word. */
const ending = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isSuccess(exit)
    ? "answered"
    : exit.cause.reasons.map((reason) => reason._tag === "Fail" ? tagOf(reason.error) : reason._tag).join()

describe("FaultyStore", () => {
  const expected: Readonly<
    Record<FaultKind, readonly [now: string, heldNow: boolean, later: string, heldLater: boolean]>
  > = {
    fail: ["EffectStoreError", false, "EffectStoreError", false],
    loseReply: ["EffectStoreError", true, "EffectStoreError", true],
    stall: ["waits", false, "answered", true],
    stallReply: ["waits", true, "answered", true],
    comeLate: ["EffectStoreError", false, "EffectStoreError", true],
    die: ["Die", false, "Die", false],
    dieAfter: ["Die", true, "Die", true]
  }
  for (const [fault, [now, heldNow, later, heldLater]] of Object.entries(expected)) {
    it.effect(`makes an operation ${fault}`, () =>
      Effect.gen(function*() {
        const { claim, faulty: service, held } = yield* faulty({
          plan: [{ fault: fault as FaultKind }],
          stall: "9 seconds"
        })
        const asked = yield* fork(Effect.exit(claim))
        const state = Effect.gen(function*() {
          yield* turns
          return [ended(asked) ? ending(yield* Fiber.join(asked)) : "waits", yield* held]
        })
        assert.deepStrictEqual(yield* state, [now, heldNow])
        yield* TestClock.adjust(8_999)
        assert.deepStrictEqual(yield* state, [now, heldNow])
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(yield* state, [later, heldLater])
        assert.deepStrictEqual(yield* service.report, [{
          nth: 1,
          operation: "claim",
          keys: ["k"],
          fault: fault as FaultKind
        }])
        // the fault is over
        assert.strictEqual(ending(yield* Effect.exit(claim)), "answered")
        assert.strictEqual(yield* service.operations, 2)
      }))
  }

  it.effect("hits the operations that the plan names, and no others", () =>
    Effect.gen(function*() {
      const { faulty: service, store } = yield* faulty({
        plan: [{ operation: "get", nth: 2, fault: "die" }, { nth: 4, times: Infinity, fault: "fail" }]
      })
      const get = Effect.map(Effect.exit(store.get("k")), ending)
      const claim = Effect.map(Effect.exit(store.claim([request("c")])), ending)
      assert.deepStrictEqual(
        yield* Effect.all([get, claim, get, claim, get, get]),
        ["answered", "answered", "Die", "EffectStoreError", "EffectStoreError", "EffectStoreError"]
      )
      yield* service.mend
      assert.deepStrictEqual(yield* Effect.all([get, claim]), ["answered", "answered"])
    }))

  it.effect("lets the plan go first, and the seed do the rest", () =>
    Effect.gen(function*() {
      const { store } = yield* faulty({ plan: [{ nth: 2, fault: "die" }], seed: 1, rate: 1, faults: ["fail"] })
      const get = Effect.map(Effect.exit(store.get("k")), ending)
      assert.deepStrictEqual(yield* Effect.all([get, get, get]), ["EffectStoreError", "Die", "EffectStoreError"])
    }))

  it.effect("passes every operation on, and can break each of them", () =>
    Effect.gen(function*() {
      const operations = (store: IEffectStore): Readonly<Record<string, Effect.Effect<unknown, unknown>>> => ({
        claim: store.claim([request("c")]),
        renew: store.renew([{ key: "k", token: 1, lease: 1 }]),
        complete: store.complete([{ key: "k", token: 1, result: "{}", outcome: "executed", fingerprint: "" }]),
        release: store.release([{ key: "k", token: 1, verdict: "clean", cleared: false }]),
        get: store.get("k"),
        list: Stream.runCollect(store.list()),
        changes: Stream.runCollect(Stream.take(store.changes("k"), 0)),
        resolve: store.resolve("k", { _tag: "Unknown" } as never),
        prune: store.prune({ olderThan: 0 }),
        remove: store.remove("k")
      })
      const below = yield* memory
      const expected = yield* Effect.all(operations(yield* memory))
      const healthy = yield* FaultyStore.decorate(below, {})
      assert.deepStrictEqual(yield* Effect.all(operations(healthy.store)), expected)
      assert.deepStrictEqual(yield* healthy.faulty.report, [])
      const broken = yield* FaultyStore.decorate(below, { plan: [{ times: Infinity, fault: "fail" }] })
      for (const [name, operation] of Object.entries(operations(broken.store))) {
        if (name === "changes") continue
        assert.strictEqual(ending(yield* Effect.exit(operation)), "EffectStoreError", name)
      }
      assert.strictEqual(
        ending(yield* Effect.exit(Stream.runDrain(broken.store.changes("k")))),
        "EffectStoreError"
      )
      assert.strictEqual(Object.keys(operations(below)).length, (yield* broken.faulty.report).length)
    }))

  it.effect("does the same for the same seed, and something else for another", () =>
    Effect.gen(function*() {
      const report = (options: FaultyStoreOptions) =>
        Effect.gen(function*() {
          const { faulty: service, store } = yield* faulty(options)
          for (let i = 0; i < 100; i++) {
            const operation: Effect.Effect<unknown, unknown> = i % 2 === 0
              ? store.get("k")
              : store.claim([request("c")])
            const asked = yield* fork(Effect.exit(operation))
            yield* TestClock.adjust("1 minute")
            yield* Fiber.join(asked)
          }
          return yield* service.report
        })
      const first = yield* report({ seed: 1 })
      assert.deepStrictEqual(yield* report({ seed: 1 }), first)
      assert.notDeepEqual(yield* report({ seed: 2 }), first)
      assert.isAbove(first.length, 5)
      assert.isBelow(first.length, 40)
      assert.deepStrictEqual(yield* report({}), [])
      assert.strictEqual((yield* report({ seed: 1, rate: 1 })).length, 100)
      const gets = yield* report({ seed: 1, operations: ["get"] })
      assert.deepStrictEqual(gets, first.filter(({ operation }) => operation === "get"))
      const failures = yield* report({ seed: 1, faults: ["fail"] })
      assert.deepStrictEqual([...new Set(failures.map(({ fault }) => fault))], ["fail"])
    }))

  it.effect("lets what is stalled or late happen as soon as it is mended", () =>
    Effect.gen(function*() {
      const { claim, faulty: service, held, store } = yield* faulty({
        plan: [{ operation: "claim", fault: "comeLate" }, { operation: "get", fault: "stall" }],
        stall: "52 weeks"
      })
      yield* Effect.flip(claim)
      const asked = yield* fork(store.get("k"))
      yield* turns
      assert.deepStrictEqual([ended(asked), yield* held], [false, false])
      yield* service.mend
      yield* Fiber.join(asked)
      yield* turns
      assert.isTrue(yield* held)
    }))

  it.effect("forgets what was still to come when its scope closes", () =>
    Effect.gen(function*() {
      const below = yield* memory
      const scope = yield* Scope.make()
      const { store } = yield* Scope.provide(FaultyStore.decorate(below, { plan: [{ fault: "comeLate" }] }), scope)
      yield* Effect.flip(store.claim([request("c")]))
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(yield* below.get("k"))
    }))

  it.effect("is a layer over the store of the context", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(applyOnce({ key: "k", execute: () => Effect.succeed("done") }))
      assert.strictEqual(ending(exit), "EffectStoreError")
      const service = yield* FaultyStore
      assert.deepStrictEqual((yield* service.report).map(({ operation }) => operation), ["claim"])
      assert.strictEqual(yield* applyOnce({ key: "k", execute: () => Effect.succeed("done") }), "done")
      assert.strictEqual((yield* (yield* EffectStore).get("k"))?.status, "recorded")
    }).pipe(Effect.provide(
      FaultyStore.layer({ plan: [{ fault: "die" }] }).pipe(Layer.provide(EffectStore.layerMemory))
    )))
})
