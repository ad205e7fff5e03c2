/**
 * The agent process of the demo: answers one issue, with an effect tool or, for comparison, with a plain one. It is killed
 * and started again by main.ts and has no idea of that.
 */
import { NodeRuntime } from "@effect/platform-node"
import { isStepCount } from "ai"
import { Ai, defineEffectTool, EffectEvent, effectMarker, generateText, tool, ToolContext } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Config, Console, Effect, Layer, Option, Schema } from "effect"
import { scriptedModel } from "./scriptedModel.ts"
import { Comment } from "./Tracker.ts"
import { TrackerClient } from "./TrackerClient.ts"

const inputSchema = Schema.Struct({ issue: Schema.Int, body: Schema.String })
const description = "Posts a comment on the issue."

// One comment per run and issue, whatever the body says.
const comment = defineEffectTool({
  description,
  inputSchema,
  outputSchema: Comment,
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
  alreadyApplied: (key, { issue }) =>
    Effect.gen(function*() {
      const found = yield* Effect.flatMap(TrackerClient, (tracker) => tracker.find(issue, key))
      yield* Console.log(
        found === undefined ? "check: no comment of this run" : `check: found it, on page ${found.page}`
      )
      return found?.comment
    }),
  execute: ({ body, issue }, { effectKey }) =>
    Effect.andThen(
      Console.log("tool: posting the comment"),
      Effect.flatMap(TrackerClient, (tracker) => tracker.post(issue, `${body}\n${effectMarker(effectKey)}`))
    )
})

const plainComment = tool({
  description,
  inputSchema,
  outputSchema: Comment,
  execute: ({ body, issue }) =>
    Effect.andThen(
      Console.log("tool: posting the comment"),
      Effect.flatMap(TrackerClient, (tracker) => tracker.post(issue, body))
    )
})

const program = Effect.gen(function*() {
  const issue = yield* Config.Int("ISSUE")
  const words = yield* Config.String("WORDS")
  const plain = yield* Config.Boolean("PLAIN")
  const realModel = yield* Config.option(Config.String("AI_MODEL"))
  const prompt = `Answer issue ${issue}: post one comment that says: "${words}". Then say that you are done.`
  yield* Console.log(`model: I will answer issue ${issue}: "${words}"`)
  const result = yield* generateText({
    model: Option.getOrElse(realModel, () => scriptedModel("comment", { issue, body: words }, "Done.")),
    prompt,
    stopWhen: isStepCount(3),
    tools: { comment: plain ? yield* plainComment : yield* comment }
  })
  yield* Console.log(`model: ${result.text}`)
})

const layers = Layer.unwrap(Effect.gen(function*() {
  const runId = yield* Config.String("RUN_ID")
  const filename = yield* Config.String("LEDGER")
  return Layer.mergeAll(
    Ai.layer,
    TrackerClient.layer,
    ToolContext.layer({ runId }),
    SqliteEffectStore.layer({ filename }),
    EffectEvent.layer((event) => Console.log(`event: ${event.outcome}${event.takenOver ? ", claim taken over" : ""}`))
  )
}))

program.pipe(Effect.provide(layers), NodeRuntime.runMain)
