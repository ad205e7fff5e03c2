/**
 * What holds in every world after every step, and at every end. Each answers what is wrong, in words, or `undefined`.
 */
import { Cause, Exit } from "effect"
import { type Caller, exitOf } from "./model.ts"
import type { World } from "./World.ts"

const tagOf = (failure: unknown): string =>
  String((failure as { readonly _tag?: unknown } | undefined)?._tag ?? failure)

/** How many applications went out although their process held no lease any more. */
const late = (world: World): number => world.remote.applications.filter((application) => application.late).length

/** How many calls say that theirs may not have been the only application. */
const telling = (world: World): number =>
  world.events.filter(({ claimLost, executedInDoubt, recordFailed, takenOver }) =>
    claimLost || executedInDoubt || takenOver || recordFailed
  ).length

/** The promise about the number of applications. */
const applications = (world: World): string | undefined => {
  const { account, remote, scenario: { kind } } = world
  const count = remote.applications.length
  const excused = kind.honoursKey
    ? 0
    : kind.checks || kind.whenInDoubt === "fail"
    ? late(world)
    : account.lostLeases + account.crashes + account.cuts
  return count <= 1 + excused
    ? undefined
    : `the remote holds ${count} applications, of which ${1 + excused} can be excused`
}

const oneTool = (world: World): string | undefined =>
  new Set(world.remote.applications.map(({ tool }) => tool)).size > 1
    ? "two tools applied an effect of one key"
    : undefined

/** What a caller of this world may fail with. */
const mayFailWith = (world: World, caller: Caller, tag: string): boolean => {
  const { account, scenario: { callers, kind } } = world
  switch (tag) {
    case "EffectKeyConflictError":
      return callers.some(({ tool }) => (tool ?? "tool") !== (caller.plan.tool ?? "tool"))
    case "EffectInDoubtError":
      return kind.whenInDoubt === "fail" && account.faults > 0
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
  const { name, tool = "tool" } = caller.plan
  if (Exit.isSuccess(exit)) {
    const known = world.remote.applications.slice(0, caller.appliedAtEnd)
    return known.some((application) => application.value === exit.value && application.tool === tool)
      ? undefined
      : `${name} got ${JSON.stringify(exit.value)}, which is not the result of its effect`
  }
  if (Cause.hasInterruptsOnly(exit.cause)) {
    return caller.interrupted ? undefined : `${name} ended as interrupted, and nobody interrupted it`
  }
  const failure = Cause.squash(exit.cause)
  return mayFailWith(world, caller, tagOf(failure)) ? undefined : `${name} failed with ${String(failure)}`
}

const first = <A>(items: Iterable<A>, check: (item: A) => string | undefined): string | undefined => {
  for (const item of items) {
    const wrong = check(item)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

/** After every step. */
export const afterStep = (world: World): string | undefined =>
  world.wrongs[0] ?? applications(world) ?? oneTool(world)
    ?? first(world.callers.values(), (caller) => result(world, caller))

/** What the ledger says the result is. */
const recorded = (world: World): string | undefined => {
  const row = world.ledger.row()
  return row?.status === "recorded" ? row.result : undefined
}

/**
 * Whoever got a result got the one that the ledger keeps, unless the event says that the claim was lost or the record
 * failed, or the process that would have written it crashed.
 */
const sameResult = (world: World): string | undefined => {
  const text = recorded(world)
  if (text === undefined) return undefined
  return first(world.callers.values(), (caller) => {
    const exit = exitOf(caller)
    if (exit === undefined || Exit.isFailure(exit)) return undefined
    const excused = world.events.some((event) =>
      event.process === caller.process.index && (event.claimLost || event.recordFailed)
    )
    return excused || text.includes(JSON.stringify(exit.value))
      ? undefined
      : `${caller.plan.name} got ${String(exit.value)}, and the ledger keeps ${text}`
  })
}

/** An application too many is told of, unless the process that would tell crashed. */
const told = (world: World): string | undefined => {
  const tooMany = world.remote.applications.length - 1
  return tooMany > 0 && telling(world) + world.account.crashes < tooMany
    ? `no event tells of the ${tooMany + 1} applications`
    : undefined
}

/** Once everything has calmed down: nobody waits, and nothing is left over. */
export const atRest = (world: World): string | undefined =>
  first(
    world.callers.values(),
    (caller) =>
      caller.process.crashed || exitOf(caller) !== undefined ? undefined : `${caller.plan.name} waits for ever`
  )
    ?? told(world)

/** After everybody that is left has asked once more, without trouble. */
export const atTheEnd = (world: World): string | undefined => {
  const row = world.ledger.row()
  if (row?.status === "held") return "the key is still held"
  return sameResult(world) ?? first(world.processes, (process) => {
    if (process.crashed) return undefined
    const { applications, unanswered, unreleased, unwritten } = world.scenario.program.registryOf(process.store)
    const left = {
      applications: applications.size,
      // another tool never claims the key again, and so never learns what became of its request
      unanswered: [...unanswered.values()].filter(({ tool }) => tool === row?.tool).length,
      unreleased: unreleased.size,
      unwritten: unwritten.size
    }
    const over = Object.entries(left).filter(([, count]) => count > 0).map(([name]) => name)
    return over.length === 0 ? undefined : `${process.name} still has ${over.join(" and ")}`
  })
}

/** Whether the failure says that a person must decide. */
export const isInDoubt = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && tagOf(Cause.squash(exit.cause)) === "EffectInDoubtError"
