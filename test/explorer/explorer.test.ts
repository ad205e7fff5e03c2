/**
 * Every order of the store's and the remote's operations, with trouble at every point, for the real program. What breaks
 * is printed as a schedule that `replay` runs again. `npm run prove` goes on where this ends.
 */
import { assert, describe, it } from "@effect/vitest"
import { explore } from "./explore.ts"
import { describeFinding, replay } from "./replay.ts"
import { kinds } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"
import { wander } from "./wander.ts"

interface Exploration {
  readonly kind: keyof typeof kinds
  readonly cast: Cast
  readonly faults: number
  readonly atLeast: number
}

const holds = ({ atLeast, cast, faults, kind }: Exploration): void => {
  const at = scenario(kind, cast)
  const { complete, finding, schedules, states } = explore(at, { faults })
  console.info(`${at.name}, ${faults} of any: ${schedules} schedules, ${states} states`)
  assert.isUndefined(finding, finding && describeFinding(finding))
  assert.isTrue(complete)
  assert.isAtLeast(schedules, atLeast)
}

const kindNames = Object.keys(kinds) as ReadonlyArray<keyof typeof kinds>

describe("exploration", () => {
  for (const kind of kindNames) {
    it(`trouble at any point of any order of two processes breaks no promise: ${kinds[kind].name}`, () => {
      holds({ kind, cast: "two", faults: 1, atLeast: 3_000 })
    }, 60_000)
  }

  it("trouble at any point of two callers in one process breaks no promise", () => {
    holds({ kind: "checked", cast: "together", faults: 1, atLeast: 2_000 })
    holds({ kind: "strict", cast: "together", faults: 1, atLeast: 1_000 })
  }, 60_000)

  it("trouble at any point never gives a tool the result of another that has its key", () => {
    holds({ kind: "strict", cast: "foreign", faults: 1, atLeast: 2_000 })
    holds({ kind: "strict", cast: "strangers", faults: 1, atLeast: 1_000 })
  }, 60_000)

  it("random schedules of three processes with more trouble break no promise", () => {
    let schedules = 0
    for (let seed = 1; seed <= 40; seed++) {
      for (const kind of kindNames) {
        for (const cast of ["joined", "restarted", "three"] as const) {
          schedules++
          const finding = wander(scenario(kind, cast, { mostTicks: 10 }), seed, 3)
          assert.isUndefined(finding, finding && describeFinding(finding))
        }
      }
    }
    console.info(`${schedules} random schedules`)
  }, 60_000)

  it("the same schedule leads to the same world", () => {
    const schedule = ["start a", "start b", "P0 claim 1", "P1 claim 1", "P0 crashes", "time passes", "P1 claim 2"]
    assert.isUndefined(replay(scenario("checked", "two"), schedule))
    const first = explore(scenario("strict", "two"), { faults: 0 })
    assert.deepStrictEqual(explore(scenario("strict", "two"), { faults: 0 }), first)
  })
})
