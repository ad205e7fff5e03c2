/**
 * Who calls, where, for explorations of the real program.
 */
import { applyOnce } from "chamvi-effect"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import type { CallerPlan, Program, Scenario } from "./model.ts"
import { allKinds, type Kind, type KindName } from "./Remote.ts"

export const realProgram: Program = { applyOnce, registryOf }

export const callers = {
  /** One, and nobody else. */
  alone: [{ name: "a", process: 0 }],
  /** One in each of two processes. */
  two: [{ name: "a", process: 0 }, { name: "b", process: 1 }],
  /** Both in one process. */
  together: [{ name: "a", process: 0 }, { name: "b", process: 0 }],
  /** Two in one process, and one in another. */
  joined: [{ name: "a", process: 0 }, { name: "b", process: 0 }, { name: "c", process: 1 }],
  /** One in each of three processes. */
  three: [{ name: "a", process: 0 }, { name: "b", process: 1 }, { name: "c", process: 2 }],
  /** The process of the first comes up again after its crash. */
  restarted: [{ name: "a", process: 0 }, { name: "b", process: 1 }, { name: "a again", process: 2, afterCrashOf: 0 }],
  /** Two tools that compute the same key, in one process. */
  foreign: [{ name: "a", process: 0 }, { name: "b", process: 0, tool: "other" }],
  /** Two tools that compute the same key, in two processes. */
  strangers: [{ name: "a", process: 0 }, { name: "b", process: 1, tool: "other" }],
  /** Two inputs of one key, where that is an error, in two processes. */
  changed: [
    { name: "a", process: 0, input: "one", onInputChange: "fail" },
    { name: "b", process: 1, input: "two", onInputChange: "fail" }
  ],
  /** Two inputs of one key in one process, where that is an error to one of them. */
  changing: [
    { name: "a", process: 0, input: "one", onInputChange: "replay" },
    { name: "b", process: 0, input: "two", onInputChange: "fail" }
  ],
  /** Two keys in one turn of one process, and one of them in another. */
  batched: [
    { name: "a", process: 0 },
    { name: "b", process: 0, key: "another", startsWith: "a" },
    { name: "c", process: 1 }
  ]
} as const satisfies { readonly [name: string]: ReadonlyArray<CallerPlan> }

export type Cast = keyof typeof callers

export const scenario = (kind: KindName, cast: Cast, change: Partial<Scenario> = {}): Scenario => {
  const { name }: Kind = allKinds[kind]
  return {
    name: `${name}, ${cast}`,
    kind: allKinds[kind],
    callers: callers[cast],
    mostTicks: 8,
    program: realProgram,
    ...change
  }
}
