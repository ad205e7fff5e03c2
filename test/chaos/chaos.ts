/**
 * One scenario, from its start to its verdict.
 */
import { EffectStore, Engine } from "chamvi-effect"
import { Clock, Duration, Effect, Layer, Option, type Scope, Stream } from "effect"
import { join } from "node:path"
import { makeDice } from "../explorer/dice.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { type Agents, makeAgents } from "./agents.ts"
import type { Database } from "./disturbances.ts"
import { watcherOf } from "./engines.ts"
import { makeFleet } from "./Fleet.ts"
import { warmUp } from "./pace.ts"
import type { Orders, Run } from "./protocol.ts"
import { makeRemote } from "./Remote.ts"
import { makeRuns, runAll } from "./runs.ts"
import type { Scenario } from "./scenarios.ts"
import { type EndedRun, judge, type Verdict } from "./verdict.ts"

/** How far a scenario is. */
export interface Progress {
  readonly seconds: number
  readonly effects: number
  readonly blows: number
}

export interface Report extends Verdict {
  readonly scenario: string
  readonly blows: number
  readonly seconds: number
  /** How many times longer leases and takeovers were, since the machine was slow. */
  readonly pace: number
}

export interface ChaosOptions {
  readonly seed: number
  /** How long the scenario may take. A run that has not ended by then is lost. */
  readonly seconds: number
  /** Where a cluster shall live. */
  readonly database: Effect.Effect<Database, unknown, Scope.Scope>
  readonly progress?: ((progress: Progress) => void) | undefined
}

/** What the engine and the ledger tell in the end. */
const inspect = Effect.fnUntraced(function*(agents: Agents, runs: ReadonlyArray<Run>) {
  const engine = yield* Engine
  const store = yield* EffectStore
  const ended = yield* Effect.forEach(runs, (run) =>
    Effect.gen(function*() {
      const { failure, status } = yield* engine.get(run.runId)
      const text = status === "completed" ? (yield* engine.resume(agents[run.kind], run.runId)).text : undefined
      return { ...run, status, text, failure: failure?.message } satisfies EndedRun
    }).pipe(
      Effect.catchTag(
        "RunNotFoundError",
        () => Effect.succeed<EndedRun>({ ...run, status: "unknown", text: undefined })
      )
    ))
  return { runs: ended, ledger: yield* Stream.runCollect(store.list()) }
})

const engineFor = Effect.fnUntraced(function*(scenario: Scenario, runs: ReadonlyArray<Run>, options: ChaosOptions) {
  if (scenario.engine === "Cluster") {
    const database = yield* options.database
    const { schema, url } = database
    return { database, engine: { _tag: "Cluster", schema, url } as const }
  }
  const filename = join(yield* temporaryDirectory, "engine.sqlite")
  return { database: undefined, engine: { _tag: "Sqlite", filename, runs } as const }
})

export const runScenario = (scenario: Scenario, options: ChaosOptions) =>
  Effect.scoped(Effect.gen(function*() {
    const startedAt = yield* Clock.currentTimeMillis
    const seconds = Effect.map(Clock.currentTimeMillis, (now) => Math.round((now - startedAt) / 1000))
    const { concurrency, unprotected } = scenario
    const { compiled, pace } = yield* warmUp
    const lease = Math.round(scenario.lease * pace)
    const takeover = Math.round(scenario.takeover * pace)
    const runs = makeRuns(scenario.runs, scenario.kinds)
    const { database, engine } = yield* engineFor(scenario, runs, options)
    const remote = yield* makeRemote(makeDice(options.seed + 1))
    const orders: Orders = { remote: remote.url, unprotected, engine, lease, concurrency, takeover, drain: 10_000 }
    const agents = makeAgents(orders)
    const watching = yield* Effect.cached(Layer.build(watcherOf(orders)))
    const fleet = yield* makeFleet(orders, scenario.workers, compiled)

    const waited = engine._tag === "Sqlite"
      ? fleet.done
      : Effect.flatMap(watching, (watcher) => Effect.provideContext(runAll(agents, runs), watcher))
    let blows = 0
    const dice = makeDice(options.seed)
    const disturbed = scenario.disturbance({ fleet, remote, database, dice, pace, struck: () => void blows++ })
    const shown = Effect.forever(Effect.andThen(
      Effect.map(seconds, (seconds) => options.progress?.({ seconds, effects: remote.applications.length, blows })),
      Effect.sleep("5 seconds")
    ))
    const ended = yield* Effect.timeoutOption(
      Effect.raceAllFirst([waited, disturbed, shown]),
      Duration.seconds(options.seconds)
    )
    yield* remote.disarm
    const left = yield* Effect.timeoutOption(fleet.dismiss, "1 minute")
    yield* remote.quiet
    const { ledger, ...told } = yield* Effect.flatMap(
      watching,
      (watcher) => Effect.provideContext(inspect(agents, runs), watcher)
    )
    const { figures, violations } = judge({
      ...told,
      ledger,
      applications: remote.applications,
      generations: remote.generations,
      heard: fleet.heard,
      crashes: fleet.crashes,
      everFrozen: fleet.everFrozen,
      duplicatesWithEvent: scenario.duplicatesWithEvent === true
    })
    const late = Option.isSome(ended) ? [] : [`the runs did not end within ${options.seconds} seconds`]
    const stuck = Option.isSome(left) ? [] : ["the workers did not leave within a minute"]
    const report: Report = {
      scenario: scenario.name,
      figures,
      violations: [...[...late, ...stuck].map((problem) => ({ runId: "-", problem })), ...violations],
      blows,
      pace,
      seconds: yield* seconds
    }
    return report
  }))
