/**
 * Walks through all schedules of a scenario: those without a fault first, then those with one, and so on; among these, those
 * in which time has passed less often first. A step that a state was left by before is not taken from it again, if it had
 * no fewer faults and no less time to come.
 */
import { calmDown } from "./calm.ts"
import { type Choice, choicesOf, take, type Trouble } from "./choices.ts"
import { afterStep } from "./invariants.ts"
import { exitOf, type Scenario, toolOf } from "./model.ts"
import { groupOf, isRedundant, type Step, stepOf } from "./reduction.ts"
import { type Finding, shrink } from "./replay.ts"
import { endOf, exactStateOf, stateOf, tells } from "./state.ts"
import { World } from "./World.ts"

export interface Coverage {
  schedules: number
  states: number
  /** Whether every schedule was walked through. */
  complete: boolean
  finding: Finding | undefined
}

export interface Progress extends Coverage {
  /** How many faults the schedules have by now. */
  readonly fault: number
  /** How many steps are known that wait to be taken. */
  readonly due: number
}

export interface Limits {
  readonly faults: number
  readonly trouble?: ReadonlySet<Trouble> | undefined
  /** Called now and then; answers whether to go on. */
  readonly progress?: ((coverage: Progress) => boolean) | undefined
  /** Takes every step from every state as it is, whatever is known to come to the same. */
  readonly exactly?: boolean | undefined
  /** Gets each end that calls come to, and each that schedules come to, if nothing is due any more. */
  readonly outcomes?: Set<string> | undefined
  /** Sees the world after every step, and at every end. */
  readonly look?: ((world: World) => void) | undefined
}

/** A step to take, and how to come to it. */
interface Node {
  readonly before: Node | undefined
  readonly choice: Choice
  readonly step: Step
  readonly depth: number
}

const mostSteps = 200

/** What matters of an end, whichever process is which. */
const outcomeOf = (world: World): string => {
  const callers = Array.from(world.callers.values(), (caller) => {
    const { plan, process: { crashed, frozen } } = caller
    return `${toolOf(plan)} ${plan.input} ${crashed} ${frozen} ${endOf(caller)}`
  })
  const rows = Array.from(world.subjects.values(), ({ ledger, remote }) => {
    const row = ledger.row()
    return [remote.applications.length, row?.status, row?.doubt, row?.result]
  })
  return JSON.stringify([callers.sort(), rows, world.events.filter(tells).length])
}

/** How each call ended, whichever process it was in. */
const endsOf = (world: World): ReadonlyArray<string> =>
  Array.from(world.callers.values()).flatMap((caller) => {
    const exit = exitOf(caller)
    return exit === undefined ? [] : [`${toolOf(caller.plan)} ${String(exit).replaceAll(/P\d/g, "P")}`]
  })

class Exploration {
  readonly coverage: Coverage = { schedules: 0, states: 0, complete: true, finding: undefined }
  private readonly scenario: Scenario
  private readonly limits: Limits
  /** By state: how often time had passed, and which groups of steps were taken. */
  private readonly seen = new Map<number, number>()
  /** By name: what a choice does depends on nothing else. */
  private readonly choices = new Map<string, Choice>()
  /** What is to be walked through, by faults and by how often time has passed. */
  private readonly due: Array<Array<Array<Node | undefined>>> = []

  constructor(scenario: Scenario, limits: Limits) {
    this.scenario = scenario
    this.limits = limits
    for (let faults = 0; faults <= limits.faults; faults++) {
      this.due.push(Array.from({ length: scenario.mostTicks + 1 }, () => []))
    }
  }

  run(): Coverage {
    this.due[0]![0]!.push(undefined)
    for (const [fault, sameFaults] of this.due.entries()) {
      for (const nodes of sameFaults) {
        while (nodes.length > 0) {
          if (!this.goesOn(fault)) {
            this.coverage.complete = false
            return this.coverage
          }
          if (!this.visit(nodes.pop())) return this.coverage
        }
      }
    }
    return this.coverage
  }

