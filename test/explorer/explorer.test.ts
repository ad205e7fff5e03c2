/**
 * Every order of the store's and the remote's operations, with trouble at every point, for the real program. What breaks
 * is printed as a schedule that `replay` runs again.
 */
import { assert, describe, it } from "@effect/vitest"
import { describeFinding, explore, type Limits, replay } from "./explore.ts"
import { type KindName, kinds } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"

const holds = (kind: KindName, cast: Cast, limits: Limits, atLeast: number): void => {
  const at = scenario(kind, cast)
  const { complete, finding, schedules, states } = explore(at, limits)
  console.info(`${at.name}, ${limits.faults} faults: ${schedules} schedules, ${states} states`)
  assert.isUndefined(finding, finding && describeFinding(finding))
  assert.isTrue(complete)
  assert.isAtLeast(schedules, atLeast)
}

describe("exploration", () => {
  for (const kind of Object.keys(kinds) as ReadonlyArray<KindName>) {
    it(`one fault at any point of any order breaks no promise: ${kinds[kind].name}`, () => {
      holds(kind, "two", { faults: 1 }, 5_000)
    }, 60_000)
  }

  it("the same schedule leads to the same world", () => {
    const schedule = ["start a", "start b", "P0 claim 1", "P1 claim 1", "P0 crashes", "time passes", "P1 claim 2"]
    assert.isUndefined(replay(scenario("checked", "two"), schedule))
    const first = explore(scenario("strict", "two"), { faults: 0 })
    assert.deepStrictEqual(explore(scenario("strict", "two"), { faults: 0 }), first)
  })
})
