/**
 * The scenarios of the chaos run: who works, on what, and what is done to them.
 */
import { type Disturbance, freeze, joinAndLeave, kill, restart } from "./disturbances.ts"
import type { Kind, ToolName } from "./protocol.ts"

/** Durations are in milliseconds; leases and takeovers are longer on a slow machine. */
export interface Scenario {
  readonly name: string
  readonly engine: "Cluster" | "Sqlite"
  readonly kinds: ReadonlyArray<Kind>
  readonly runs: number
  readonly workers: number
  /** How many runs each worker executes at once. */
  readonly concurrency: number
  readonly lease: number
  /** After how long without a sign of life others take a worker's runs over. */
  readonly takeover: number
  readonly disturbance: Disturbance
  /** Whether an effect may be applied once more where its event says so. */
  readonly duplicatesWithEvent?: boolean | undefined
  readonly unprotected?: ToolName | undefined
}

const both: ReadonlyArray<Kind> = ["clerk", "courier"]

// leases that no live worker outlives
const patient = { engine: "Cluster", kinds: both, workers: 3, concurrency: 20, lease: 6000, takeover: 4000 } as const

// as short as the locks of the workers: frozen for longer, a worker loses its claims and its runs
const hasty = { ...patient, concurrency: 4, lease: 2000, takeover: 3000, disturbance: freeze(500, 7000) } as const

export const scenarios: ReadonlyArray<Scenario> = [
  { ...patient, name: "kill", runs: 200, disturbance: kill(2000) },
  { ...patient, name: "join-leave", runs: 200, disturbance: joinAndLeave(2000) },
  { ...patient, name: "restart", runs: 100, disturbance: restart(4000) },
  { ...hasty, name: "freeze", kinds: ["courier"], runs: 100 },
  { ...hasty, name: "freeze-plain", kinds: ["clerk"], runs: 100, duplicatesWithEvent: true },
  { ...patient, engine: "Sqlite", name: "sqlite", runs: 50, workers: 1, disturbance: kill(4000) }
]
