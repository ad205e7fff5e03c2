/**
 * The same agent on the engine: it looks at the issue in its first step and comments in its second. It is killed in that step,
 * and a second process goes on with the run.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { gateway, wrapLanguageModel } from "ai"
import { defineAgent, EffectEvent, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { ScriptedModel } from "chamvi-effect/testing"
import { Config, Console, Effect, Layer, Option, Schema, Stream } from "effect"
import { comment } from "./commentTools.ts"
import { TrackerClient } from "./TrackerClient.ts"

const { issue, ledger, realModel, runId, words } = await Effect.runPromise(Effect.gen(function*() {
  return yield* Config.all({
    issue: Config.Int("ISSUE"),
    words: Config.String("WORDS"),
    ledger: Config.String("LEDGER"),
    runId: Config.String("RUN_ID"),
    realModel: Config.option(Config.String("AI_MODEL"))
  })
}))

const countComments = tool({
  description: "Counts the comments of an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int }),
  execute: Effect.fn("execute")(function*({ issue }) {
    const tracker = yield* TrackerClient
    const count = yield* Stream.runCount(tracker.comments(issue))
    yield* Console.log(`tool: counted ${count} comments`)
    return count
  })
})

const agent = defineAgent({
  name: "answerer",
  model: wrapLanguageModel({
    model: Option.match(realModel, {
      onSome: gateway.languageModel,
      onNone: () =>
        ScriptedModel.make([
          ScriptedModel.call("countComments", { issue }),
          ScriptedModel.call("comment", { issue, body: words }),
          ScriptedModel.text("Done.")
        ])
    }),
    middleware: {
      specificationVersion: "v4",
      wrapGenerate: ({ doGenerate, params }) => {
        const step = params.prompt.filter(({ role }) => role === "assistant").length + 1
        Effect.runSync(Console.log(`model: generates step ${step}`))
        return doGenerate()
      }
    }
  }),
  tools: { countComments, comment }
})

const program = Effect.gen(function*() {
  const result = yield* Engine.run(agent, {
    runId,
    prompt: `Count the comments of issue ${issue}. Then post one that says: "${words}". Then say that you are done.`
  })
  yield* Console.log(`run: completed in ${result.steps} steps: ${result.text}`)
})

const Live = agent.layer.pipe(
  Layer.provideMerge(SqliteEngine.layer({ filename: ledger })),
  Layer.provideMerge(Layer.mergeAll(
    TrackerClient.layer,
    EffectEvent.layer((event) => Console.log(`event: ${event.outcome}${event.takenOver ? ", claim taken over" : ""}`))
  ))
)

program.pipe(Effect.provide(Live), NodeRuntime.runMain)
