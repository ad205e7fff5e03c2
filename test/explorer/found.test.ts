/**
 * Schedules in which exploration once found a promise broken, each as a test of its own.
 */
import { assert, describe, it } from "@effect/vitest"
import { replay } from "./replay.ts"
import { scenario } from "./scenarios.ts"
import { wander } from "./wander.ts"

describe("exploration, once found", () => {
  const late = scenario("late", "two")

  it("a no believed too early after a holder died with its request on the way", () => {
    const schedule = [
      "start a",
      "P0 claim 1",
      "P0 check 1",
      "P0 apply 1 is slow",
      "time passes",
      "P0 apply 1 arrives, crash",
      "start b",
      "P1 claim 1",
      "P1 claim 2",
      "time passes",
      "P1 claim 3",
      "P1 check 1",
      "P1 apply 1"
    ]
    assert.isUndefined(replay(late, schedule))
  })

  it("two applications of which no event said so, since the last caller left", () => {
    const schedule = [
      "start a",
      "P0 claim 1",
      "P0 apply 1",
      "start b",
      "P1 claim 1",
      "P1 claim 2",
      "P0 freezes",
      "time passes",
      "P1 claim 3",
      "P1 apply 1",
      "P0 thaws",
      "time passes",
      "b leaves"
    ]
    assert.isUndefined(replay(scenario("default", "two"), schedule))
  })

  it("a lost claim that another tool's lost claim hid", () => {
    const schedule = ["start a", "P0 claim 1 fails", "start b", "P0 claim 2 arrives, its answer is an error"]
    for (const kind of ["strict", "checked"] as const) {
      assert.isUndefined(replay(scenario(kind, "foreign"), schedule))
    }
  })

  it("the result of another input, whose attempt had said that nothing was applied", () => {
    const schedule = ["start b", "P1 claim 1", "P1 check 1", "P1 apply 1 arrives, and fails", "start a"]
    assert.isUndefined(replay(scenario("checked", "changed"), schedule))
  })

  it("a record that was retried for ever in a store that had been closed", () => {
    const schedule = [
      "start a",
      "P0 claim 1",
      "P0 closes its store",
      "P0 freezes",
      "time passes",
      "P0 thaws",
      "time passes"
    ]
    assert.isUndefined(replay(scenario("uncut", "two", { closes: true }), schedule))
  })

  it("a grant that came late, still held when its store closed before its release had arrived", () => {
    const schedule = ["start a", "P0 claim 1 is slow", "time passes", "P0 claim 1", "P0 closes its store"]
    assert.isUndefined(replay(scenario("strict", "alone", { closes: true }), schedule))
  })

  it("nothing in random schedules with a long lag and much trouble", () => {
    for (let seed = 1; seed <= 300; seed++) assert.isUndefined(wander(late, seed, 3)?.wrong, `seed ${seed}`)
  }, 60_000)
})
