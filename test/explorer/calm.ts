/**
 * The end of every schedule: no trouble any more. What is slow arrives, who is frozen thaws, and then every process that
 * is left, and a new one, asks once more.
 */
import { EffectResolution } from "chamvi-effect"
import { Exit } from "effect"
import { afterStep, atRest, atTheEnd, isInDoubt } from "./invariants.ts"
import { exitOf, key } from "./model.ts"
import type { Process } from "./Process.ts"
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

const ask = (world: World, name: string, process: Process): string | undefined => {
  const tool = world.ledger.row()?.tool ?? "tool"
  const caller = world.start({ name, process: process.index, tool }, process)
  const wrong = settle(world)
  if (wrong !== undefined) return wrong
  const exit = exitOf(caller)
  if (exit === undefined) return `${name} waits for ever`
  if (Exit.isSuccess(exit)) return undefined
  return isInDoubt(exit) && world.scenario.kind.whenInDoubt === "fail"
    ? undefined
    : `${name} failed although all is well: ${String(exit.cause)}`
}

/** A person looks at the remote and says what is there. */
const resolve = (world: World): string | undefined => {
  const value = world.remote.applications.at(0)?.value
  const reply = value === undefined
    ? world.ledger.resolve(EffectResolution.notApplied, undefined, world.now)
    : world.ledger.resolve(EffectResolution.applied(value), JSON.stringify(value), world.now)
  return reply === "ok" ? undefined : `a key in doubt cannot be resolved: ${reply}`
}

/**
 * Runs the world to its end, and answers what is wrong with it.
 */
export const calmDown = (world: World): string | undefined => {
  for (const process of world.processes) if (process.frozen) world.thaw(process)
  const wrong = settle(world) ?? atRest(world)
  if (wrong !== undefined) return wrong
  const left = [...world.processes.filter(({ crashed }) => !crashed), world.newProcess()]
  const before = world.remote.applications.length
  for (const process of left) {
    const wrong = ask(world, `${process.name}, in the end,`, process)
    if (wrong !== undefined) return wrong
  }
  if (world.ledger.row()?.status !== "recorded") {
    const wrong = resolve(world) ?? ask(world, "a last caller", left[0]!) ?? (world.ledger.row()?.status === "recorded"
      ? undefined
      : "a resolved key is not recorded after a call")
    if (wrong !== undefined) return wrong
  }
  if (world.remote.applications.length === 0) return `the effect of ${key} was never applied`
  const { checks, lag } = world.scenario.kind
  if (before > 0 && world.remote.applications.length > before && checks && lag === 0) {
    return "a caller in the end applied the effect once more"
  }
  return atTheEnd(world)
}
