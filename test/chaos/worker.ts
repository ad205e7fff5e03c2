/**
 * A process that executes runs: `node worker.ts <orders as JSON>`. It is killed, frozen and asked to leave, and knows nothing
 * of it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { EffectEvent, EffectSettings } from "chamvi-effect"
import { Effect, Layer, Logger, Schedule } from "effect"
import { makeAgents } from "./agents.ts"
import { engineOf } from "./engines.ts"
import type { Orders, Told } from "./protocol.ts"
import { runAll } from "./runs.ts"

const orders = JSON.parse(process.argv[2] ?? "") as Orders
const agents = makeAgents(orders)

// written at once, for what is still on its way when the process is killed is lost
const tell = (told: Told) => Effect.sync(() => void process.stdout.write(`${JSON.stringify(told)}\n`))

process.stdout.on("error", () => process.exit(1))

/** A harness that was killed stops nobody. */
const harness = process.ppid
const orphaned = Effect.sync(() => process.ppid).pipe(
  Effect.repeat({ schedule: Schedule.spaced("1 second"), while: (parent) => parent === harness })
)

const main = Effect.gen(function*() {
  yield* tell({ _tag: "Ready" })
  if (orders.engine._tag === "Sqlite") {
    yield* runAll(agents, orders.engine.runs)
    yield* tell({ _tag: "Done" })
  }
  return yield* Effect.never
})

const toStandardError = Logger.map(Logger.formatLogFmt, (line) => process.stderr.write(`${process.pid} ${line}\n`))

const Live = Layer.mergeAll(agents.clerk.layer, agents.courier.layer).pipe(
  Layer.provideMerge(engineOf(orders)),
  Layer.provideMerge(EffectEvent.layer((event) => tell({ _tag: "Called", event }))),
  Layer.provideMerge(EffectSettings.layer({ lease: orders.lease })),
  // standard output is for what is told
  Layer.provideMerge(Logger.layer(process.env["CHAMVI_LOGS"] === undefined ? [] : [toStandardError]))
)

Effect.raceFirst(Effect.provide(main, Live), orphaned).pipe(NodeRuntime.runMain({ disableErrorReporting: true }))
