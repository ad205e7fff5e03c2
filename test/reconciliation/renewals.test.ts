/**
 * What keeping a claim costs: no timer that nobody needs, no request too many, and none too few.
 */
import { assert, describe, it } from "@effect/vitest"
import type { EffectEvent, IEffectStore } from "chamvi-effect"
import { Clock, Deferred, type Duration, Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { askStore, within } from "../../src/reconciliation/bounded.ts"
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
  memory,
  told,
  turns,
  withEvents
} from "./support.ts"

/** The test's clock, with the number of sleeps that were asked of it and of those that are not over. */
const countedClock = Effect.map(Clock.Clock, (clock) => {
  const counts = { asked: 0, asleep: 0 }
  const counted: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
    sleep: (duration: Duration.Duration) =>
      Effect.suspend(() => {
        counts.asked++
        counts.asleep++
        return Effect.ensuring(clock.sleep(duration), Effect.sync(() => counts.asleep--))
      })
  })
  return { counts, on: Effect.provideService(Clock.Clock, counted) }
})

/** A store that notes how many items each renewal has. */
const renewing = Effect.map(memory, (base) => {
  const sizes: Array<number> = []
  const renew: IEffectStore["renew"] = (items) =>
    Effect.suspend(() => {
      sizes.push(items.length)
      return base.renew(items)
    })
  return { base, sizes, store: { ...base, renew } as IEffectStore }
})

describe("renewals", () => {
  it.effect("a beat is slept for, also where it is due at a fraction of a millisecond", () =>
    Effect.gen(function*() {
      // a ninth of 10 s, after each renewal that fails
      const store: IEffectStore = { ...(yield* memory), renew: () => down("renew") }
      const { counts, on } = yield* countedClock
      const hook = gated()
      const fiber = yield* fork(on(call(store, { lease: "10 seconds", execute: hook.execute })))
      yield* TestClock.adjust("9 seconds")
      yield* hook.open()
      yield* Fiber.join(fiber)
      assert.isBelow(counts.asked, 20)
    }))

  it.effect("an effect that ends at once costs no timer, and one that ends later leaves none behind", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const { counts, on } = yield* countedClock
      yield* on(call(store, { key: "at once" }))
      yield* turns
      assert.deepStrictEqual(counts, { asked: 0, asleep: 0 })
      const hook = gated()
      const fiber = yield* fork(on(call(store, { execute: hook.execute })))
      yield* turns
      assert.deepStrictEqual(counts, { asked: 1, asleep: 1 })
      yield* hook.open()
      yield* Fiber.join(fiber)
      yield* turns
      assert.deepStrictEqual(counts, { asked: 1, asleep: 0 })
    }))

  it.effect("claims that are due later, or together, cost no further timer; one that is due sooner is woken for", () =>
    Effect.gen(function*() {
      const { sizes, store } = yield* renewing
      const { counts, on } = yield* countedClock
      const hook = gated()
      for (const [key, lease] of [["a", 30_000], ["b", 30_000], ["c", 60_000]] as const) {
        yield* fork(on(call(store, { key, lease, execute: hook.execute })))
        yield* turns
      }
      assert.strictEqual(counts.asked, 1)
      const soon = yield* fork(on(call(store, { key: "d", lease: 3000, execute: hook.execute })))
      yield* turns
      assert.deepStrictEqual(counts, { asked: 2, asleep: 1 })
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(sizes, [1])
      yield* Fiber.interrupt(soon)
      yield* TestClock.adjust(9000)
      assert.deepStrictEqual(sizes, [1, 2])
    }))

  it.effect("a beat whose claim is gone asks for nothing", () =>
    Effect.gen(function*() {
      const { sizes, store } = yield* renewing
      const hook = gated()
      yield* fork(call(store, { key: "a", lease: "1 minute", execute: hook.execute }))
      const gone = yield* fork(call(store, { key: "b", lease: "3 seconds", execute: hook.execute }))
      yield* turns
      yield* Fiber.interrupt(gone)
      yield* TestClock.adjust(19_999)
      assert.deepStrictEqual(sizes, [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sizes, [1])
    }))

  it.effect("a renewal that answers nonsense is tried again before the next beat", () =>
    Effect.gen(function*() {
      for (const answer of [undefined, null, "ok", [], ["yes"], [undefined]]) {
        const base = yield* memory
        let asked = 0
        const store: IEffectStore = { ...base, renew: () => Effect.sync(() => (asked++, answer as never)) }
        const hook = gated()
        const fiber = yield* fork(call(store, { lease: "9 seconds", execute: hook.execute }))
        yield* TestClock.adjust(3000)
        assert.strictEqual(asked, 1)
        yield* TestClock.adjust(1000)
        assert.strictEqual(asked, 2, String(answer))
        yield* hook.open()
        yield* Fiber.join(fiber)
      }
    }))

  it.effect("a claim that the beats have kept needs no renewal for execute to start", () =>
    Effect.gen(function*() {
      const { sizes, store } = yield* renewing
      const alreadyApplied = () => Effect.as(Effect.sleep("25 seconds"), undefined)
      const fiber = yield* fork(call(store, { alreadyApplied }))
      yield* TestClock.adjust("25 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(sizes, [1, 1])
    }))

  it.effect("a claim that was lost is not renewed any more", () =>
    Effect.gen(function*() {
      const { base, sizes, store } = yield* renewing
      const hook = gated()
      const execute = () => Effect.uninterruptible(hook.execute())
      const fiber = yield* fork(call(store, { execute }))
      yield* base.remove("k")
      yield* TestClock.adjust("10 minutes")
      assert.deepStrictEqual(sizes, [1])
      yield* hook.open()
      assert.strictEqual(yield* Fiber.join(fiber), "done")
    }))

  it.effect("a renewal that comes after the release of its claim does not call it lost", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store: IEffectStore = {
        ...base,
        renew: (items) => Effect.delay(Effect.suspend(() => base.renew(items)), "5 seconds"),
        release: (items) => Effect.tap(base.release(items), () => Effect.sleep("9 seconds"))
      }
      const events: Array<EffectEvent> = []
      const execute = () => Effect.andThen(Effect.sleep("11 seconds"), Effect.fail("no"))
      const fiber = yield* fork(withEvents(events)(Effect.exit(call(store, { execute }))))
      yield* TestClock.adjust("1 minute")
      assert.isTrue(ended(fiber))
      assert.deepStrictEqual(events.map(told), ["failed"])
    }))

  it.effect("execute starts where the renewal came within two thirds of the lease, and not later", () =>
    Effect.gen(function*() {
      for (const [slow, runs] of [[2000, 1], [2001, 0]] as const) {
        const base = yield* memory
        const hook = counting()
        const store: IEffectStore = {
          ...base,
          claim: (requests) => Effect.delay(Effect.suspend(() => base.claim(requests)), 2500),
          renew: (items) => Effect.delay(Effect.suspend(() => base.renew(items)), slow)
        }
        const fiber = yield* fork(call(store, { lease: 3000, execute: hook.execute }))
        yield* TestClock.adjust("1 minute")
        if (runs === 1) assert.strictEqual(yield* Fiber.join(fiber), "done")
        else {
          const error = yield* failsWith(Fiber.join(fiber), "EffectStoreError")
          assert.deepInclude(error, { operation: "renew", problem: "it is too slow for a lease of 3000 ms" })
        }
        assert.strictEqual(hook.runs, runs)
        yield* assertIdle(store)
      }
    }))

  it.effect("a caller leaves at once while its claim is renewed before any hook runs", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const latch = Latch.makeUnsafe()
      let renewing = false
      const store: IEffectStore = {
        ...base,
        claim: (requests) => Effect.delay(Effect.suspend(() => base.claim(requests)), 2500),
        renew: (items) =>
          Effect.suspend(() => {
            renewing = true
            return Effect.andThen(latch.await, base.renew(items))
          })
      }
      const hook = counting()
      const fiber = yield* fork(call(store, { lease: 3000, execute: hook.execute }))
      yield* TestClock.adjust(2500)
      const leaves = yield* fork(Fiber.interrupt(fiber))
      yield* turns
      assert.deepStrictEqual([renewing, ended(leaves)], [true, true])
      yield* latch.open
      yield* turns
      assert.strictEqual(hook.runs, 0)
      const row = yield* store.get("k")
      assert.deepStrictEqual([row?.status, row?.doubt], ["released", "none"])
      yield* assertIdle(store)
    }))

  it.effect("a claim that was lost while no beat came through starts no execute", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const check = gated()
      const late = counting("late")
      const events: Array<EffectEvent> = []
      const cutOff: IEffectStore & { up: boolean } = {
        ...base,
        up: false,
        renew: (items) => cutOff.up ? base.renew(items) : down("renew")
      }
      const holder = yield* fork(
        withEvents(events)(
          call(cutOff, { lease: 3000, alreadyApplied: () => check.execute(), execute: late.execute })
        )
      )
      yield* TestClock.adjust(3000)
      assert.strictEqual(yield* call(anotherProcess(base), { execute: () => "other" }), "other")
      cutOff.up = true
      yield* check.open(undefined)
      assert.strictEqual(yield* Fiber.join(holder), "other")
      assert.strictEqual(late.runs, 0)
      assert.deepStrictEqual(events.map(told), ["recorded claimLost"])
    }))

  it.effect("a renewal that is not answered before execute is told as such", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), renew: () => Effect.never }
      const alreadyApplied = () => Effect.as(Effect.sleep(20_001), undefined)
      const fiber = yield* fork(call(store, { alreadyApplied, storeTimeout: 700 }))
      yield* TestClock.adjust(20_701)
      const error = yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      assert.deepInclude(error, { operation: "renew", key: "k", problem: "no answer within 700 ms" })
    }))
})

