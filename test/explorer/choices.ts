/**
 * What may happen next in a world. Ordinary steps are free, trouble has a price of one fault.
 */
import { EffectOutcomeUnknownError } from "chamvi-effect"
import { exitOf, type Operation, storeTrouble } from "./model.ts"
import type { World } from "./World.ts"

/** A choice speaks of its objects by name, so that it can be taken again in another world. */
export interface Choice {
  /** Names the choice in a schedule; the same in every run in which the same led to it. */
  readonly label: string
  readonly price: 0 | 1
  readonly take: (world: World) => void
}

/** Kinds of trouble, for explorations that leave some out. */
export type Trouble = "crash" | "freeze" | "interrupt" | "lost reply" | "failure" | "slow"

export const allTrouble: ReadonlySet<Trouble> = new Set([
  "crash",
  "freeze",
  "interrupt",
  "lost reply",
  "failure",
  "slow"
])

const outcomeUnknown = new EffectOutcomeUnknownError({})

/** What a hook of the tool's may fail with. */
const plainFailure = { _tag: "Plain" }

const isHook = ({ kind }: Operation): boolean => kind === "check" || kind === "apply"

const start = (world: World): ReadonlyArray<Choice> =>
  world.scenario.callers.flatMap((plan) =>
    world.callers.has(plan.name)
      || !world.processes[plan.process]!.runs
      || (plan.afterCrashOf !== undefined && !world.processes[plan.afterCrashOf]!.crashed)
      ? []
      : [{ label: `start ${plan.name}`, price: 0, take: (world) => void world.start(plan) }]
  )

const answered = (label: string): Choice => ({
  label: `${label} is answered`,
  price: 0,
  take: (world) => world.answer(world.operation(label))
})

// it has left before its process stopped
const arrives = (label: string): Choice => ({
  label: `${label} arrives`,
  price: 0,
  take: (world) => {
    const operation = world.operation(label)
    world.arrive(operation)
    if (operation.process.crashed) world.silence(operation)
  }
})

const done = (label: string): Choice => ({
  label,
  price: 0,
  take: (world) => {
    const operation = world.operation(label)
    world.arrive(operation)
    world.answer(operation)
  }
})

const ordinary = (world: World): ReadonlyArray<Choice> => {
  const choices: Array<Choice> = []
  for (const { label, process, stage } of world.operations) {
    if (stage !== "answered") choices.push(process.runs ? done(label) : arrives(label))
    else if (process.runs) choices.push(answered(label))
  }
  for (const { crashed, frozen, index, name } of world.processes) {
    if (frozen && !crashed) {
      choices.push({ label: `${name} thaws`, price: 0, take: (world) => world.thaw(world.processes[index]!) })
    }
  }
  return choices
}

const timePasses: ReadonlyArray<Choice> = [{
  label: "time passes",
  price: 0,
  take: (world) => {
    world.account.ticks++
    world.tick()
  }
}]

const time = (world: World): ReadonlyArray<Choice> => {
  const { account, now, operations, scenario } = world
  const due = world.nextDue
  if (due === Infinity || account.ticks >= scenario.mostTicks) return []
  // time passes where nothing is about to happen: what is quick happens first
  return due > now && operations.some(({ process, stage }) => process.runs && stage === "waiting") ? [] : timePasses
}

const troubleOf = (operation: Operation, checks: boolean, kinds: ReadonlySet<Trouble>): ReadonlyArray<Choice> => {
  const { kind, label, process, stage } = operation
  if (!process.runs || stage === "answered") return []
  const choices: Array<Choice> = []
  const add = (trouble: Trouble, what: string, take: (world: World, operation: Operation) => void): void => {
    if (!kinds.has(trouble)) return
    choices.push({ label: `${label} ${what}`, price: 1, take: (world) => take(world, world.operation(label)) })
  }
  const failing = (failure: unknown) => (world: World, operation: Operation): void => {
    world.arrive(operation)
    world.answer(operation, failure)
  }
  add("crash", "arrives, crash", (world, operation) => {
    world.arrive(operation)
    world.crash(operation.process)
  })
  if (stage === "waiting") {
    add("slow", "is slow", (_, operation) => {
      operation.stage = "slow"
    })
  }
  add("slow", "arrives, its answer is slow", (world, operation) => world.arrive(operation))
  if (isHook(operation)) {
    add("failure", "fails", (world, operation) => world.answer(operation, plainFailure))
    if (kind !== "apply") return choices
    add("lost reply", "arrives, its answer is lost", (world, operation) => {
      world.account.cuts++
      failing(outcomeUnknown)(world, operation)
    })
    // whoever is asked afterwards need not know how the request ended
    if (checks) add("lost reply", "arrives, and fails", failing(plainFailure))
    return choices
  }
  add("failure", "fails", (world, operation) => world.answer(operation, storeTrouble))
  add("lost reply", "arrives, its answer is an error", failing(storeTrouble))
  add("lost reply", "arrives, its answer never comes", (world, operation) => {
    world.arrive(operation)
    world.silence(operation)
  })
  return choices
}

const troubleOfProcesses = (world: World, kinds: ReadonlySet<Trouble>): ReadonlyArray<Choice> => {
  const choices: Array<Choice> = []
  for (const process of world.processes) {
    if (!process.runs || world.isIdle(process)) continue
    const { index, name } = process
    if (kinds.has("crash")) {
      choices.push({ label: `${name} crashes`, price: 1, take: (world) => world.crash(world.processes[index]!) })
    }
    if (kinds.has("freeze")) {
      choices.push({
        label: `${name} freezes`,
        price: 1,
        take: (world) => {
          world.processes[index]!.frozen = true
        }
      })
    }
  }
  if (!kinds.has("interrupt")) return choices
  for (const caller of world.callers.values()) {
    if (!caller.process.runs || caller.interrupted || exitOf(caller) !== undefined) continue
    const { name } = caller.plan
    choices.push({ label: `${name} leaves`, price: 1, take: (world) => world.interrupt(world.callers.get(name)!) })
  }
  return choices
}

/** Everything that may happen next, the ordinary first; trouble only where there are faults left. */
export const choicesOf = (
  world: World,
  mostFaults: number,
  kinds: ReadonlySet<Trouble> = allTrouble
): ReadonlyArray<Choice> => {
  const free = [...ordinary(world), ...start(world), ...time(world)]
  if (world.account.faults >= mostFaults) return free
  const { checks } = world.scenario.kind
  return [
    ...free,
    ...world.operations.flatMap((operation) => troubleOf(operation, checks, kinds)),
    ...troubleOfProcesses(world, kinds)
  ]
}

/** Takes a choice, and counts its price. */
export const take = (world: World, choice: Choice): void => {
  world.account.faults += choice.price
  choice.take(world)
}
