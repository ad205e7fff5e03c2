/**
 * Claims in time: to the millisecond, kept alive, lost, and never started on when too little of the lease is left.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
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
  withEvents,
  withLogs
} from "./support.ts"

const claimOf = (claimId: string, lease: number) => ({
  key: "k",
  tool: "t",
  runId: "",
  owner: "another",
  claimId,
  lease,
  fingerprint: ""
})

describe("reconciliation", () => {
  it.effect("a dead claim is taken over at the end of its lease and not before", () =>
    Effect.gen(function*() {
      for (const [after, taken] of [[29_999, false], [30_000, true], [30_001, true]] as const) {
        const store = yield* memory
        yield* store.claim([claimOf("dead", 30_000)])
        yield* TestClock.adjust(after)
        const hook = counting()
        const now = call(store, { waitFor: 0, alreadyApplied: () => undefined, execute: hook.execute })
        if (taken) assert.strictEqual(yield* now, "done")
        else assert.strictEqual((yield* failsWith(now, "EffectInProgressError"))["remaining"], 1)
        assert.strictEqual(hook.runs, taken ? 1 : 0)
      }
    }))

  it.effect("a waiting caller takes a dead claim over at the very end of its lease", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([claimOf("dead", 12_345)])
      const hook = counting()
      const fiber = yield* fork(call(store, { execute: hook.execute }))
      yield* TestClock.adjust(12_344)
      assert.strictEqual(hook.runs, 0)
      yield* TestClock.adjust(1)
      assert.strictEqual(hook.runs, 1)
      yield* Fiber.join(fiber)
    }))

  it.effect("a lease of zero is over at once", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([claimOf("dead", 0)])
      assert.strictEqual(yield* call(store, { waitFor: 0 }), "done")
      const hook = gated()
      let beats = 0
      const renew: IEffectStore["renew"] = (items) => {
        beats++
        return store.renew(items)
      }
      const holder = yield* fork(call({ ...store, renew }, { key: "zero", lease: 0, execute: hook.execute }))
      yield* TestClock.adjust(3)
      assert.isAtMost(beats, 4)
      assert.strictEqual(yield* call(anotherProcess(store), { key: "zero", waitFor: 0 }), "done")
      yield* hook.open("late")
      assert.strictEqual(yield* Fiber.join(holder), "done")
    }))

  it.effect("a heartbeat keeps the claim", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const fiber = yield* fork(call(store, { lease: 3000, execute: hook.execute }))
      const leaseEnd = Effect.map(store.get("k"), (row) => row?.leaseEnd)
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* leaseEnd, 3000)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* leaseEnd, 4000)
      yield* TestClock.adjust(999)
      assert.strictEqual(yield* leaseEnd, 4000)
      yield* TestClock.adjust(100_001)
      assert.strictEqual(yield* leaseEnd, 105_000)
      yield* failsWith(call(anotherProcess(store), { waitFor: 0 }), "EffectInProgressError")
      yield* hook.open("x")
      assert.strictEqual(yield* Fiber.join(fiber), "x")
    }))

  it.effect("each claim is renewed at a third of its own lease, in one request for those that are due together", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const beats: Array<string> = []
      const store: IEffectStore = {
        ...base,
        renew: (items) =>
          Effect.suspend(() => {
            beats.push(items.map(({ key }) => key).sort().join("+"))
            return base.renew(items)
          })
      }
      const hook = gated()
      const keys: ReadonlyArray<readonly [string, number]> = [["a", 3000], ["b", 3000], ["c", 6000], ["d", 1500]]
      const fibers = yield* Effect.forEach(
        keys,
        ([key, lease]) => fork(call(store, { key, lease, execute: hook.execute }))
      )
      yield* TestClock.adjust(2000)
      assert.deepStrictEqual(beats, ["d", "a+b+d", "d", "a+b+c+d"])
      yield* hook.open()
      yield* Effect.forEach(fibers, Fiber.join)
      yield* TestClock.adjust("1 hour")
      // nothing beats for claims that are done
      assert.strictEqual(beats.length, 4)
    }))

  it.effect("a renewal that fails is tried again before the next beat", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let failures = 2
      const store: IEffectStore = { ...base, renew: (items) => failures-- > 0 ? down("renew") : base.renew(items) }
      const hook = gated()
      const fiber = yield* fork(call(store, { lease: 900, execute: hook.execute }))
      yield* TestClock.adjust(899)
      assert.isAbove((yield* base.get("k"))!.leaseEnd, 900)
      yield* hook.open()
      yield* Fiber.join(fiber)
    }))

  it.effect("a store that never answers a renewal is asked again at the next beat", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let asked = 0
      const store: IEffectStore = { ...base, renew: (items) => asked++ === 0 ? Effect.never : base.renew(items) }
      const hook = gated()
      const fiber = yield* fork(call(store, { lease: 900, execute: hook.execute }))
      yield* TestClock.adjust(899)
      assert.strictEqual((yield* base.get("k"))!.leaseEnd, 1500)
      yield* hook.open()
      yield* Fiber.join(fiber)
    }))

  it.effect("execute does not start on the last third of a lease", () =>
    Effect.gen(function*() {
      for (const [slow, renewals] of [[19_999, 0], [20_000, 0], [20_001, 1]] as const) {
        const base = yield* memory
        let asked = 0
        // a claim that is slow on its way back: its lease runs since before it was granted
        const store: IEffectStore = {
          ...base,
          claim: (requests) => Effect.delay(Effect.suspend(() => base.claim(requests)), slow),
          renew: (items) =>
            Effect.suspend(() => {
              asked++
              return base.renew(items)
            })
        }
        const fiber = yield* fork(call(store, { storeTimeout: "1 minute", execute: () => asked }))
        yield* TestClock.adjust(slow)
        assert.strictEqual(yield* Fiber.join(fiber), renewals)
      }
    }))

  it.effect("execute does not start after a slow check whose renewals do not come through", () =>
    Effect.gen(function*() {
      const renewals: ReadonlyArray<IEffectStore["renew"]> = [
        () => down("renew"),
        () => Effect.die("broken"),
        () => {
          throw new Error("broken")
        },
        () => Effect.succeed([]),
        () => Effect.succeed("ok" as never),
        () => Effect.succeed([true] as never)
      ]
      for (const renew of renewals) {
        for (const [slow, runs] of [[20_000, 1], [20_001, 0]] as const) {
          const store = { ...(yield* memory), renew }
          const hook = counting()
          const alreadyApplied = () => Effect.as(Effect.sleep(slow), undefined)
          const fiber = yield* fork(call(store, { alreadyApplied, execute: hook.execute }))
          yield* TestClock.adjust(slow)
          if (runs === 0) yield* failsWith(Fiber.join(fiber), "EffectStoreError")
          else yield* Fiber.join(fiber)
          assert.strictEqual(hook.runs, runs)
        }
      }
    }))

  it.effect("execute does not start on a renewal that is never answered", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), renew: () => Effect.never }
      const hook = counting()
      const alreadyApplied = () => Effect.as(Effect.sleep(20_001), undefined)
      const fiber = yield* fork(call(store, { alreadyApplied, execute: hook.execute }))
      yield* TestClock.adjust(30_000)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("a process that froze in its check does not apply on a claim that another one took over", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const check = gated()
      const late = counting("late")
      const events: Array<EffectEvent> = []
      const holder = yield* fork(
        withEvents(events)(
          call(anotherProcess(base), {
            lease: 3000,
            alreadyApplied: () => Effect.uninterruptible(check.execute()),
            execute: late.execute
          })
        )
      )
      // the other one takes over behind its back: as if the beats had not come through
      yield* base.release([{ key: "k", token: 1, verdict: "inDoubt", cleared: false }])
      assert.strictEqual(yield* call(base, { alreadyApplied: () => undefined, execute: () => "other" }), "other")
      yield* TestClock.adjust(2999)
      yield* check.open(undefined)
      assert.strictEqual(yield* Fiber.join(holder), "other")
      assert.strictEqual(late.runs, 0)
      assert.deepStrictEqual(events.map(told), ["recorded claimLost"])
    }))

  it.effect("a renewal that is too slow for the lease starts no execute and keeps nobody waiting", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const hook = counting()
      const store: IEffectStore = {
        ...base,
        claim: (requests) => Effect.delay(Effect.suspend(() => base.claim(requests)), 2500),
        renew: (items) => Effect.delay(Effect.suspend(() => base.renew(items)), 2500)
      }
      const fiber = yield* fork(call(store, { lease: 3000, execute: hook.execute }))
      yield* TestClock.adjust("1 minute")
      assert.isTrue(ended(fiber))
      yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      assert.strictEqual(hook.runs, 0)
      yield* assertIdle(store)
    }))

  it.effect("a lost claim interrupts execute", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = anotherProcess(base)
      const hook = gated()
      const events: Array<EffectEvent> = []
      const holders = yield* Effect.forEach([1, 2], () =>
        fork(withEvents(events)(call(store, { lease: 3000, execute: hook.execute }))))
      yield* base.release([{ key: "k", token: 1, verdict: "inDoubt", cleared: false }])
      const other = gated()
      const taker = yield* fork(call(base, {
        alreadyApplied: () =>
          undefined,
        execute: other.execute
      }))
      assert.strictEqual(hook.cut, 0)
      yield* TestClock.adjust(1000)
      // found lost, interrupted, and started again at step 1: it waits for the other
      assert.strictEqual(hook.cut, 1)
      assert.isFalse(holders.some(ended))
      yield* other.open("other")
      assert.deepStrictEqual(yield* Effect.forEach(holders, Fiber.join), ["other", "other"])
      yield* Fiber.join(taker)
      assert.strictEqual(hook.runs, 1)
      assert.sameMembers(events.map(told), ["recorded claimLost", "joined claimLost"])
      yield* assertIdle(store, base)
    }))

  it.effect("a lost claim does not cost the value of an uninterruptible execute", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = anotherProcess(base)
      const hook = gated()
      const events: Array<EffectEvent> = []
      const options = { lease: 3000, execute: () => Effect.uninterruptible(hook.execute()) }
      const holder = yield* fork(withEvents(events)(call(store, options)))
      yield* base.release([{ key: "k", token: 1, verdict: "inDoubt", cleared: false }])
      yield* TestClock.adjust(1000)
      assert.isFalse(ended(holder))
      yield* hook.open("mine")
      assert.strictEqual(yield* Fiber.join(holder), "mine")
      assert.deepStrictEqual([events.map(told), hook.runs], [["executed claimLost"], 1])
    }))

  it.effect("a lost claim answers the record and is reported", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = anotherProcess(base)
      const hook = gated()
      const events: Array<EffectEvent> = []
      const lines: Array<string> = []
      const holder = yield* fork(
        call(store, { execute: hook.execute }).pipe(withEvents(events), withLogs(lines))
      )
      yield* base.release([{ key: "k", token: 1, verdict: "inDoubt", cleared: false }])
      assert.strictEqual(yield* call(base, { execute: () => "other" }), "other")
      yield* hook.open("mine")
      assert.strictEqual(yield* Fiber.join(holder), "other")
      assert.deepStrictEqual(events.map(told), ["recorded claimLost"])
      assert.isTrue(lines.some((line) => line.startsWith("Warn: ") && line.includes(`"k"`)))
      assert.strictEqual(yield* call(store), "other")
    }))

  it.effect("a lost claim answers its own result where there is no record", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const store = anotherProcess(base)
      const events: Array<EffectEvent> = []
      const withoutRecord: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
        base.remove("k"),
        base.release([{ key: "k", token: 1, verdict: "inDoubt", cleared: false }]),
        Effect.andThen(base.remove("k"), base.claim([claimOf("other", 60_000)])),
        Effect.andThen(base.remove("k"), call(base, { tool: "u", execute: () => "another tool's" }))
      ]
      for (const behindItsBack of withoutRecord) {
        yield* base.remove("k")
        const hook = gated()
        const holder = yield* fork(withEvents(events)(call(store, { execute: hook.execute })))
        const token = (yield* base.get("k"))!.token
        assert.isAbove(token, 0)
        yield* base.release([{ key: "k", token, verdict: "inDoubt", cleared: false }])
        yield* behindItsBack
        yield* hook.open("mine")
        assert.strictEqual(yield* Fiber.join(holder), "mine")
      }
      assert.deepStrictEqual(events.map(told), new Array(withoutRecord.length).fill("executed claimLost"))
    }))

  it.effect("a lost claim answers its own result where the record cannot be read", () =>
    Effect.gen(function*() {
      const base = yield* memory
      for (
        const get of [() => down("get"), () => Effect.die("torn"), () => Effect.never] as ReadonlyArray<
          IEffectStore["get"]
        >
      ) {
        const store: IEffectStore = { ...base, get }
        yield* base.remove("k")
        const hook = gated()
        const holder = yield* fork(call(store, { execute: hook.execute }))
        yield* base.release([{ key: "k", token: (yield* base.get("k"))!.token, verdict: "inDoubt", cleared: false }])
        yield* hook.open("mine")
        yield* turns
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* Fiber.join(holder), "mine")
      }
    }))

  it.effect("a takeover is reported", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([claimOf("dead", 10)])
      yield* TestClock.adjust(10)
      const events: Array<EffectEvent> = []
      yield* withEvents(events)(call(store))
      assert.deepStrictEqual(events.map(told), ["executed takenOver executedInDoubt"])
    }))
})