describe("a bounded wait", () => {
  it.effect("leaves no timer behind: not where the answer came, nor where it was given up", () =>
    Effect.gen(function*() {
      const { counts, on } = yield* countedClock
      const latch = Latch.makeUnsafe()
      const ask = () => Effect.as(latch.await, ["ok"])
      const asking = on(askStore("test", "k", ask, 1000, (answer) => answer === "ok"))
      const waits = [asking, asking, on(within(latch.await, 1000))]
      const [, givenUp, ...others] = yield* Effect.forEach(
        waits,
        (wait) => fork(wait as Effect.Effect<unknown, unknown>)
      )
      yield* turns
      assert.deepStrictEqual(counts, { asked: 3, asleep: 3 })
      yield* Fiber.interrupt(givenUp!)
      yield* turns
      assert.strictEqual(counts.asleep, 2)
      yield* latch.open
      yield* Effect.forEach(others, Fiber.join)
      yield* turns
      assert.strictEqual(counts.asleep, 0)
    }))

  it.effect("ends with its time, and what it waited for goes on", () =>
    Effect.gen(function*() {
      const done = yield* Deferred.make<void>()
      const work = Effect.andThen(Effect.sleep(2000), Effect.asVoid(Deferred.succeed(done, undefined)))
      const fiber = yield* fork(within(work, 1000))
      yield* TestClock.adjust(999)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      assert.isTrue(ended(fiber))
      yield* TestClock.adjust(1000)
      assert.isTrue(Deferred.isDoneUnsafe(done))
    }))
})
