/**
 * Schedules as texts: run again, made shorter, printed.
 */
import { calmDown } from "./calm.ts"
import { choicesOf, take } from "./choices.ts"
import { afterStep } from "./invariants.ts"
import type { Scenario } from "./model.ts"
import { World } from "./World.ts"

/** A schedule that ends badly. */
export interface Finding {
  readonly scenario: Scenario
  readonly schedule: ReadonlyArray<string>
  readonly wrong: string
}

/** Runs a schedule, leaving out what cannot happen, and answers what is wrong. */
export const replay = (scenario: Scenario, schedule: ReadonlyArray<string>): string | undefined => {
  const world = new World(scenario)
  for (const label of schedule) {
    const choice = choicesOf(world, Infinity).find((choice) => choice.label === label)
    if (choice === undefined) continue
    take(world, choice)
    const wrong = afterStep(world)
    if (wrong !== undefined) return wrong
  }
  return calmDown(world)
}

/** Leaves out of a schedule what its bad end does not need. */
export const shrink = (finding: Finding): Finding => {
  let { schedule, wrong } = finding
  for (let size = Math.ceil(schedule.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < schedule.length;) {
      const shorter = schedule.toSpliced(from, size)
      const still = replay(finding.scenario, shorter)
      if (still === undefined) {
        from += size
      } else {
        schedule = shorter
        wrong = still
      }
    }
  }
  return { scenario: finding.scenario, schedule, wrong }
}

export const describeFinding = ({ scenario, schedule, wrong }: Finding): string =>
  [`${scenario.name}: ${wrong}`, ...schedule.map((label) => `  ${JSON.stringify(label)}`)].join("\n")
