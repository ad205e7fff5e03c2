/** Workers in processes of their own, of a cluster or of a SQLite file, and a client of theirs in this one. */
import { defineAgent, Engine } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { start } from "../fixtures/child.ts"
import type { Options, Plan } from "../fixtures/clusterWorker.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { says, scripted } from "./model.ts"
import { databaseUrl, freshSchema, pool } from "./postgres.ts"

/** Short, so that nobody waits long for a worker that has died, and longer than a busy machine lets a live one wait. */
const quick = { takeover: 6_000, pollInterval: 250, drain: 60_000 }

/** The agents that the workers register; this process has no use for their tools. */
export const agents = {
  charger: defineAgent({ name: "charger", model: scripted(says("never")) }),
  plain: defineAgent({ name: "plain", model: scripted(says("never")) }),
  slow: defineAgent({ name: "slow", model: scripted(says("never")) }),
  streamer: defineAgent({ name: "streamer", model: scripted(says("never")), stream: true }),
  keyed: defineAgent({ name: "keyed", model: scripted(says("never")) })
}

/** A cluster that has no workers yet, in a schema of its own. */
export const makeCluster = Effect.flatMap(freshSchema, (schema) => clusterOn(databaseUrl, schema))

/** A cluster that has no workers yet. */
export const clusterOn = Effect.fnUntraced(function*(url: string, schema: string) {
  const directory = yield* temporaryDirectory
  const client = ClusterEngine.layerClient({ schema, url: Redacted.make(url), pollInterval: "250 millis" })
  /** What the workers are known by to each other. */
  const addresses = Effect.provide(
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      const [found] = yield* sql<{ readonly name: string }>`
        SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = ${schema} AND table_name LIKE '%\_runners'`
      const rows = yield* sql<{ readonly address: string }>`SELECT address FROM ${sql(schema)}.${sql(found!.name)}`
      return rows.map(({ address }) => address)
    }),
    pool({ maxConnections: 1 })
  )
  return Object.assign(observed(url, directory, { schema, ...quick }, client), { schema, addresses })
})

/** A SQLite file that no worker has yet; one at a time can. */
export const makeFile = Effect.map(temporaryDirectory, (directory) => {
  const filename = join(directory, "engine.sqlite")
  return Object.assign(observed(filename, directory, { drain: 0 }, SqliteEngine.layerClient({ filename })), {
    filename
  })
})

const observed = (
  url: string,
  directory: string,
  defaults: Options,
  client: Layer.Layer<Engine, unknown>
) => {
  const path = (name: string) => join(directory, name)
  const linesOf = (name: string): ReadonlyArray<string> =>
    existsSync(path(name)) ? readFileSync(path(name), "utf8").split("\n").filter((line) => line !== "") : []

  /** Starts a worker, and answers when its engine is up. */
  const worker = Effect.fnUntraced(function*(options: Options = {}) {
    const child = yield* start("clusterWorker.ts", url, directory, JSON.stringify({ ...defaults, ...options }))
    yield* child.line
    return child
  })
  const workers = (...options: ReadonlyArray<Options>) =>
    Effect.forEach(options, (options) => worker(options), { concurrency: "unbounded" })

  const engine = Effect.map(Layer.build(Layer.fresh(client)), (context) => Context.get(context, Engine))
  const inputOf = (plan: Plan) => ({ runId: plan.run, prompt: JSON.stringify(plan) })

  return {
    worker,
    workers,
    engine,
    inputOf,
    /** Lets a run go on that stays. */
    go: (run: string) => Effect.sync(() => writeFileSync(path(`go-${run}`), "")),
    /** Waits until all of the runs stay where their plans say. */
    reached: (runs: ReadonlyArray<string>) => until(() => runs.every((run) => existsSync(path(`stayed-${run}`)))),
    /** What the model was asked in the run, step by step. */
    modelOf: (run: string) => linesOf("model").filter((line) => line.startsWith(`${run} `)),
    /** The runs whose models have read of a failure. */
    get misread() {
      return linesOf("misread")
    },
    /** What the remote holds of the run. */
    remoteOf: (run: string) => linesOf("remote").filter((line) => line.startsWith(`${run}:`)).toSorted(),
    /** How often the tool was called in the run, and how often its effect was begun. */
    callsOf: (run: string) => linesOf("calls").filter((line) => line.startsWith(`${run}:`)).length,
    attemptsOf: (run: string) => linesOf("attempts").filter((line) => line.startsWith(`${run}:`)).length,
    eventsOf: (run: string) =>
      linesOf("events").map((line) =>
        JSON.parse(line) as {
          readonly key: string
          readonly outcome: string
          readonly claimLost: boolean
          readonly takenOver: boolean
        }
      )
        .filter(({ key }) => key.startsWith(`${run}:`))
  }
}

/** Looks until it holds. What it looks at is in files of other processes, which send no signals. */
export const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => holds() ? Effect.void : Effect.andThen(Effect.sleep("20 millis"), until(holds)))

export type Cluster = Effect.Success<typeof makeCluster>
