/**
 * What may happen next in a world. Ordinary steps are free, trouble has a price of one fault.
 */
import { EffectOutcomeUnknownError } from "chamvi-effect"
import { exitOf, type Operation, storeTrouble } from "./model.ts"
import type { World } from "./World.ts"

/**
 * What a step has to do with other processes. `nothing`: it is an affair of its own process. `everything`: its place among
 * the steps of others always makes a difference.
 */
export type Touches = "nothing" | "reads ledger" | "writes ledger" | "reads remote" | "writes remote" | "everything"

/** A choice speaks of its objects by name, so that it can be taken again in another world. */
export interface Choice {
  /** Names the choice in a schedule; the same in every run in which the same led to it. */
  readonly label: string
  readonly price: 0 | 1
  /** The process whose step it is; -1 is everybody. */
  readonly process: number
  readonly touches: Touches
  readonly take: (world: World) => void
}

/** Kinds of trouble, for explorations that leave some out. */
export type Trouble = "crash" | "freeze" | "interrupt" | "lost reply" | "failure" | "slow" | "close"

export const allTrouble: ReadonlySet<Trouble> = new Set([
  "crash",
  "freeze",
  "interrupt",
  "lost reply",
  "failure",
  "slow",
  "close"
])

const outcomeUnknown = new EffectOutcomeUnknownError({})

/** What a hook of the tool's may fail with. */
const plainFailure = { _tag: "Plain" }

const isHook = ({ kind }: Operation): boolean => kind === "check" || kind === "apply"

const arrivalTouches = (operation: Operation): Touches => {
  const reads = operation.onlyReads()
  return isHook(operation)
    ? reads ? "reads remote" : "writes remote"
    : reads
    ? "reads ledger"
    : "writes ledger"
}

/** Whether the ledger, or the account of lost leases, looks at who has crashed. */
const crashTouches = ({ scenario: { kind, seesDeath } }: World): Touches =>
  seesDeath === true ? "everything" : kind.whenInDoubt === "execute" && !kind.checks ? "reads ledger" : "nothing"

const start = (world: World): ReadonlyArray<Choice> =>
  world.scenario.callers.flatMap((plan) =>
    plan.startsWith !== undefined
      || world.callers.has(plan.name)
      || !world.processes[plan.process]!.runs
      || (plan.afterCrashOf !== undefined && !world.processes[plan.afterCrashOf]!.crashed)
      ? []
      : [{
        label: `start ${plan.name}`,
        price: 0,
        process: plan.process,
        touches: plan.afterCrashOf === undefined ? "nothing" : "everything",
        take: (world) => world.start(plan)
      }]
  )

const stepOf = (
  { label, process }: Operation,
  what: string,
  touches: Touches,
  take: (world: World, operation: Operation) => void,
  price: 0 | 1 = 0
): Choice => ({
  label: what === "" ? label : `${label} ${what}`,
  price,
  process: process.index,
  touches,
  take: (world) => take(world, world.operation(label))
})

const answered = (operation: Operation): Choice =>
  stepOf(operation, "is answered", "nothing", (world, operation) => world.answer(operation))

// it has left before its process stopped
const arrives = (operation: Operation): Choice =>
  stepOf(operation, "arrives", arrivalTouches(operation), (world, operation) => {
    world.arrive(operation)
    if (operation.process.crashed) world.silence(operation)
  })

const done = (operation: Operation): Choice =>
  stepOf(operation, "", arrivalTouches(operation), (world, operation) => {
    world.arrive(operation)
    world.answer(operation)
  })

const ordinary = (world: World): ReadonlyArray<Choice> => {
  const choices: Array<Choice> = []
  for (const operation of world.operations) {
    const { runs } = operation.process
    if (operation.stage !== "answered") choices.push(runs ? done(operation) : arrives(operation))
    else if (runs) choices.push(answered(operation))
  }
  for (const { crashed, frozen, index, name } of world.processes) {
    if (frozen && !crashed) {
      choices.push({
        label: `${name} thaws`,
        price: 0,
        process: index,
        touches: "nothing",
        take: (world) => world.thaw(world.processes[index]!)
      })
    }
  }
  return choices
}

