/**
 * Which clock decides whether enough of a lease is left: the process's monotonic one, not the time of day.
 */
import { assert, describe, it } from "@effect/vitest"
import type { IEffectStore } from "chamvi-effect"
import { Clock, Effect, Exit } from "effect"
import { call, counting, down, memory } from "./support.ts"

const hour = 3_600_000

/** Clocks that a check moves while it is asked, and what comes of the call whose renewals do not come through. */
const runsAfter = Effect.fnUntraced(function*(moved: { readonly monotonic: number; readonly timeOfDay: number }) {
  const base = yield* Clock.Clock
  const offset = { monotonic: 0, timeOfDay: 0 }
  const clock: Clock.Clock = Object.assign(Object.create(base) as Clock.Clock, {
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe() + BigInt(offset.monotonic) * 1_000_000n,
    currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + offset.timeOfDay
  })
  const store: IEffectStore = { ...(yield* memory), renew: () => down("renew") }
  const hook = counting()
  const alreadyApplied = () => void Object.assign(offset, moved)
  const exit = yield* Effect.exit(
    Effect.provideService(call(store, { alreadyApplied, execute: hook.execute }), Clock.Clock, clock)
  )
  return [Exit.isSuccess(exit), hook.runs]
})

describe("reconciliation", () => {
  it.effect("what is left of a lease is told by the monotonic clock, whatever the time of day does", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* runsAfter({ monotonic: 20_000, timeOfDay: 0 }), [true, 1])
      assert.deepStrictEqual(yield* runsAfter({ monotonic: 20_001, timeOfDay: 0 }), [false, 0])
      assert.deepStrictEqual(yield* runsAfter({ monotonic: 20_001, timeOfDay: -hour }), [false, 0])
      assert.deepStrictEqual(yield* runsAfter({ monotonic: 0, timeOfDay: hour }), [true, 1])
    }))
})
