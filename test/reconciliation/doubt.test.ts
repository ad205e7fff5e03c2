/**
 * What stays on a key after an attempt that left no record, and what clears it.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectOutcomeUnknownError, EffectResolution, type IEffectStore } from "chamvi-effect"
import { Cause, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import {
  anotherProcess,
  assertIdle,
  call,
  type CallOptions,
  counting,
  ended,
  failsWith,
  failureOf,
  fork,
  gated,
  memory,
  tagOf,
  told,
  turns,
  withEvents,
  withLogs
} from "./support.ts"

const no = { _tag: "No" }
const unknown = new EffectOutcomeUnknownError({ cause: new Error("timeout") })

const stateOf = (store: IEffectStore) => Effect.map(store.get("k"), (row) => `${row?.status} ${row?.doubt}`)

/** Leaves the key in doubt. */
const cutOff = (store: IEffectStore) =>
  Effect.flatMap(fork(call(store, { execute: () => Effect.never })), Fiber.interrupt)

/** Leaves the key tried. */
const tryOnce = (store: IEffectStore) => failsWith(call(store, { execute: () => Effect.fail(no) }), "No")

describe("reconciliation", () => {
  it.effect("a claim without execute is released clean", () =>
    Effect.gen(function*() {
      const unstarted: ReadonlyArray<CallOptions> = [
        { alreadyApplied: () => Effect.fail(no) },
        { alreadyApplied: () => Effect.die(no) },
        { alreadyApplied: () => Effect.interrupt }
      ]
      for (const options of unstarted) {
        const store = yield* memory
        yield* failureOf(call(store, options))
        assert.strictEqual(yield* stateOf(store), "released none")
      }
      const store = yield* memory
      const check = gated()
      const fiber = yield* fork(call(store, { alreadyApplied: check.execute }))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual([yield* stateOf(store), check.cut], ["released none", 1])
    }))

  it.effect("a failure of execute leaves the key tried", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* tryOnce(store)
      assert.strictEqual(yield* stateOf(store), "released tried")
      // by its own word nothing was applied: no policy is asked
      const lines: Array<string> = []
      assert.strictEqual(yield* withLogs(lines)(call(store, { whenInDoubt: "fail" })), "done")
      assert.deepStrictEqual(lines, [])
    }))

  it.effect("an interrupted execute leaves the key in doubt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
      yield* assertIdle(store)
    }))

  it.effect("an execute that dies leaves the key in doubt", () =>
    Effect.gen(function*() {
      const defects: ReadonlyArray<() => unknown> = [
        () => Effect.die(no),
        () =>
          Effect.sync(() => {
            throw new Error("half way")
          }),
        () => Effect.ensuring(Effect.fail(no), Effect.die("cleanup"))
      ]
      for (const execute of defects) {
        const store = yield* memory
        yield* failureOf(call(store, { execute }))
        assert.strictEqual(yield* stateOf(store), "released inDoubt")
      }
    }))

  it.effect("an unknown outcome leaves the key in doubt", () =>
    Effect.gen(function*() {
      for (
        const execute of [() => Effect.fail(unknown), () => Promise.reject(unknown), () => {
          throw unknown
        }]
      ) {
        const store = yield* memory
        assert.strictEqual(yield* failureOf(call(store, { execute })), unknown)
        assert.strictEqual(yield* stateOf(store), "released inDoubt")
        // there is no lease to wait for, in any process
        yield* failsWith(call(anotherProcess(store), { whenInDoubt: "fail", waitFor: 0 }), "EffectInDoubtError")
      }
    }))

  it.effect("an execute of which not every part says by itself that it applied nothing leaves the key in doubt", () =>
    Effect.gen(function*() {
      const together = (...failures: ReadonlyArray<unknown>) =>
        Effect.forEach(
          failures,
          (failure) => Effect.uninterruptible(Effect.andThen(Effect.yieldNow, Effect.fail(failure))),
          { concurrency: "unbounded" }
        )
      const wholes: ReadonlyArray<readonly [whole: Effect.Effect<unknown, unknown>, state: string]> = [
        [together(no, no), "released tried"],
        [together(no, unknown), "released inDoubt"],
        [together(unknown, no), "released inDoubt"],
        [Effect.failCause(Cause.combine(Cause.fail(no), Cause.die(no))), "released inDoubt"],
        // no part says anything
        [Effect.failCause(Cause.empty), "released inDoubt"]
      ]
      for (const [whole, state] of wholes) {
        const store = yield* memory
        yield* Effect.exit(call(store, { execute: () => whole }))
        assert.strictEqual(yield* stateOf(store), state)
      }
    }))

  it.effect("a claim whose holder gave no sign of life is in doubt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      // claimed by a process that ended with it
      yield* store.claim([{
        key: "k",
        tool: "t",
        runId: "",
        owner: "dead",
        claimId: "x",
        lease: 1000,
        fingerprint: ""
      }])
      yield* TestClock.adjust(1000)
      const events: Array<EffectEvent> = []
      yield* withEvents(events)(failsWith(call(store, { whenInDoubt: "fail" }), "EffectInDoubtError"))
      assert.deepStrictEqual(events.map(told), ["inDoubt takenOver"])
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
    }))

  it.effect("whenInDoubt decides where nothing can be asked", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const hook = counting()
      const events: Array<EffectEvent> = []
      const lines: Array<string> = []
      yield* Effect.gen(function*() {
        const failing = { whenInDoubt: "fail", execute: hook.execute } as const
        const error = yield* failsWith(call(store, failing), "EffectInDoubtError")
        assert.deepStrictEqual([error["key"], error["tool"]], ["k", "t"])
        yield* failsWith(call(anotherProcess(store), failing), "EffectInDoubtError")
        assert.strictEqual(hook.runs, 0)
        assert.deepStrictEqual(lines, [])
        assert.strictEqual(yield* call(store, { execute: hook.execute }), "done")
        assert.strictEqual(lines.length, 1)
        assert.match(lines[0]!, /^Warn: .*"k".*"t"/)
      }).pipe(withEvents(events), withLogs(lines))
      assert.deepStrictEqual(events.map(told), ["inDoubt", "inDoubt", "executed executedInDoubt"])
      assert.strictEqual(hook.runs, 1)
    }))

  it.effect("with a check, doubt is the check's to clear and whenInDoubt is not asked", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const events: Array<EffectEvent> = []
      const options = { whenInDoubt: "fail", alreadyApplied: () => undefined } as const
      assert.strictEqual(yield* withEvents(events)(call(store, options)), "done")
      assert.deepStrictEqual(events.map(told), ["executed"])
    }))

  it.effect("a failing check leaves doubt as it was", () =>
    Effect.gen(function*() {
      const checks: ReadonlyArray<() => unknown> = [
        () => Effect.fail(no),
        () => Effect.die(no),
        () => Effect.interrupt,
        () => 10n,
        () => {
          throw no
        }
      ]
      for (const [leave, state] of [[cutOff, "released inDoubt"], [tryOnce, "released tried"]] as const) {
        for (const alreadyApplied of checks) {
          const store = yield* memory
          yield* leave(store)
          const seenAt = (yield* store.get("k"))!.seenAt
          yield* TestClock.adjust(1)
          const hook = counting()
          yield* Effect.repeat(failureOf(call(store, { alreadyApplied, execute: hook.execute })), { times: 2 })
          assert.strictEqual(yield* stateOf(store), state)
          // who only looked is no sign of life of the attempt
          assert.strictEqual((yield* store.get("k"))!.seenAt, seenAt)
          assert.strictEqual(hook.runs, 0)
        }
      }
    }))

  it.effect("an interrupted check leaves doubt as it was", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const fiber = yield* fork(call(store, { alreadyApplied: () => Effect.never }))
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
    }))

  it.effect("a plain failure does not clear the doubt of an earlier attempt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      yield* tryOnce(store)
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
      yield* failsWith(call(store, { whenInDoubt: "fail" }), "EffectInDoubtError")
    }))

  it.effect("a believed no, a record and a resolution clear doubt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      // the check said no, and then execute failed plainly
      yield* failsWith(call(store, { alreadyApplied: () => undefined, execute: () => Effect.fail(no) }), "No")
      assert.strictEqual(yield* stateOf(store), "released tried")
      yield* cutOff(store)
      const saysNo = { whenInDoubt: "fail", alreadyApplied: () => EffectResolution.notApplied } as const
      yield* failsWith(call(store, { ...saysNo, execute: () => Effect.fail(no) }), "No")
      assert.strictEqual(yield* stateOf(store), "released tried")
      yield* cutOff(store)
      yield* store.resolve("k", EffectResolution.notApplied)
      assert.strictEqual(yield* stateOf(store), "released none")
      yield* cutOff(store)
      yield* call(store)
      assert.strictEqual(yield* stateOf(store), "recorded none")
    }))

  it.effect("an unknown answer of the check puts the key in doubt and asks whenInDoubt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      const check = { alreadyApplied: () => EffectResolution.unknown, execute: hook.execute }
      yield* failsWith(call(store, { ...check, whenInDoubt: "fail" }), "EffectInDoubtError")
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
      assert.strictEqual(hook.runs, 0)
      // a failure of its own does not say that the earlier attempt applied nothing
      yield* failsWith(call(store, { ...check, execute: () => Effect.fail(no) }), "No")
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
      assert.strictEqual(yield* call(store, check), "done")
      // nor where nobody knew of an earlier attempt before
      const fresh = yield* memory
      yield* failsWith(call(fresh, { ...check, execute: () => Effect.fail(no) }), "No")
      assert.strictEqual(yield* stateOf(fresh), "released inDoubt")
    }))

  it.effect("settle repeats the remote check before believing a no", () =>
    Effect.gen(function*() {
      for (const leave of [cutOff, tryOnce]) {
        const store = yield* memory
        yield* TestClock.adjust(7)
        yield* leave(store)
        yield* TestClock.adjust(400)
        const hook = counting()
        let asked = 0
        const alreadyApplied = () => Effect.sync(() => void asked++)
        const fiber = yield* fork(call(store, { settle: 2000, alreadyApplied, execute: hook.execute }))
        assert.strictEqual(asked, 1)
        yield* TestClock.adjust(1599)
        const before = asked
        assert.isAbove(before, 2)
        assert.deepStrictEqual([hook.runs, ended(fiber)], [0, false])
        yield* TestClock.adjust(1)
        // 2000 ms after the attempt, not after this call
        assert.strictEqual(yield* Fiber.join(fiber), "done")
        assert.deepStrictEqual([asked, hook.runs], [before + 1, 1])
      }
    }))

  it.effect("a check that finds the effect within settle ends the wait", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const hook = counting()
      let answer: unknown = undefined
      const fiber = yield* fork(
        call(store, { settle: "1 minute", alreadyApplied: () => answer, execute: hook.execute })
      )
      yield* TestClock.adjust("30 seconds")
      assert.isFalse(ended(fiber))
      answer = "found"
      // asked again after 25.6 s, at 51.1 s
      yield* TestClock.adjust("25 seconds")
      assert.isTrue(ended(fiber))
      assert.strictEqual(yield* Fiber.join(fiber), "found")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("settle asks once where no attempt came before, or where it is over", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let asked = 0
      const options = { settle: 1000, alreadyApplied: () => Effect.sync(() => void asked++) }
      const failing = { ...options, execute: () => Effect.fail(no) }
      yield* failsWith(call(store, failing), "No")
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust(1000)
      yield* failsWith(call(store, failing), "No")
      assert.strictEqual(asked, 2)
      yield* TestClock.adjust(999)
      const fiber = yield* fork(failsWith(call(store, failing), "No"))
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
    }))

  it.effect("settle counts from the attempt's last sign of life, however slow the claim was", () =>
    Effect.gen(function*() {
      const store = yield* memory
      // the claim leaves at 0, waits on its way for 900 ms, and is granted then; meanwhile another attempt ends at 900
      const slow: IEffectStore = { ...store, claim: (requests) => Effect.delay(store.claim(requests), 900) }
      let asked = 0
      const alreadyApplied = () => Effect.sync(() => void asked++)
      const fiber = yield* fork(call(slow, { settle: 1000, alreadyApplied }))
      yield* TestClock.adjust(899)
      yield* cutOff(store)
      yield* TestClock.adjust(1)
      yield* TestClock.adjust(998)
      assert.isFalse(ended(fiber))
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "done")
    }))

  it.effect("settle counts from the end of the lease of a holder that never released: it may have sent until then", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* store.claim([
        { key: "k", tool: "t", runId: "", owner: "dead", claimId: "x", lease: 900, fingerprint: "" }
      ])
      yield* TestClock.adjust(900)
      const hook = counting()
      const fiber = yield* fork(
        call(store, { settle: 700, lease: "1 hour", alreadyApplied: () => undefined, execute: hook.execute })
      )
      yield* TestClock.adjust(699)
      assert.deepStrictEqual([hook.runs, ended(fiber)], [0, false])
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(fiber), "done")
    }))

  it.effect("leaving during settle gives the claim back as it was", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const fiber = yield* fork(call(store, { settle: "1 hour", alreadyApplied: () => undefined }))
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* stateOf(store), "released inDoubt")
      yield* assertIdle(store)
      yield* turns
    }))

  it.effect("every caller of a key in doubt gets the error until someone resolves it", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* cutOff(store)
      const failing = { whenInDoubt: "fail" } as const
      const results = yield* Effect.forEach([1, 2, 3], () => failureOf(call(store, failing)), { concurrency: 3 })
      assert.deepStrictEqual(results.map(tagOf), ["EffectInDoubtError", "EffectInDoubtError", "EffectInDoubtError"])
      yield* store.resolve("k", EffectResolution.unknown)
      yield* failsWith(call(store, failing), "EffectInDoubtError")
      yield* store.resolve("k", EffectResolution.applied("by hand"))
      assert.strictEqual(yield* call(store, failing), "by hand")
    }))
})
