/**
 * Random schedules, for what lies beyond the bound of the exploration. A seed decides everything.
 */
import { calmDown } from "./calm.ts"
import { choicesOf, take } from "./choices.ts"
import { makeDice } from "./dice.ts"
import { type Finding, shrink } from "./replay.ts"
import { afterStep } from "./invariants.ts"
import type { Scenario } from "./model.ts"
import { World } from "./World.ts"

const mostSteps = 120

const walk = (scenario: Scenario, seed: number, mostFaults: number, schedule: Array<string>): string | undefined => {
  const dice = makeDice(seed)
  const world = new World(scenario)
  const chance = dice() * 0.5
  while (schedule.length < mostSteps) {
    const choices = choicesOf(world, mostFaults)
    const free = choices.filter(({ price }) => price === 0)
    const trouble = choices.filter(({ price }) => price === 1)
    const from = trouble.length > 0 && (free.length === 0 || dice() < chance) ? trouble : free
    const choice = from[Math.floor(dice() * from.length)]
    if (choice === undefined) break
    schedule.push(choice.label)
    take(world, choice)
    const wrong = afterStep(world)
    if (wrong !== undefined) return wrong
  }
  return calmDown(world)
}

/** One random schedule, and what is wrong with it. */
export const wander = (scenario: Scenario, seed: number, mostFaults: number): Finding | undefined => {
  const schedule: Array<string> = []
  const wrong = walk(scenario, seed, mostFaults, schedule)
  return wrong === undefined
    ? undefined
    : shrink({ scenario: { ...scenario, name: `${scenario.name}, seed ${seed}` }, schedule, wrong })
}