  private goesOn(fault: number): boolean {
    const { coverage, limits } = this
    if (coverage.schedules++ % 100 !== 99 || limits.progress === undefined) return true
    const due = this.due.flat().reduce((sum, nodes) => sum + nodes.length, 0)
    return limits.progress({ ...coverage, states: this.seen.size, fault, due })
  }

  private visit(node: Node | undefined): boolean {
    const schedule = nodesTo(node)
    const world = new World(this.scenario)
    schedule.forEach(({ choice }) => take(world, choice))
    const wrong = this.walk(world, node, schedule)
    this.coverage.states = this.seen.size
    if (wrong === undefined) return true
    const labels = schedule.map(({ choice }) => choice.label)
    this.coverage.finding = shrink({ scenario: this.scenario, schedule: labels, wrong })
    return false
  }

  /** Goes on as long as there is an ordinary step that is new, and leaves the others for later. */
  private walk(world: World, from: Node | undefined, schedule: Array<Node>): string | undefined {
    let last = from
    while (schedule.length < mostSteps) {
      const wrong = last === undefined ? undefined : afterStep(world)
      this.limits.look?.(world)
      if (this.limits.outcomes !== undefined) endsOf(world).forEach((end) => this.limits.outcomes!.add(end))
      if (wrong !== undefined) return wrong
      const choices = choicesOf(world, this.limits.faults, this.limits.trouble)
      const next = this.next(world, last, choices)
      if (next === undefined) {
        if (choices.some(({ price }) => price === 0)) return undefined
        if (world.nextDue === Infinity) this.limits.outcomes?.add(outcomeOf(world))
        const atTheEnd = calmDown(world)
        this.limits.look?.(world)
        return atTheEnd
      }
      last = next
      schedule.push(next)
      take(world, next.choice)
    }
    return "it goes on for ever"
  }

  /** The step to take now; others are left for later. */
  private next(world: World, last: Node | undefined, choices: ReadonlyArray<Choice>): Node | undefined {
    const news = this.news(world, last, choices)
    let now: Node | undefined
    for (const node of news.toReversed()) {
      const { price, process } = node.choice
      if (price === 0 && process >= 0) {
        if (now !== undefined) this.leave(world, now)
        now = node
      } else {
        this.leave(world, node)
      }
    }
    return now
  }

  private leave({ account }: World, node: Node): void {
    const { price, process } = node.choice
    this.due[account.faults + price]![account.ticks + (process < 0 ? 1 : 0)]!.push(node)
  }

  private news(world: World, last: Node | undefined, choices: ReadonlyArray<Choice>): ReadonlyArray<Node> {
    const exactly = this.limits.exactly === true
    const { hash, places } = exactly ? { hash: exactStateOf(world), places: [] } : stateOf(world)
    const seen = this.seen.get(hash)
    if (exactly && seen !== undefined) return []
    const { ticks } = world.account
    const taken = seen === undefined || Math.floor(seen / 2 ** 31) > ticks ? 0 : seen % 2 ** 31
    let groups = taken
    const news: Array<Node> = []
    for (const choice of choices) {
      if (!exactly) {
        const group = groupOf(choice, places)
        if ((taken & group) !== 0 || isRedundant(world, last?.step, choice)) continue
        groups |= group
      }
      news.push({
        before: last,
        choice: this.known(choice),
        step: stepOf(world, choice, places),
        depth: (last?.depth ?? 0) + 1
      })
    }
    if (seen === undefined || news.length > 0) this.seen.set(hash, ticks * 2 ** 31 + (groups % 2 ** 31))
    return news
  }

  private known(choice: Choice): Choice {
    const known = this.choices.get(choice.label)
    if (known !== undefined) return known
    this.choices.set(choice.label, choice)
    return choice
  }
}

const nodesTo = (node: Node | undefined): Array<Node> => {
  const nodes: Array<Node> = []
  for (let at = node; at !== undefined; at = at.before) nodes[at.depth - 1] = at
  return nodes
}

/** Explores the scenario up to a number of faults; stops at the first schedule that ends badly. */
export const explore = (scenario: Scenario, limits: Limits): Coverage => new Exploration(scenario, limits).run()
