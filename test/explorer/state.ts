/**
 * What the future of a world depends on, as a hash: exactly, and without what makes no difference.
 *
 * What makes no difference: the time of day, since all that happens is told apart by intervals; which numbers tokens have,
 * and what claims are called; which of two processes with the same callers is which; how a process came to have nothing
 * left; whatever only a person reads.
 */
import type { EffectEvent } from "chamvi-effect"
import { type Caller, keyOf, type Operation, toolOf } from "./model.ts"
import { mix, type Process } from "./Process.ts"
import type { Subject } from "./Subject.ts"
import type { World } from "./World.ts"

export interface State {
  readonly hash: number
  /** The place of each process in it. */
  readonly places: ReadonlyArray<number>
}

/** Whether the event says that its call's application may not have been the only one. */
export const tells = ({ claimLost, executedInDoubt, takenOver }: EffectEvent): boolean =>
  claimLost || executedInDoubt || takenOver

export const endOf = ({ fiber }: Caller): string => {
  const exit = fiber.pollUnsafe()
  return exit === undefined ? "runs" : exit._tag === "Success" ? String(exit.value) : "failed"
}

const operationState = ({ kind, label, means, process, reply, says, stage }: Operation): string =>
  // what an operation of a living process says follows from the process's history
  stage === "answered"
    ? `${label.slice(process.name.length)} ${means(reply)}`
    : `${label.slice(process.name.length)} ${stage} ${process.crashed ? `${kind} ${says}` : ""}`

const holds = (process: Process, { key, ledger }: Subject): boolean => {
  const row = ledger.row()
  return row?.status === "held" && row.token === process.hold(key).toldToken
}

/** What only a process with a history can do something with. */
const holdState = (world: World, process: Process, { key, ledger }: Subject): unknown => {
  const row = ledger.row()
  const hold = process.hold(key)
  return [
    Math.max(0, hold.leaseUntil - world.now),
    hold.toldLost,
    row && hold.ownToken(row.token),
    row?.status === "held" && hold.ownClaimId(row.claimId)
  ]
}

const processState = (world: World, process: Process): string => {
  const { callers, events, operations, subjects } = world
  const requests = operations.filter((operation) => operation.process === process).map(operationState).sort()
  const idle = process.crashed ? requests.length === 0 : world.isIdle(process)
  const { crashed, frozen, life, missed } = process
  return JSON.stringify([
    [...subjects.values()].map((subject) => idle ? holds(process, subject) : holdState(world, process, subject)),
    crashed ? "crashed" : idle ? [frozen, life] : [
      process.history,
      world.now - process.notedAt,
      frozen,
      missed,
      life,
      process.troubledAtClose > 0
    ],
    requests,
    [...callers.values()].filter((caller) => caller.process === process)
      .map((caller) => `${toolOf(caller.plan)} ${keyOf(caller.plan)} ${caller.plan.input} ${endOf(caller)}`).sort(),
    events.some((event) => event.process === process.index && (event.claimLost || event.recordFailed)),
    planOf(world, process.index)
  ])
}

const plans = new WeakMap<World["scenario"]["callers"], ReadonlyArray<string>>()

/** What a process's callers are, beside their names; processes of which others speak stand for themselves. */
const planOf = ({ scenario: { callers } }: World, index: number): string => {
  let known = plans.get(callers)
  if (known === undefined) {
    const processes = Math.max(...callers.map(({ process }) => process)) + 1
    known = Array.from({ length: processes }, (_, index) => {
      const own = callers.filter(({ process }) => process === index)
      const named = callers.some(({ afterCrashOf }) => afterCrashOf === index)
        || own.some(({ afterCrashOf, startsWith }) => afterCrashOf !== undefined || startsWith !== undefined)
      return JSON.stringify([
        named ? index : "",
        own.map((plan) => [toolOf(plan), keyOf(plan), plan.input, plan.onInputChange])
      ])
    })
    plans.set(callers, known)
  }
  return known[index] ?? String(index)
}

const subjectState = (world: World, { ledger, remote }: Subject): unknown => {
  const { kind: { lag, mute } } = world.scenario
  const row = ledger.row()
  const ago = (at: number, most: number): number => Math.min(world.now - at, most)
  return [
    // nothing moves a record any more, whenever it was written
    row && [
      row.tool,
      row.status,
      row.fingerprint,
      ...row.status === "recorded" ? [row.result, row.outcome] : [
        row.doubt,
        row.takenOver,
        row.status === "held" && Math.max(row.leaseEnd - world.now, lag === 0 ? 0 : -lag),
        ago(row.seenAt, lag),
        row.earlier && [ago(row.earlier.seenAt, lag), row.earlier.fingerprint]
      ]
    ],
    remote.applications.map(({ at, late, value }) => [value, late, ago(at, lag + mute)])
  ]
}

/** What of the account may excuse an application. */
const excusesOf = ({ account, scenario: { kind: { checks, honoursKey, whenInDoubt } } }: World): number =>
  honoursKey || checks || whenInDoubt === "fail" ? 0 : account.lostLeases + account.cuts

/** The state without what makes no difference, apart from faults and the passing of time, which are counted. */
export const stateOf = (world: World): State => {
  const { events, processes, subjects } = world
  const states = processes.map((process) => processState(world, process))
  const order = states.map((_, index) => index).sort((a, b) =>
    states[a]! < states[b]! ? -1 : states[a]! > states[b]! ? 1 : a - b
  )
  const places: Array<number> = []
  order.forEach((index, place) => {
    places[index] = place
  })
  const shared = JSON.stringify([
    Array.from(subjects.values(), (subject) => subjectState(world, subject)),
    excusesOf(world),
    events.filter(tells).length
  ])
  return { hash: order.reduce((hash, index) => mix(states[index]!, hash), mix(shared)), places }
}

/** The state as it is. */
export const exactStateOf = (world: World): number => {
  const { account, callers, events, now, operations, processes, subjects } = world
  return mix(JSON.stringify([
    now,
    Array.from(subjects.values(), ({ ledger, remote }) => {
      const row = ledger.row()
      return [row && { ...row, claimId: "", owner: "" }, remote.applications]
    }),
    processes.map((process) => [
      process.exactHistory,
      process.crashed,
      process.frozen,
      process.missed,
      process.life,
      Array.from(subjects.keys(), (key) => {
        const { leaseUntil, toldLost, token } = process.hold(key)
        return [leaseUntil, token, toldLost]
      })
    ]),
    operations.map(({ label, reply, says, stage }) => [label, says, stage, reply]).map((it) => JSON.stringify(it))
      .sort(),
    Array.from(callers.values(), (caller) => [caller.plan.name, caller.interrupted, endOf(caller)].join(" ")).sort(),
    events.map((event) => JSON.stringify(event)).sort(),
    [account.faults, account.ticks, account.crashes, excusesOf(world)]
  ]))
}
