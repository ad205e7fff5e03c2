/**
 * Walks through all schedules of a scenario, depth first, with one more fault each time. A state that was seen with as
 * many faults left is not walked through again.
 */
import { calmDown } from "./calm.ts"
import { type Choice, choicesOf, take, type Trouble } from "./choices.ts"
import { afterStep } from "./invariants.ts"
import type { Scenario } from "./model.ts"
import { World } from "./World.ts"

/** A schedule that ends badly. */
export interface Finding {
  readonly scenario: Scenario
  readonly schedule: ReadonlyArray<string>
  readonly wrong: string
}

export interface Coverage {
  schedules: number
  states: number
  /** Whether every schedule was walked through. */
  complete: boolean
  finding: Finding | undefined
}

export interface Limits {
  readonly faults: number
  readonly trouble?: ReadonlySet<Trouble> | undefined
  /** Called now and then; answers whether to go on. */
  readonly progress?: ((coverage: Coverage) => boolean) | undefined
}

const mostSteps = 200

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

interface Branch {
  readonly choices: ReadonlyArray<Choice>
  at: number
}

/** One world along the branches as they stand, and on to an end by what comes first. */
const walk = (
  scenario: Scenario,
  limits: Limits,
  faults: number,
  branches: Array<Branch>,
  seen: Set<number>
): string | undefined => {
  const world = new World(scenario)
  branches.forEach((branch) => take(world, branch.choices[branch.at]!))
  while (branches.length < mostSteps) {
    const wrong = branches.length === 0 ? undefined : afterStep(world)
    if (wrong !== undefined) return wrong
    const { hash } = world
    if (seen.has(hash)) return undefined
    seen.add(hash)
    const choices = choicesOf(world, faults, limits.trouble)
    if (choices.length === 0) return calmDown(world)
    branches.push({ choices, at: 0 })
    take(world, choices[0]!)
  }
  return "it goes on for ever"
}

/** Leaves the branch that was walked, for the next one. */
const goBack = (branches: Array<Branch>): boolean => {
  while (branches.length > 0) {
    const last = branches.at(-1)!
    if (++last.at < last.choices.length) return true
    branches.pop()
  }
  return false
}

const scheduleOf = (branches: ReadonlyArray<Branch>): ReadonlyArray<string> =>
  branches.map(({ at, choices }) => choices[at]!.label)

/**
 * Explores the scenario with no fault, with one, and so on to the limit; stops at the first schedule that ends badly.
 */
export const explore = (scenario: Scenario, limits: Limits): Coverage => {
  const coverage: Coverage = { schedules: 0, states: 0, complete: true, finding: undefined }
  for (let faults = 0; faults <= limits.faults; faults++) {
    const seen = new Set<number>()
    const branches: Array<Branch> = []
    do {
      const asked = coverage.schedules % 1_000 === 999 && limits.progress !== undefined
      if (asked && !limits.progress({ ...coverage, states: coverage.states + seen.size })) {
        return { ...coverage, states: coverage.states + seen.size, complete: false }
      }
      const wrong = walk(scenario, limits, faults, branches, seen)
      coverage.schedules++
      if (wrong !== undefined) {
        coverage.finding = shrink({ scenario, schedule: scheduleOf(branches), wrong })
        coverage.states += seen.size
        return coverage
      }
    } while (goBack(branches))
    coverage.states += seen.size
  }
  return coverage
}
