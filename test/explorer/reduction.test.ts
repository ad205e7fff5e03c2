/**
 * What the exploration leaves out, it loses nothing by: steps that it takes to commute do, and the ends that it comes to
 * are those that every step from every state comes to.
 */
import { assert, describe, it } from "@effect/vitest"
import { type Choice, choicesOf, take, type Trouble } from "./choices.ts"
import { makeDice } from "./dice.ts"
import { explore } from "./explore.ts"
import type { Scenario } from "./model.ts"
import { commutes, stepOf } from "./reduction.ts"
import type { KindName } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"
import { exactStateOf, stateOf } from "./state.ts"
import { World } from "./World.ts"

const worldAfter = (at: Scenario, schedule: ReadonlyArray<Choice>): World => {
  const world = new World(at)
  schedule.forEach((choice) => take(world, choice))
  return world
}

/** Takes both orders of a pair that commutes, and answers how many pairs there were. */
const compareOrders = (at: Scenario, schedule: ReadonlyArray<Choice>, first: Choice): number => {
  const world = worldAfter(at, schedule)
  const step = stepOf(world, first, [])
  take(world, first)
  let pairs = 0
  for (const second of choicesOf(world, 3)) {
    if (second.process === first.process || !commutes(world, step, second)) continue
    pairs++
    const names = `${schedule.map(({ label }) => label).join(", ")}: ${first.label}, ${second.label}`
    const one = worldAfter(at, [...schedule, first, second])
    const other = worldAfter(at, schedule)
    const known = choicesOf(other, 3).some(({ label }) => label === second.label)
    assert.isTrue(known, `${names}: the second is no choice without the first`)
    take(other, second)
    take(other, first)
    assert.strictEqual(exactStateOf(other), exactStateOf(one), names)
    assert.strictEqual(stateOf(other).hash, stateOf(one).hash, names)
  }
  return pairs
}

const commuting = (at: Scenario, seeds: number): number => {
  let pairs = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const dice = makeDice(seed)
    const schedule: Array<Choice> = []
    for (let steps = 0; steps < 25; steps++) {
      const choices = choicesOf(worldAfter(at, schedule), 3)
      const choice = choices[Math.floor(dice() * choices.length)]
      if (choice === undefined) break
      pairs += compareOrders(at, schedule, choice)
      schedule.push(choice)
    }
  }
  return pairs
}

describe("reduction", () => {
  const commutingAt: ReadonlyArray<readonly [KindName, Cast, Partial<Scenario>]> = [
    ["checked", "two", {}],
    ["default", "two", {}],
    ["strict", "joined", {}],
    ["lagging", "restarted", {}],
    ["checked", "three", { seesDeath: true }],
    ["strict", "joined", { closes: true }],
    ["checked", "batched", { batch: true }],
    ["default", "changed", {}]
  ]
  it("steps that are taken to commute lead to the same world in either order", () => {
    for (const [kind, cast, change] of commutingAt) {
      const pairs = commuting(scenario(kind, cast, change), 12)
      assert.isAtLeast(pairs, 50, `${kind} ${cast}`)
    }
  }, 60_000)

  interface Ending {
    readonly kind: KindName
    readonly cast: Cast
    readonly mostTicks: number
    readonly trouble?: ReadonlyArray<Trouble>
    readonly change?: Partial<Scenario>
  }
  const endings: ReadonlyArray<Ending> = [
    { kind: "checked", cast: "two", mostTicks: 2 },
    { kind: "default", cast: "two", mostTicks: 3 },
    { kind: "lagging", cast: "two", mostTicks: 3, trouble: ["slow", "crash"] },
    { kind: "strict", cast: "strangers", mostTicks: 3 },
    { kind: "checked", cast: "together", mostTicks: 2 },
    { kind: "strict", cast: "changed", mostTicks: 3, trouble: ["crash", "lost reply", "failure"] },
    { kind: "strict", cast: "two", mostTicks: 3, trouble: ["close", "slow"], change: { closes: true } },
    { kind: "checked", cast: "two", mostTicks: 3, trouble: ["crash"], change: { seesDeath: true } },
    { kind: "default", cast: "three", mostTicks: 1, trouble: ["crash"] }
  ]
  it("comes to the ends that every schedule comes to", () => {
    for (const { cast, change, kind, mostTicks, trouble } of endings) {
      const at = scenario(kind, cast, { mostTicks, ...change })
      const limits = { faults: 1, trouble: trouble && new Set(trouble) }
      const reduced = new Set<string>()
      const exact = new Set<string>()
      const some = explore(at, { ...limits, outcomes: reduced })
      const all = explore(at, { ...limits, outcomes: exact, exactly: true })
      console.info(
        `${at.name}: ${some.schedules} of ${all.schedules} schedules, ${some.states} of ${all.states} states`
      )
      assert.isUndefined(some.finding ?? all.finding)
      assert.isAtLeast(exact.size, 4, at.name)
      assert.deepStrictEqual([...reduced].sort(), [...exact].sort(), at.name)
    }
  }, 120_000)
})
