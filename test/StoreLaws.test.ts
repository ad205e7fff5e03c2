/**
 * The laws themselves: each one breaks for stores that have the faults that it is there for, so that a store which passes
 * does not have them.
 */
import { describe, expect, it } from "@effect/vitest"
import { EffectStore } from "chamvi-effect"
import { type Law, StoreClock, storeLaws } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { claiming } from "./storeFaults/claiming.ts"
import { doubting } from "./storeFaults/doubting.ts"
import type { Fault, Faults } from "./storeFaults/fault.ts"
import { fencing } from "./storeFaults/fencing.ts"
import { keeping } from "./storeFaults/keeping.ts"
import { sharing } from "./storeFaults/sharing.ts"

const faults: Faults = { ...claiming, ...fencing, ...doubting, ...keeping, ...sharing }

/** How a law goes on a new store with the fault. */
const outcome = (law: Law, fault: Fault): Effect.Effect<string> => {
  const Store = Layer.mergeAll(
    Layer.effect(EffectStore, Effect.map(EffectStore, fault)).pipe(Layer.provide(Layer.fresh(EffectStore.layerMemory))),
    Layer.succeed(StoreClock, { advance: (milliseconds) => TestClock.adjust(milliseconds) })
  ).pipe(Layer.provideMerge(TestClock.layer()))
  return Effect.match(Effect.provide(law, Layer.fresh(Store)), {
    onSuccess: () => "kept",
    onFailure: ({ _tag }) => _tag
  })
}

describe("store laws", () => {
  it("each has a fault that it is there for", () => {
    expect(Object.keys(faults).toSorted()).toEqual(Object.keys(storeLaws).toSorted())
    expect(Object.keys(faults).filter((title) => Object.keys(faults[title]!).length === 0)).toEqual([])
  })

  it.effect("each breaks for a store with one of its faults", () =>
    Effect.gen(function*() {
      const cases = Object.entries(faults).flatMap(([title, broken]) =>
        Object.entries(broken).map(([name, fault]) => ({ title, name, fault }))
      )
      // together, since some of them wait in real time
      const outcomes = yield* Effect.forEach(
        cases,
        ({ fault, name, title }) =>
          Effect.map(outcome(storeLaws[title]!, fault), (result) => `${title} / ${name}: ${result}`),
        { concurrency: "unbounded" }
      )
      expect(outcomes.filter((line) => !line.endsWith(": LawViolation"))).toEqual([])
    }), 60_000)

  it.effect("none breaks for a store that only passes its calls on", () =>
    Effect.gen(function*() {
      const outcomes = yield* Effect.forEach(Object.entries(storeLaws), ([title, law]) =>
        Effect.map(outcome(law, (store) => ({ ...store })), (result) => `${title}: ${result}`), {
        concurrency: "unbounded"
      })
      expect(outcomes.filter((line) =>
        !line.endsWith(": kept")
      )).toEqual([])
    }), 60_000)
})
