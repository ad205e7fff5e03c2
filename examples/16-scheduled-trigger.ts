/**
 * A report every morning, from an agent that a schedule starts. Two processes keep the schedule, so that one may die. The run's
 * id is the day: a day has one run and one report, whoever is first. (Here both are in one process, on a clock moved by hand.)
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { Console, Context, Cron, DateTime, Effect, Layer, Queue, Schedule, Schema } from "effect"
import { TestClock } from "effect/testing"
import { ScriptedModel } from "chamvi-effect/testing"

class Outbox extends Context.Service<Outbox, Queue.Queue<string>>()("examples/Outbox") {
  static readonly layer = Layer.effect(Outbox, Queue.unbounded<string>())
}

const mail = defineEffectTool({
  description: "Mails the report.",
  inputSchema: Schema.Struct({ text: Schema.String }),
  execute: ({ text }, { context }) =>
    Effect.flatMap(Outbox, (outbox) => Queue.offer(outbox, `${context.run.runId}: ${text}`))
})

const reporter = defineAgent({
  name: "reporter",
  model: ScriptedModel.make([ScriptedModel.call("mail", { text: "All is well." }), ScriptedModel.text("Done.")]),
  trigger: Schema.Struct({ day: Schema.String }),
  instructions: (ctx) => `You report on ${ctx.run.trigger.day}.`,
  tools: { mail }
})

const report = Effect.gen(function*() {
  const day = DateTime.formatIsoDateUtc(yield* DateTime.now)
  yield* Engine.start(reporter, { runId: `report-${day}`, trigger: { day }, prompt: "Write the report." })
})

const everyMorning = Effect.schedule(report, Schedule.cron(Cron.parseUnsafe("0 9 * * *", "UTC")))

const main = Effect.gen(function*() {
  const outbox = yield* Outbox
  yield* TestClock.setTime(Date.UTC(2026, 0, 1))
  yield* Effect.forkScoped(everyMorning)
  yield* Effect.forkScoped(everyMorning)
  yield* TestClock.adjust("12 hours")
  yield* Console.log(yield* Queue.take(outbox)) // => report-2026-01-01: All is well.
  yield* TestClock.adjust("24 hours")
  yield* Console.log(yield* Queue.take(outbox)) // => report-2026-01-02: All is well.

  const runs = yield* Engine.list({ agent: "reporter" })
  yield* Console.log(`${runs.length} runs`) // => 2 runs
})

const Live = Layer.mergeAll(
  reporter.layer.pipe(Layer.provideMerge(Engine.layerMemory()), Layer.provideMerge(Outbox.layer)),
  TestClock.layer()
)

main.pipe(Effect.scoped, Effect.provide(Live), NodeRuntime.runMain)
