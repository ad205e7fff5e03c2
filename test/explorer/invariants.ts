/**
 * What holds in every world after every step, and at every end. Each answers what is wrong, in words, or `undefined`.
 */
import { Cause, Exit } from "effect"
import { type Caller, exitOf, keyOf, toolOf } from "./model.ts"
import { tells } from "./state.ts"
import type { Subject } from "./Subject.ts"
import type { World } from "./World.ts"

export const tagOf = (failure: unknown): string =>
  String((failure as { readonly _tag?: unknown } | undefined)?._tag ?? failure)

export const first = <A>(items: Iterable<A>, check: (item: A) => string | undefined): string | undefined => {
  for (const item of items) {
    const wrong = check(item)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** The promise about the number of applications. */
const applications = ({ account, scenario: { kind } }: World, { remote }: Subject): string | undefined => {
  const count = remote.applications.length
  const excused = kind.honoursKey
    ? 0
    : kind.checks || kind.whenInDoubt === "fail"
    ? remote.applications.filter(({ late }) => late).length
    : account.lostLeases + account.crashes + account.cuts
  return count <= 1 + excused
    ? undefined
    : `the remote holds ${count} applications, of which ${1 + excused} can be excused`
}

const oneTool = ({ remote }: Subject): string | undefined =>
  new Set(remote.applications.map(({ tool }) => tool)).size > 1
    ? "two tools applied an effect of one key"
    : undefined

/** What a caller of this world may fail with. */
const mayFailWith = ({ account, scenario: { callers, kind } }: World, { plan }: Caller, tag: string): boolean => {
  const others = callers.filter((other) => keyOf(other) === keyOf(plan))
  switch (tag) {
    case "EffectKeyConflictError":
      return others.some((other) => toolOf(other) !== toolOf(plan))
    case "EffectInputChangedError":
      return plan.onInputChange === "fail" && others.some(({ input }) => input !== plan.input)
    case "EffectInDoubtError":
      return kind.whenInDoubt === "fail" && account.faults > 0
    case "EffectResultUnavailableError":
      return kind.mute > 0 && account.faults > 0
    case "EffectInProgressError":
    case "EffectStoreError":
    case "EffectOutcomeUnknownError":
    case "Plain":
      return account.faults > 0
    default:
      return false
  }
}

const result = (world: World, caller: Caller): string | undefined => {
  const exit = exitOf(caller)
  if (exit === undefined) return undefined
  const { plan, plan: { input, name, onInputChange } } = caller
  if (Exit.isSuccess(exit)) {
    const known = world.subject(keyOf(plan)).remote.applications.slice(0, caller.appliedAtEnd)
    const its = known.find(({ tool, value }) => value === exit.value && tool === toolOf(plan))
    if (its === undefined) return `${name} got ${JSON.stringify(exit.value)}, which is not the result of its effect`
    if (input === undefined || its.input === "" || its.input === input) return undefined
    if (onInputChange === "fail") return `${name} got the result of another input`
    const said = world.events.some(({ inputChanged, process }) => process === caller.process.index && inputChanged)
    return said || !caller.process.runs ? undefined : `no event says that ${name} got the result of another input`
  }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return caller.interrupted ? undefined : `${name} ended as interrupted, and nobody interrupted it`
  }
  const failure = Cause.squash(exit.cause)
  return mayFailWith(world, caller, tagOf(failure)) ? undefined : `${name} failed with ${String(failure)}`
}

/** After every step. */
export const afterStep = (world: World): string | undefined =>
  world.wrongs[0]
    ?? first(world.subjects.values(), (subject) => applications(world, subject) ?? oneTool(subject))
    ?? first(world.callers.values(), (caller) => result(world, caller))

/**
 * Whoever got a result got the one that the ledger keeps, unless the event says that the claim was lost or the record
 * failed, or the process that would have written it crashed.
 */
const sameResult = (world: World): string | undefined =>
  first(world.callers.values(), (caller) => {
    const exit = exitOf(caller)
    const row = world.subject(keyOf(caller.plan)).ledger.row()
    if (row?.status !== "recorded" || exit === undefined || Exit.isFailure(exit)) return undefined
    const excused = world.events.some((event) =>
      event.process === caller.process.index && (event.claimLost || event.recordFailed)
    )
    return excused || row.result!.includes(JSON.stringify(exit.value))
      ? undefined
      : `${caller.plan.name} got ${String(exit.value)}, and the ledger keeps ${row.result}`
  })

/** An application too many is told of, unless the process that would tell crashed. */
const told = (world: World): string | undefined =>
  first(world.subjects.values(), ({ key, remote: { applications } }) => {
    const tooMany = applications.length - 1
    if (tooMany <= 0) return undefined
    const telling = world.events.filter((event) => event.key === key && tells(event)).length
    const silent = applications.filter(({ process }) => world.processes[process]!.crashed).length
    return telling + silent < tooMany ? `no event tells of the ${tooMany + 1} applications` : undefined
  })

/** Once everything has calmed down: nobody waits, and nothing is left over. */
export const atRest = (world: World): string | undefined =>
  first(
    world.callers.values(),
    (caller) =>
      caller.process.crashed || exitOf(caller) !== undefined ? undefined : `${caller.plan.name} waits for ever`
  )
    ?? first(
      world.processes,
      ({ crashed, life, name }) => life === "closing" && !crashed ? `${name} never ends to close` : undefined
    )
    ?? told(world)

/** After everybody that is left has asked once more, without trouble. */
export const atTheEnd = (world: World): string | undefined =>
  first(
    world.subjects.values(),
    ({ key, ledger }) => ledger.row()?.status === "held" ? `the key ${key} is still held` : undefined
  )
    ?? sameResult(world)
    ?? first(world.processes, (process) => {
      if (process.crashed) return undefined
      const { applications, unanswered, unreleased, unwritten } = world.scenario.program.registryOf(process.store)
      // a closed store takes nothing any more
      const open = process.life === "open"
      const left = {
        applications: applications.size,
        unanswered: open ? unanswered.size : 0,
        unreleased: unreleased.size,
        unwritten: open ? unwritten.size : 0
      }
      const over = Object.entries(left).filter(([, count]) => count > 0).map(([name]) => name)
      return over.length === 0 ? undefined : `${process.name} still has ${over.join(" and ")}`
    })

/** Whether the failure says that a person must decide. */
export const isInDoubt = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && tagOf(Cause.squash(exit.cause)) === "EffectInDoubtError"
