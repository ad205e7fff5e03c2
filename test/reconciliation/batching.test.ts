import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectStore, EffectStoreError, type IEffectStore } from "chamvi-effect"
import { Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"

/** A memory store that says it is worth batching, and notes the size of each request. */
const batched = Effect.gen(function*() {
  const store = Context.get(yield* Layer.build(EffectStore.layerMemory), EffectStore)
  const requests: Array<string> = []
  const noting = <Item, Reply>(
    name: string,
    operation: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Reply>, EffectStoreError>
  ) =>
  (items: ReadonlyArray<Item>) => {
    requests.push(`${name} ${items.length}`)
    return operation(items)
  }
  const noted: IEffectStore = {
    ...store,
    batch: true,
    claim: noting("claim", store.claim),
    complete: noting("complete", store.complete),
    release: noting("release", store.release)
  }
  return { requests, store: noted }
})

const keys = (count: number) => Array.from({ length: count }, (_, i) => `k${i}`)

describe("A store that is worth batching", () => {
  it.effect("gets the calls of one turn in one request each way", () =>
    Effect.gen(function*() {
      const { requests, store } = yield* batched
      const results = yield* Effect.forEach(keys(64), (key) => applyOnce({ key, execute: Effect.succeed }), {
        concurrency: "unbounded"
      }).pipe(Effect.provideService(EffectStore, store))
      assert.deepStrictEqual(results, keys(64))
      assert.deepStrictEqual(requests, ["claim 64", "complete 64"])
    }).pipe(Effect.scoped))

  it.effect("gets a call that comes alone as one plain request", () =>
    Effect.gen(function*() {
      const { requests, store } = yield* batched
      const call = applyOnce({ key: "k", execute: Effect.succeed })
      yield* Effect.andThen(call, call).pipe(Effect.provideService(EffectStore, store))
      assert.deepStrictEqual(requests, ["claim 1", "complete 1", "claim 1"])
    }).pipe(Effect.scoped))

  it.effect("fails all calls of a request that it answers with no list", () =>
    Effect.gen(function*() {
      const { store } = yield* batched
      const silent: IEffectStore = { ...store, claim: () => Effect.succeed(undefined as never) }
      const failures = yield* Effect.forEach(
        keys(2),
        (key) => Effect.flip(applyOnce({ key, execute: Effect.succeed })),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(EffectStore, silent))
      for (const failure of failures) {
        assert.deepInclude(failure, { operation: "claim", problem: "it did not answer one reply per item" })
      }
    }).pipe(Effect.scoped))

  it.effect("gets at most 500 calls in one request, and no request without one", () =>
    Effect.gen(function*() {
      for (const [count, sizes] of [[500, [500]], [501, [500, 1]], [1000, [500, 500]]] as const) {
        const { requests, store } = yield* batched
        yield* Effect.forEach(keys(count), (key) => applyOnce({ key, execute: Effect.succeed }), {
          concurrency: "unbounded"
        }).pipe(Effect.provideService(EffectStore, store))
        assert.deepStrictEqual(
          requests,
          ["claim", "complete"].flatMap((name) => sizes.map((size) => `${name} ${size}`))
        )
      }
    }).pipe(Effect.scoped))

  it.effect("gets releases, and the renewal before an execute that comes late", () =>
    Effect.gen(function*() {
      const { requests, store } = yield* batched
      const failing = applyOnce({ key: "k", execute: () => Effect.fail("no") })
      assert.strictEqual(yield* Effect.flip(failing).pipe(Effect.provideService(EffectStore, store)), "no")
      assert.deepStrictEqual(requests, ["claim 1", "release 1"])
      const slow = {
        ...store,
        claim: (items: Parameters<IEffectStore["claim"]>[0]) =>
          Effect.delay(Effect.suspend(() => store.claim(items)), 2001)
      }
      const late = yield* Effect.forkChild(
        applyOnce({ key: "l", lease: 3000, execute: Effect.succeed }).pipe(Effect.provideService(EffectStore, slow)),
        { startImmediately: true }
      )
      yield* TestClock.adjust(2001)
      assert.strictEqual(yield* Fiber.join(late), "l")
    }).pipe(Effect.scoped))

  it.effect("fails the one call of a request that it refuses, without asking again", () =>
    Effect.gen(function*() {
      const { requests, store } = yield* batched
      const refusals = [
        () => Effect.fail(new EffectStoreError({ operation: "claim", key: "k", problem: "too long" })),
        () => Effect.die("broken")
      ]
      for (const refuse of refusals) {
        requests.length = 0
        const refusing: IEffectStore = {
          ...store,
          claim: (items) => {
            requests.push(`refused ${items.length}`)
            return refuse()
          }
        }
        const exit = yield* Effect.flip(applyOnce({ key: "k", execute: Effect.succeed })).pipe(
          Effect.provideService(EffectStore, refusing)
        )
        assert.strictEqual(exit._tag, "EffectStoreError")
        assert.deepStrictEqual(requests, ["refused 1"])
      }
    }).pipe(Effect.scoped))

  it.effect("keeps no call waiting for another one's execute", () =>
    Effect.gen(function*() {
      const { store } = yield* batched
      const gate = yield* Deferred.make<void>()
      const call = (key: string, execute: Effect.Effect<string>) =>
        applyOnce({ key, execute: () => execute }).pipe(
          Effect.provideService(EffectStore, store),
          Effect.forkChild({ startImmediately: true })
        )
      const slow = yield* call("slow", Effect.as(Deferred.await(gate), "slow"))
      const fast = yield* call("fast", Effect.succeed("fast"))
      assert.strictEqual(yield* Fiber.join(fast), "fast")
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(slow), "slow")
    }).pipe(Effect.scoped))

  it.effect("fails all calls of a request that fails, and nothing runs", () =>
    Effect.gen(function*() {
      const { store } = yield* batched
      let runs = 0
      const down: IEffectStore = {
        ...store,
        claim: () => Effect.fail(new EffectStoreError({ operation: "claim", problem: "down" }))
      }
      const exits = yield* Effect.forEach(
        keys(3),
        (key) => Effect.exit(applyOnce({ key, execute: () => Effect.sync(() => ++runs) })),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(EffectStore, down))
      assert.isTrue(exits.every(Exit.isFailure))
      assert.strictEqual(runs, 0)
    }).pipe(Effect.scoped))

  it.effect("fails a call alone whose key the failure of their request names", () =>
    Effect.gen(function*() {
      const { requests, store } = yield* batched
      const picky: IEffectStore = {
        ...store,
        claim: (items) =>
          items.some(({ key }) => key === "k1")
            ? Effect.fail(new EffectStoreError({ operation: "claim", key: "k1", problem: "it is too large" }))
            : store.claim(items)
      }
      const exits = yield* Effect.forEach(
        keys(4),
        (key) => Effect.exit(applyOnce({ key, execute: Effect.succeed })),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(EffectStore, picky))
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true, true])
      assert.deepStrictEqual(requests, ["claim 3", "complete 3"])
    }).pipe(Effect.scoped))

  it.effect("takes an answer that is too short for a failure of those without a reply", () =>
    Effect.gen(function*() {
      const { store } = yield* batched
      const short: IEffectStore = {
        ...store,
        claim: (requests) => Effect.map(store.claim(requests), (replies) => replies.slice(0, 1))
      }
      const exits = yield* Effect.forEach(
        keys(2),
        (key) => Effect.exit(applyOnce({ key, execute: Effect.succeed })),
        { concurrency: "unbounded" }
      ).pipe(Effect.provideService(EffectStore, short))
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false])
    }).pipe(Effect.scoped))
})
