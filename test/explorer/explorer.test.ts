/**
 * Every order of the store's and the remote's operations, with trouble at every point, for the real program. What breaks
 * is printed as a schedule that `replay` runs again. `npm run prove` goes on where this ends.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Trouble } from "./choices.ts"
import { explore } from "./explore.ts"
import { describeFinding, replay } from "./replay.ts"
import { walks } from "./jobs.ts"
import type { Scenario } from "./model.ts"
import { type KindName, kinds } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"
import { wander } from "./wander.ts"

interface Exploration {
  readonly kind: KindName
  readonly cast: Cast
  readonly faults: number
  readonly atLeast: number
  readonly change?: Partial<Scenario>
  /** Default: all. */
  readonly trouble?: ReadonlyArray<Trouble>
}

const holds = ({ atLeast, cast, change, faults, kind, trouble }: Exploration): void => {
  const at = scenario(kind, cast, change)
  const { complete, finding, schedules, states } = explore(at, { faults, trouble: trouble && new Set(trouble) })
  console.info(`${at.name}, ${faults} of ${trouble?.join(" and ") ?? "any"}: ${schedules} schedules, ${states} states`)
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

  it("two faults of any kind break no promise to a caller who is alone", () => {
    holds({ kind: "strict", cast: "alone", faults: 2, atLeast: 500, change: { mostTicks: 4 } })
  }, 60_000)

  it("a store that closes at any point, with trouble of any kind, leaves nothing held and nobody waiting", () => {
    holds({ kind: "strict", cast: "two", faults: 1, atLeast: 1_000, change: { closes: true, mostTicks: 5 } })
    holds({ kind: "uncut", cast: "alone", faults: 2, atLeast: 500, change: { closes: true, mostTicks: 4 } })
  }, 60_000)

  it("trouble at any point breaks no promise where a store sees who has crashed", () => {
    holds({ kind: "strict", cast: "two", faults: 1, atLeast: 1_000, change: { seesDeath: true, mostTicks: 5 } })
    holds({ kind: "lagging", cast: "two", faults: 1, atLeast: 1_000, change: { seesDeath: true, mostTicks: 4 } })
  }, 60_000)

  it("trouble at any point breaks no promise of a store that asks for batches", () => {
    const change = { batch: true, mostTicks: 2 }
    holds({ kind: "strict", cast: "batched", faults: 1, atLeast: 100, trouble: ["failure"], change })
  }, 60_000)

  it("trouble at any point gives nobody the result of another input, where that is an error", () => {
    holds({ kind: "checked", cast: "changed", faults: 1, atLeast: 1_000, change: { mostTicks: 4 } })
    holds({ kind: "strict", cast: "changing", faults: 1, atLeast: 1_000, change: { mostTicks: 5 } })
  }, 60_000)

  it("trouble at any point breaks no promise where the remote learns, or tells, the result late", () => {
    holds({ kind: "mute", cast: "two", faults: 1, atLeast: 1_000, change: { mostTicks: 4 } })
    holds({ kind: "late", cast: "two", faults: 1, atLeast: 1_000, change: { mostTicks: 4 } })
  }, 60_000)

  it("trouble at any point lets no call within its own wait", () => {
    holds({ kind: "reentrant", cast: "two", faults: 1, atLeast: 1_000, change: { mostTicks: 5 } })
  }, 60_000)

  it("random schedules of every cast with more trouble break no promise", () => {
    let schedules = 0
    for (let seed = 1; seed <= 10; seed++) {
      for (const at of walks) {
        schedules++
        const finding = wander(at, seed, 3)
        assert.isUndefined(finding, finding && describeFinding(finding))
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
