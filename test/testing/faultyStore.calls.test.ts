/**
 * Effect tools over stores in every kind of trouble: two processes on one ledger, each with faults of its own, and a remote
 * that tells the truth. Nothing is ever applied twice, nobody ever gets a wrong result, and as soon as the stores are well
 * everybody gets the right one.
 */
import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectOutcomeUnknownError, EffectStore, type IEffectStore } from "chamvi-effect"
import { FaultyStore, type HappenedFault } from "chamvi-effect/testing"
import { Arbitrary, Effect, Exit, Fiber, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { anotherProcess, ended, fork, memory } from "../reconciliation/support.ts"

const PlannedFault = Schema.Struct({
  fault: Schema.Literals(["fail", "loseReply", "stall", "stallReply", "comeLate", "die", "dieAfter"]),
  operation: Schema.UndefinedOr(
    Schema.Literals(["claim", "complete", "complete", "renew", "renew", "renew", "release", "changes"])
  ),
  nth: Schema.Literals([1, 1, 2, 3, 4]),
  /** Now and then for good: an outage. */
  times: Schema.Literals([1, 1, 2, 1_000])
})

/** How an execution ends. With a check, one may fail although its effect is there, and one may say nothing at all. */
const Execution = Schema.Literals([
  "done",
  "done",
  "done",
  "done slowly",
  "failed before",
  "failed after",
  "died after"
])

const Call = Schema.Struct({
  process: Schema.Literals([0, 1]),
  key: Schema.Literals(["a", "a", "b"]),
  /** Seconds since the call before. */
  after: Schema.Literals([0, 0, 1, 9, 11, 31, 61]),
  /** Whether its caller leaves after a while. */
  leaves: Schema.Literals([false, false, false, true])
})

const Scenario = Schema.Struct({
  plans: Schema.Tuple([Schema.Array(PlannedFault), Schema.Array(PlannedFault)]),
  stall: Schema.Literals([1, 9, 20, 45]),
  executions: Schema.Array(Execution),
  /** Seconds from the remote's look at what it has to the arrival of its answer. */
  checks: Schema.Array(Schema.Literals([0, 0, 9, 25, 31])),
  calls: Schema.NonEmptyArray(Call)
})
type Scenario = typeof Scenario.Type

interface Found {
  readonly what: string
  readonly faults: ReadonlyArray<HappenedFault>
}

/** Moves the clock until the fiber has ended. */
const patiently = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.gen(function*() {
    for (let seconds = 0; !ended(fiber) && seconds < 1_000; seconds += 5) yield* TestClock.adjust("5 seconds")
    return ended(fiber) ? yield* Effect.exit(Fiber.join(fiber)) : undefined
  })

/** A remote that tells what it has, and an effect on it that may go wrong in every way. */
const makeRemote = ({ checks, executions }: Scenario) => {
  const applied = new Map<string, Array<string>>()
  let run = 0
  let check = 0
  const apply = (key: string) =>
    Effect.sync(() => {
      const results = applied.get(key) ?? []
      applied.set(key, [...results, `receipt ${results.length + 1} of ${key}`])
      return `receipt ${results.length + 1} of ${key}`
    })
  const execute = (key: string): Effect.Effect<string, unknown> =>
    Effect.suspend((): Effect.Effect<string, unknown> => {
      const lost = new EffectOutcomeUnknownError({ cause: "no answer" })
      switch (executions[run++] ?? "done") {
        case "done":
          return apply(key)
        case "done slowly":
          return Effect.tap(apply(key), Effect.sleep("12 seconds"))
        case "failed before":
          return Effect.fail("refused")
        case "failed after":
          return Effect.andThen(apply(key), Effect.fail(lost))
        case "died after":
          return Effect.andThen(apply(key), Effect.die("a bug"))
      }
    })
  const find = (key: string): Effect.Effect<string | undefined> =>
    Effect.suspend(() => {
      const answer = Effect.succeed(applied.get(key)?.[0])
      const seconds = checks[check++] ?? 0
      return seconds === 0 ? answer : Effect.delay(answer, seconds * 1_000)
    })
  return { applied, execute, find }
}

const explore = (scenario: Scenario, checked: boolean) =>
  Effect.gen(function*() {
    const below = yield* memory
    const scope = yield* Scope.make()
    const stores: Array<{ readonly store: IEffectStore; readonly faulty: FaultyStore["Service"] }> = []
    for (const plan of scenario.plans) {
      stores.push(
        yield* Scope.provide(
          FaultyStore.decorate(anotherProcess(below), { plan, stall: scenario.stall * 1_000 }),
          scope
        )
      )
    }
    const remote = makeRemote(scenario)
    const call = (process: number, key: string) =>
      applyOnce({
        key,
        tool: "charge",
        whenInDoubt: "fail",
        lease: "30 seconds",
        ...checked ? { alreadyApplied: remote.find } : {},
        execute: remote.execute
      }).pipe(Effect.provideService(EffectStore, stores[process]!.store))

    const found = (what: string) =>
      Effect.flatMap(
        Effect.forEach(stores, ({ faulty }) => faulty.report),
        (faults) => Effect.fail<Found>({ what, faults: faults.flat() })
      )
    const judge = (key: string, exit: Exit.Exit<string, unknown> | undefined) =>
      Effect.gen(function*() {
        const results = remote.applied.get(key) ?? []
        if (results.length > 1) return yield* found(`${key} was applied ${results.length} times`)
        if (exit === undefined) return yield* found(`a call of ${key} does not end`)
        if (Exit.isSuccess(exit) && exit.value !== results[0]) return yield* found(`a call answered ${exit.value}`)
      })

    const running: Array<readonly [string, Fiber.Fiber<string, unknown>]> = []
    for (const { after, key, leaves, process } of scenario.calls) {
      yield* TestClock.adjust(after * 1_000)
      const fiber = yield* fork(call(process, key))
      running.push([key, fiber])
      if (leaves) {
        yield* TestClock.adjust(1)
        yield* fork(Fiber.interrupt(fiber))
      }
    }
    for (const [key, fiber] of running) yield* judge(key, yield* patiently(fiber))

    // the stores are well again, and whatever is left of the trouble runs out
    yield* Effect.forEach(stores, ({ faulty }) => faulty.mend)
    yield* TestClock.adjust("2 minutes")
    for (const process of [0, 1]) {
      for (const key of new Set(scenario.calls.map(({ key }) => key))) {
        // what the script still holds of failures is used up first
        let exit = yield* patiently(yield* fork(call(process, key)))
        for (let more = scenario.executions.length; more > 0 && exit !== undefined && Exit.isFailure(exit); more--) {
          exit = yield* patiently(yield* fork(call(process, key)))
        }
        yield* judge(key, exit)
        if (checked && exit !== undefined && Exit.isFailure(exit))
          return yield* found(`${key} gets no result: ${String(exit.cause)}`)
      }
    }
    yield* Scope.close(scope, Exit.void)
    return true
  })

const holds = (checked: boolean, runs: number, seed: number) =>
  Effect.gen(function*() {
    const result = yield* Arbitrary.checkEffect(
      Arbitrary.schema(Scenario),
      (scenario) => Effect.provide(explore(scenario, checked), TestClock.layer()),
      { runs, seed, size: 30, maxShrinks: 300 }
    )
    assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
  })

describe("effect tools on faulty stores", () => {
  it.effect(
    "with a true check never apply twice, never answer wrongly, and recover",
    () => holds(true, 150, 1),
    120_000
  )

  it.effect("without a check never apply twice where doubt is a failure", () => holds(false, 100, 2), 120_000)
})
