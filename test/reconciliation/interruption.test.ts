/**
 * Callers that leave after every possible number of steps. Whatever the moment: everybody ends, nothing is left over, and
 * the effect is applied at most once.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution, type IEffectStore } from "chamvi-effect"
import { Cause, Effect, Exit, Fiber, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import {
  anotherProcess,
  assertIdle,
  call,
  type CallOptions,
  ended,
  fork,
  isInterrupted,
  memory,
  tagOf,
  turns
} from "./support.ts"

/** Every operation waits before and after it does its work, as over a network. */
const remoteStore = (store: IEffectStore): IEffectStore => {
  const slowly =
    <A extends ReadonlyArray<unknown>, B, E>(operation: (...args: A) => Effect.Effect<B, E>) => (...args: A) =>
      Effect.yieldNow.pipe(
        Effect.andThen(Effect.suspend(() => operation(...args))),
        Effect.tap(() => Effect.yieldNow)
      )
  return {
    ...store,
    claim: slowly(store.claim),
    complete: slowly(store.complete),
    release: slowly(store.release),
    renew: slowly(store.renew)
  }
}

/** A remote with hooks: `execute` applies half way through, and the check is true. */
const makeRemote = () => {
  const remote = {
    applied: 0,
    at: 0,
    most: 0,
    // one that is never cut between the request and its answer
    whole: () => Effect.uninterruptible(remote.cut()),
    cut: () =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          remote.most = Math.max(remote.most, ++remote.at)
        }),
        () =>
          Effect.gen(function*() {
            yield* Effect.yieldNow
            remote.applied++
            yield* Effect.yieldNow
            return "applied"
          }),
        () => Effect.sync(() => void remote.at--)
      ),
    check: () => Effect.andThen(Effect.yieldNow, Effect.sync(() => remote.applied > 0 ? "applied" : undefined))
  }
  return remote
}

type Remote = ReturnType<typeof makeRemote>

interface Scenario {
  readonly title: string
  readonly options: (remote: Remote) => CallOptions
  /** How many callers there are, and after how many times the given number of steps each leaves; `undefined` stays. */
  readonly leaving: ReadonlyArray<number | undefined>
  /** Whether every second caller is in another process. */
  readonly processes: 1 | 2
}

const checked = (remote: Remote): CallOptions => ({ alreadyApplied: remote.check, execute: remote.cut })
const whole = (remote: Remote): CallOptions => ({ whenInDoubt: "fail", execute: remote.whole })

const scenarios: ReadonlyArray<Scenario> = [
  { title: "one caller", options: checked, leaving: [1], processes: 1 },
  { title: "one caller of an uninterruptible execute", options: whole, leaving: [1], processes: 1 },
  { title: "two callers one after the other", options: checked, leaving: [1, 2], processes: 1 },
  { title: "two callers at once", options: checked, leaving: [1, 1], processes: 1 },
  { title: "the first of two callers", options: whole, leaving: [1, undefined], processes: 1 },
  { title: "the second of two callers", options: whole, leaving: [undefined, 1], processes: 1 },
  { title: "the first of two processes", options: checked, leaving: [1, undefined], processes: 2 },
  { title: "both processes", options: checked, leaving: [1, 2], processes: 2 },
  {
    title: "the first of two processes, with an uninterruptible execute",
    options: whole,
    leaving: [1, undefined],
    processes: 2
  }
]

const leaveAfter = (steps: number | undefined, fiber: Fiber.Fiber<unknown, unknown>) =>
  steps === undefined
    ? Effect.void
    : Effect.andThen(Effect.repeat(Effect.yieldNow, { times: steps }), Fiber.interrupt(fiber))

/** With this many operations between two yields, a fiber of Effect 4.1 gets through one or two of its own. */
const fewest = 3

const run = Effect.fnUntraced(function*(scenario: Scenario, steps: number, operations: number) {
  const base = yield* memory
  const stores = scenario.processes === 1 ? [remoteStore(base)] : [remoteStore(base), remoteStore(anotherProcess(base))]
  const remote = makeRemote()
  const options = scenario.options(remote)
  const callers = yield* Effect.forEach(
    scenario.leaving,
    (_, i) =>
      fork(Effect.provideService(call(stores[i % stores.length]!, options), Scheduler.MaxOpsBeforeYield, operations))
  )
  const leavers = yield* Effect.forEach(
    scenario.leaving,
    (times, i) => fork(leaveAfter(times === undefined ? undefined : times * steps, callers[i]!))
  )
  yield* Effect.forEach(leavers, Fiber.join)
  yield* Effect.repeat(turns, { times: 8 })
  // where a fiber yields between its steps, it may ask for changes after the change
  if (!callers.every(ended)) yield* TestClock.adjust("2 seconds")
  yield* turns
  assert.isTrue(callers.every(ended))
  const exits = yield* Effect.forEach(callers, Fiber.await)
  // Cut between the call of execute and the first step of the Effect that it answered: the key is in doubt although nothing
  // was applied. That takes a fiber that yields just there.
  const cutAtItsStart = operations === fewest && options.whenInDoubt === "fail" && remote.applied === 0
    && (yield* base.get("k"))?.doubt === "inDoubt"
  for (const [i, exit] of exits.entries()) {
    if (scenario.leaving[i] !== undefined && isInterrupted(exit)) continue
    if (!cutAtItsStart) assert.deepStrictEqual(exit, Exit.succeed("applied"))
    else assert.strictEqual(Exit.isFailure(exit) && tagOf(Cause.squash(exit.cause)), "EffectInDoubtError")
  }
  yield* assertIdle(...stores)
  assert.isAtMost(remote.applied, 1)
  if (cutAtItsStart) yield* base.resolve("k", EffectResolution.notApplied)
  // whoever comes next gets the effect's result, and the effect is there once
  const next = yield* fork(call(stores.at(-1)!, options))
  yield* Effect.repeat(turns, { times: 5 })
  assert.isTrue(ended(next))
  assert.strictEqual(yield* Fiber.join(next), "applied")
  assert.deepStrictEqual([remote.applied, remote.most, remote.at], [1, 1, 0])
  yield* assertIdle(...stores)
  return exits.some(isInterrupted)
})

describe("reconciliation", () => {
  for (const scenario of scenarios) {
    it.effect(`leaving at every suspension: ${scenario.title}`, () =>
      Effect.gen(function*() {
        let steps = 0
        // until nobody is quick enough any more to leave before the end
        while (yield* run(scenario, steps, 2048)) assert.isBelow(++steps, 200)
        assert.isAbove(steps, 3)
      }))

    it.effect(`leaving after every few operations: ${scenario.title}`, () =>
      Effect.gen(function*() {
        let steps = 0
        while (yield* run(scenario, steps, fewest)) assert.isBelow(++steps, 1000)
        assert.isAbove(steps, 20)
      }))
  }
})
