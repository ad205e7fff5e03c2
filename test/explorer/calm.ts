/**
 * The end of every schedule: no trouble any more. What is slow arrives, who is frozen thaws, and then every process that
 * is left, and a new one, asks once more.
 */
import { EffectResolution } from "chamvi-effect"
import { Cause, Exit } from "effect"
import { afterStep, atRest, atTheEnd, first, isInDoubt, tagOf } from "./invariants.ts"
import { exitOf, keyOf, toolOf } from "./model.ts"
import type { Process } from "./Process.ts"
import type { Subject } from "./Subject.ts"
import type { World } from "./World.ts"

const mostSteps = 1_000

/** Answers and lets time pass until nothing moves. */
const settle = (world: World): string | undefined => {
  for (let steps = 0; steps < mostSteps; steps++) {
    const operation = world.operations[0]
    if (operation !== undefined) {
      if (operation.stage !== "answered") world.arrive(operation)
      if (world.operations.includes(operation)) world.answer(operation)
    } else if (world.nextDue < Infinity) {
      world.tick()
    } else {
      return undefined
    }
    const wrong = afterStep(world)
    if (wrong !== undefined) return wrong
  }
  return "something goes on for ever"
}

/** One more call, which must succeed, or be `excused`. */
const ask = (
  world: World,
  name: string,
  process: Process,
  { key, ledger }: Subject,
  excused: (exit: Exit.Exit<unknown, unknown>) => boolean,
  tool = ledger.row()?.tool ?? "tool"
): string | undefined => {
  world.start({ name, process: process.index, key, tool }, process)
  const wrong = settle(world)
  if (wrong !== undefined) return wrong
  const exit = exitOf(world.callers.get(name)!)
  if (exit === undefined) return `${name} waits for ever`
  if (excused(exit)) return undefined
  return Exit.isSuccess(exit)
    ? `${name} got ${String(exit.value)}, and should not`
    : `${name} failed although all is well: ${String(exit.cause)}`
}

/** A person looks at the remote and says what is there. */
const resolve = (world: World, { ledger, remote }: Subject): string | undefined => {
  const value = remote.applications.at(0)?.value
  const reply = value === undefined
    ? ledger.resolve(EffectResolution.notApplied, undefined, world.now)
    : ledger.resolve(EffectResolution.applied(value), JSON.stringify(value), world.now)
  return reply === "ok" ? undefined : `a key in doubt cannot be resolved: ${reply}`
}

/** Everybody who is left asks for the key once more, and then it has its record. */
const end = (world: World, left: ReadonlyArray<Process>, subject: Subject): string | undefined => {
  const { ledger, remote } = subject
  const { checks, lag, whenInDoubt } = world.scenario.kind
  const before = remote.applications.length
  const settled = (exit: Exit.Exit<unknown, unknown>) =>
    Exit.isSuccess(exit) || (isInDoubt(exit) && whenInDoubt === "fail")
  const wrong = first(
    left,
    (process) => ask(world, `${process.name}, in the end, for ${subject.key},`, process, subject, settled)
  )
  if (wrong !== undefined) return wrong
  if (ledger.row()?.status !== "recorded") {
    const wrong = resolve(world, subject)
      ?? ask(world, `a last caller for ${subject.key}`, left[0]!, subject, Exit.isSuccess)
    if (wrong !== undefined) return wrong
    if (ledger.row()?.status !== "recorded") return "a resolved key is not recorded after a call"
  }
  if (remote.applications.length === 0) return `the effect of ${subject.key} was never applied`
  if (before > 0 && remote.applications.length > before && checks && lag === 0) {
    return "a caller in the end applied the effect once more"
  }
  // to every other tool the key is another's, for ever
  const { callers } = world.scenario
  const others = new Set(callers.filter((plan) => keyOf(plan) === subject.key).map(toolOf))
  others.delete(ledger.row()!.tool)
  const conflict = (exit: Exit.Exit<unknown, unknown>) =>
    Exit.isFailure(exit) && tagOf(Cause.squash(exit.cause)) === "EffectKeyConflictError"
  return first(
    others,
    (tool) =>
      first(left, (process) => ask(world, `${tool} of ${process.name}, in the end,`, process, subject, conflict, tool))
  )
}

/**
 * Runs the world to its end, and answers what is wrong with it.
 */
export const calmDown = (world: World): string | undefined => {
  for (const process of world.processes) if (process.frozen) world.thaw(process)
  const wrong = settle(world) ?? atRest(world)
  if (wrong !== undefined) return wrong
  world.now += world.scenario.kind.mute
  const left = [...world.processes.filter(({ crashed, life }) => !crashed && life === "open"), world.newProcess()]
  return first(world.subjects.values(), (subject) => end(world, left, subject)) ?? atTheEnd(world)
}
