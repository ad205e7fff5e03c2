/** Workers that stop, freeze, or lose their runs while a tool is at it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Schedule } from "effect"
import type { Child } from "../fixtures/child.ts"
import { agents, type Cluster, makeCluster, until } from "../support/cluster.ts"
import { noPostgres } from "../support/postgres.ts"

const timeout = 240_000

/** Starts a run that stays at a point, and answers the worker that has it, the others, and who waits for the result. */
const staying = Effect.fnUntraced(function*(
  cluster: Cluster,
  workers: ReadonlyArray<Child>,
  agent: (typeof agents)[keyof typeof agents],
  run: string,
  stay: string
) {
  const engine = yield* cluster.engine
  const result = yield* Effect.forkScoped(engine.run(agent, cluster.inputOf({ run, stay })))
  const owner = yield* Effect.raceAllFirst(workers.map((worker) => Effect.as(worker.line, worker)))
  return { owner, result: Fiber.join(result) }
})

describe.skipIf(noPostgres)("a worker that freezes in a request", () => {
  it.live(
    "until others have its run, and thaws within its lease, applies the effect once",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const workers = yield* cluster.workers({}, {})
        const run = "thawed"
        const { owner, result } = yield* staying(cluster, workers, agents.slow, run, "in the request")
        yield* owner.kill("SIGSTOP")
        // the new owner has come as far as the claim, which it waits for
        yield* until(() => cluster.callsOf(run) > 1)
        yield* owner.kill("SIGCONT")
        yield* cluster.go(run)
        expect((yield* result).text).toBe("Charged.")
        expect({ attempts: cluster.attemptsOf(run), remote: cluster.remoteOf(run), model: cluster.modelOf(run) })
          .toEqual({
            attempts: 1,
            remote: [`${run}:charge`, `${run}:look`],
            model: [`${run} step 0`, `${run} step 1`]
          })
      }),
    { timeout }
  )

  it.live(
    "past its lease applies the effect again where the remote does, and the events say so",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const workers = yield* cluster.workers({}, {})
        const run = "late"
        const { owner, result } = yield* staying(cluster, workers, agents.plain, run, "in the request")
        yield* owner.kill("SIGSTOP")
        expect((yield* result).text).toBe("Charged.")
        yield* owner.kill("SIGCONT")
        yield* cluster.go(run)
        yield* until(() => cluster.eventsOf(run).length === 2)
        expect(cluster.remoteOf(run)).toEqual([`${run}:charge`, `${run}:charge`, `${run}:look`])
        expect(cluster.eventsOf(run)).toMatchObject([
          { outcome: "executed", takenOver: true, claimLost: false },
          { claimLost: true }
        ])
      }),
    { timeout }
  )
})

describe.skipIf(noPostgres)("a worker that is asked to end", () => {
  it.live("lets its tools end first, and its runs go on elsewhere", () =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster
      // so long that none is taken for dead
      const workers = yield* cluster.workers({ takeover: 60_000 }, { takeover: 60_000 })
      const run = "drained"
      const { owner, result } = yield* staying(cluster, workers, agents.plain, run, "before the effect")
      yield* owner.kill("SIGTERM")
      // it has begun to stop
      yield* Effect.repeat(cluster.addresses, {
        until: (addresses) => addresses.length === 1,
        schedule: Schedule.spaced("50 millis")
      })
      yield* cluster.go(run)
      yield* owner.ended
      expect((yield* result).text).toBe("Charged.")
      expect({ attempts: cluster.attemptsOf(run), remote: cluster.remoteOf(run), model: cluster.modelOf(run) }).toEqual(
        {
          attempts: 1,
          remote: [`${run}:charge`, `${run}:look`],
          model: [`${run} step 0`, `${run} step 1`]
        }
      )
    }), { timeout })
})
