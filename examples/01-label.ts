/**
 * A label: a set member at the remote, so that applying it twice is harmless. The tool needs no hook but `execute`; calls
 * of one run with one input have one key.
 *
 * The first process dies when the tracker has the label and the ledger does not know it yet.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import { Ai, defineEffectTool, EffectEvent, generateText, ToolContext } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Console, Context, Effect, Layer, Logger, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { ledgerFile } from "./support/ledgerFile.ts"
import { LossyRemote } from "./support/LossyRemote.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

class TrackerError extends Schema.TaggedError<TrackerError>()("TrackerError", { cause: Schema.Defect() }) {}

const Labelled = Schema.Struct({ id: Schema.Int })

class Tracker extends Context.Service<Tracker, {
  readonly addLabel: (issue: number, label: string) => Effect.Effect<typeof Labelled.Type, TrackerError>
}>()("examples/Tracker") {
  static readonly layer = Layer.effect(
    Tracker,
    Effect.gen(function*() {
      const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
      return Tracker.of({
        addLabel: Effect.fn("Tracker.addLabel")(
          (issue, label) => client.put(`/issues/${issue}/labels/${encodeURIComponent(label)}`),
          Effect.flatMap(HttpClientResponse.schemaBodyJson(Labelled)),
          Effect.mapError((cause) => new TrackerError({ cause }))
        )
      })
    })
  )
}

const label = defineEffectTool({
  description: "Puts a label on an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, label: Schema.String }),
  // the default, written down: an attempt that was cut off is repeated, which a set does not mind
  whenInDoubt: "execute",
  execute: ({ issue, label }) => Effect.flatMap(Tracker, (tracker) => tracker.addLabel(issue, label))
})

/** One life of the agent; all that it knows of an earlier one is the run's id and the ledger's file. */
const agent = Effect.gen(function*() {
  yield* generateText({
    model: scriptedModel(calls(["label", { issue: 7, label: "bug" }]), says("Labelled.")),
    prompt: "Label issue 7.",
    stopWhen: isStepCount(2),
    tools: { label: yield* label }
  })
})

const main = Effect.gen(function*() {
  const filename = yield* ledgerFile
  const life = Effect.provide(agent, [SqliteEffectStore.layer({ filename }), ToolContext.layer({ runId: "run-1" })])
  const remote = yield* LossyRemote
  yield* Effect.raceFirst(life, remote.firstApplied) // => interrupted
  yield* life // => executed, in doubt
  yield* life // => recorded
  yield* Console.log(`${remote.requests()} requests, labels: ${remote.applied().join()}`)
  // => 2 requests, labels: /issues/7/labels/bug
})

const events = EffectEvent.layer(({ executedInDoubt, outcome }) =>
  Console.log(executedInDoubt ? `${outcome}, in doubt` : outcome)
)
const remote = LossyRemote.layer((request) => request.url)
main.pipe(
  Effect.scoped,
  Effect.provide([Ai.layer, Tracker.layer, events]),
  Effect.provide(remote),
  Effect.provideService(Logger.LogToStderr, true),
  NodeRuntime.runMain
)