const timePasses: ReadonlyArray<Choice> = [{
  label: "time passes",
  price: 0,
  process: -1,
  touches: "everything",
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

const troubleOf = (world: World, operation: Operation, kinds: ReadonlySet<Trouble>): ReadonlyArray<Choice> => {
  const { kind, process, stage } = operation
  if (!process.runs || stage === "answered") return []
  const choices: Array<Choice> = []
  const arrival = arrivalTouches(operation)
  const add = (
    trouble: Trouble,
    what: string,
    touches: Touches,
    take: (world: World, operation: Operation) => void
  ): void => {
    if (kinds.has(trouble)) choices.push(stepOf(operation, what, touches, take, 1))
  }
  const failing = (failure: unknown) => (world: World, operation: Operation): void => {
    world.arrive(operation)
    world.answer(operation, failure)
  }
  const crash = crashTouches(world) === "nothing" || arrival === "writes ledger" ? arrival : "everything"
  add("crash", "arrives, crash", crash, (world, operation) => {
    world.arrive(operation)
    world.crash(operation.process)
  })
  if (stage === "waiting") {
    add("slow", "is slow", "nothing", (_, operation) => {
      operation.stage = "slow"
    })
  }
  add("slow", "arrives, its answer is slow", arrival, (world, operation) => world.arrive(operation))
  if (isHook(operation)) {
    add("failure", "fails", "nothing", (world, operation) => world.answer(operation, plainFailure))
    if (kind !== "apply") return choices
    add("lost reply", "arrives, its answer is lost", arrival, (world, operation) => {
      world.account.cuts++
      failing(outcomeUnknown)(world, operation)
    })
    // whoever is asked afterwards need not know how the request ended
    if (world.scenario.kind.checks) add("lost reply", "arrives, and fails", arrival, failing(plainFailure))
    return choices
  }
  add("failure", "fails", "nothing", (world, operation) => world.answer(operation, storeTrouble))
  add("lost reply", "arrives, its answer is an error", arrival, failing(storeTrouble))
  add("lost reply", "arrives, its answer never comes", arrival, (world, operation) => {
    world.arrive(operation)
    world.silence(operation)
  })
  return choices
}

const troubleOfProcesses = (world: World, kinds: ReadonlySet<Trouble>): ReadonlyArray<Choice> => {
  const choices: Array<Choice> = []
  const add = (trouble: Trouble, process: number, label: string, touches: Touches, take: Choice["take"]): void => {
    if (kinds.has(trouble)) choices.push({ label, price: 1, process, touches, take })
  }
  for (const process of world.processes) {
    if (!process.runs) continue
    const { index, name } = process
    if (world.isIdle(process)) continue
    if (world.scenario.closes === true && process.life === "open") {
      add("close", index, `${name} closes its store`, "nothing", (world) => world.close(world.processes[index]!))
    }
    add("crash", index, `${name} crashes`, crashTouches(world), (world) => world.crash(world.processes[index]!))
    add("freeze", index, `${name} freezes`, "nothing", (world) => {
      world.processes[index]!.frozen = true
    })
  }
  for (const caller of world.callers.values()) {
    if (!caller.process.runs || caller.interrupted || exitOf(caller) !== undefined) continue
    const { name } = caller.plan
    add(
      "interrupt",
      caller.process.index,
      `${name} leaves`,
      "nothing",
      (world) => world.interrupt(world.callers.get(name)!)
    )
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
  return [
    ...free,
    ...world.operations.flatMap((operation) => troubleOf(world, operation, kinds)),
    ...troubleOfProcesses(world, kinds)
  ]
}

/** Takes a choice, and counts its price. */
export const take = (world: World, choice: Choice): void => {
  world.account.faults += choice.price
  const process = choice.price > 0 ? world.processes[choice.process] : undefined
  if (process !== undefined && process.life !== "open") process.troubledAtClose++
  choice.take(world)
}
