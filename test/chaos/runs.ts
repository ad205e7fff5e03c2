/**
 * Runs, from the side of those who ask for them.
 */
import { Engine } from "chamvi-effect"
import { Effect, Schedule } from "effect"
import type { Agents } from "./agents.ts"
import type { Run } from "./protocol.ts"

export const makeRuns = (count: number, kinds: ReadonlyArray<Run["kind"]>): ReadonlyArray<Run> =>
  Array.from({ length: count }, (_, index) => {
    const kind = kinds[index % kinds.length]!
    return { kind, runId: `${kind}-${index + 1}` }
  })

/** So many runs are under way at once: what waits for its turn would only be taken over and over again. */
const underWay = 60

/** Starts the runs, or finds them started, and waits for each of them. An engine that cannot reach its database is asked again. */
export const runAll = (agents: Agents, runs: ReadonlyArray<Run>) =>
  Effect.forEach(
    runs,
    (run) =>
      Engine.run(agents[run.kind], { runId: run.runId, prompt: run.runId }).pipe(
        Effect.retry({
          while: ({ _tag }) => _tag === "EngineStoreError",
          schedule: Schedule.spaced("500 millis")
        }),
        Effect.exit
      ),
    { concurrency: underWay }
  )
