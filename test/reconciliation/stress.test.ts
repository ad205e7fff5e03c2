/**
 * Random schedules: many callers in three processes, who leave when they like, over a store and a remote that fail, are
 * slow and lose replies. Time is the test's, and a seed decides everything, so that a failure can be run again.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectOutcomeUnknownError, EffectResolution, EffectStoreError, type IEffectStore } from "chamvi-effect"
import { Cause, Effect, Exit, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import { anotherProcess, assertIdle, call, ended, fork, isInterrupted, memory, tagOf, turns } from "./support.ts"

/** Mulberry32: the same numbers for the same seed, everywhere. */
const makeDice = (seed: number) => {
  let state = seed
  const next = (): number => {
    state = (state + 0x6D2B79F5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  return {
    chance: (probability: number) => next() < probability,
    below: (limit: number) => Math.floor(next() * limit),
    of: <A>(list: ReadonlyArray<A>): A => list[Math.floor(next() * list.length)]!
  }
}

type Dice = ReturnType<typeof makeDice>

const trouble = new EffectStoreError({ operation: "any", problem: "bad luck" })

/**
 * Each operation may fail before or after it does its work, and be slow before or after. Renewals are left alone: a holder
 * that cannot renew outlives its lease, and then nothing is promised.
 */
const unreliable = (store: IEffectStore, dice: Dice, weather: { calm: boolean }): IEffectStore => {
  const luck =
    <A extends ReadonlyArray<unknown>, B>(operation: (...args: A) => Effect.Effect<B, EffectStoreError>) =>
    (...args: A) =>
      Effect.suspend(() => {
        if (weather.calm) return operation(...args)
        const slow = (probability: number) => dice.chance(probability) ? Effect.sleep(dice.below(14_000)) : Effect.void
        const fail = (probability: number) => dice.chance(probability) ? Effect.fail(trouble) : Effect.void
        return slow(0.15).pipe(
          Effect.andThen(fail(0.1)),
          Effect.andThen(Effect.suspend(() => operation(...args))),
          Effect.tap(() => slow(0.15)),
          Effect.tap(() => fail(0.1))
        )
      })
  return { ...store, claim: luck(store.claim), complete: luck(store.complete), release: luck(store.release) }
}

interface Remote {
  readonly applied: Map<string, number>
  readonly running: Map<string, number>
  readonly broken: Array<string>
}

/** Applies in one moment of a random time, and then tells of it, or does not. */
const makeExecute = (remote: Remote, dice: Dice) => (key: string) => {
  const pause = Effect.suspend(() => dice.chance(0.5) ? Effect.sleep(dice.below(20_000)) : Effect.yieldNow)
  const body = Effect.gen(function*() {
    yield* pause
    if (dice.chance(0.1)) return yield* Effect.fail({ _tag: "Plain" })
    if (dice.chance(0.05)) return yield* new EffectOutcomeUnknownError({})
    const result = apply(remote, key)
    yield* pause
    if (dice.chance(0.1)) return yield* new EffectOutcomeUnknownError({})
    if (dice.chance(0.05)) return yield* Effect.die("crash")
    return result
  })
  return Effect.acquireUseRelease(
    Effect.sync(() => {
      const at = (remote.running.get(key) ?? 0) + 1
      remote.running.set(key, at)
      if (at > 1) remote.broken.push(`${key} ran ${at} times at once`)
    }),
    () => dice.chance(0.2) ? Effect.uninterruptible(body) : body,
    () => Effect.sync(() => remote.running.set(key, remote.running.get(key)! - 1))
  )
}

/** The check is true, but may be slow, fail, or not know. */
const makeCheck = (remote: Remote, dice: Dice) => (key: string) =>
  Effect.suspend(() => dice.chance(0.3) ? Effect.sleep(dice.below(5000)) : Effect.void).pipe(
    Effect.andThen(Effect.suspend(() =>
      dice.chance(0.15)
        ? Effect.fail({ _tag: "CheckFailed" })
        : Effect.succeed(answer(remote, key))
    ))
  )

const answer = (remote: Remote, key: string) =>
  remote.applied.has(key) ? EffectResolution.applied(`result of ${key}`) : EffectResolution.notApplied

const apply = (remote: Remote, key: string): string => {
  const times = (remote.applied.get(key) ?? 0) + 1
  remote.applied.set(key, times)
  if (times > 1) remote.broken.push(`${key} was applied ${times} times`)
  return `result of ${key}`
}

const expected: ReadonlyArray<unknown> = [
  "Plain",
  "CheckFailed",
  "EffectOutcomeUnknownError",
  "EffectStoreError",
  "EffectInProgressError"
]

const check = (exit: Exit.Exit<unknown, unknown>, key: string, remote: Remote): void => {
  if (Exit.isSuccess(exit)) {
    assert.strictEqual(exit.value, `result of ${key}`)
    assert.isTrue(remote.applied.has(key))
  } else if (!isInterrupted(exit)) {
    const failure = Cause.squash(exit.cause)
    assert.isTrue(failure === "crash" || expected.includes(tagOf(failure)), String(failure))
  }
}

const storm = Effect.fnUntraced(function*(seed: number) {
  const dice = makeDice(seed)
  const weather = { calm: false }
  const base = yield* memory
  const stores = [base, anotherProcess(base), anotherProcess(base)].map((store) => unreliable(store, dice, weather))
  const remote: Remote = { applied: new Map(), running: new Map(), broken: [] }
  const options = {
    alreadyApplied: makeCheck(remote, dice),
    execute: makeExecute(remote, dice),
    waitFor: "40 seconds"
  } as const
  const callers: Array<readonly [key: string, fiber: Fiber.Fiber<unknown, unknown>]> = []
  for (let step = 0; step < 200; step++) {
    if (dice.chance(0.5)) {
      // two keys at a time, and new ones by and by: a key that is recorded has no more to tell
      const key = `k${Math.floor(step / 20) + dice.below(2)}`
      callers.push([key, yield* fork(call(dice.of(stores), { key, ...options }))])
    }
    if (dice.chance(0.3) && callers.length > 0) yield* fork(Fiber.interrupt(dice.of(callers.slice(-6))[1]))
    if (dice.chance(0.5)) yield* TestClock.adjust(dice.below(3000))
    else yield* Effect.repeat(Effect.yieldNow, { times: dice.below(4) })
  }
  weather.calm = true
  yield* TestClock.adjust("5 minutes")
  yield* turns
  for (const [key, fiber] of callers) {
    assert.isTrue(ended(fiber), `a caller of ${key} still waits`)
    check(yield* Fiber.await(fiber), key, remote)
  }
  assert.deepStrictEqual(remote.broken, [])
  for (const { applications, unreleased, unwritten } of stores.map(registryOf)) {
    assert.deepStrictEqual([applications.size, unreleased.size, unwritten.size], [0, 0, 0])
  }
  // in the calm after it every key can be had, and whoever asks gets the one result
  for (const key of new Set(callers.map(([key]) => key))) {
    const answers = yield* Effect.forEach(
      stores,
      (store) => call(store, { key, alreadyApplied: () => answer(remote, key), execute: () => apply(remote, key) })
    )
    assert.deepStrictEqual(answers, [`result of ${key}`, `result of ${key}`, `result of ${key}`])
    assert.strictEqual(remote.applied.get(key), 1)
  }
  yield* assertIdle(...stores)
  return callers.length
})

describe("reconciliation", () => {
  it.effect(
    "no schedule applies an effect twice, strands a caller or leaves anything over",
    () =>
      Effect.gen(function*() {
        let callers = 0
        for (let seed = 1; seed <= 100; seed++) {
          callers += yield* Effect.catchCause(
            storm(seed).pipe(Random.withSeed(String(seed))),
            (cause) => Effect.die(new Error(`seed ${seed}: ${Cause.pretty(cause)}`))
          )
        }
        assert.isAbove(callers, 5000)
      }),
    30_000
  )
})
