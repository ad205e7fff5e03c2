/**
 * The agent process of the demo: answers one issue, with an effect tool or, for comparison, with a plain one. It is killed
 * and started again by main.ts and has no idea of that.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  effectMarker,
  findMarker,
  generateText,
  tool,
  ToolContext
} from "chamvi-effect"
import { Config, Console, Effect, Layer, Option, Schema, Stream } from "effect"
import { calls, says, scriptedModel } from "../support/scriptedModel.ts"
import { Comment } from "./Comment.ts"
import { layerLease, layerLedger } from "./Ledger.ts"
import { TrackerClient } from "./TrackerClient.ts"

const inputSchema = Schema.Struct({ issue: Schema.Int, body: Schema.String })
const description = "Posts a comment on the issue."
const onInputAvailable = ({ input }: { readonly input: typeof inputSchema.Type }) =>
  Console.log(`model: comment on issue ${input.issue}: "${input.body}"`)

// One comment per run and issue, whatever the body says.
const comment = defineEffectTool({
  description,
  inputSchema,
  outputSchema: Comment,
  onInputAvailable,
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
  alreadyApplied: Effect.fn("alreadyApplied")(function*(key, { issue }) {
    const tracker = yield* TrackerClient
    const found = yield* tracker.comments(issue).pipe(
      // anybody can write a marker: it is believed in a comment of our own only
      Stream.filter(({ comment }) => comment.author === tracker.self && findMarker(comment.body).includes(key)),
      Stream.runHead,
      Effect.map(Option.getOrUndefined)
    )
    yield* Console.log(found === undefined ? "check: no comment of this run" : `check: found it, on page ${found.page}`)
    return found?.comment
  }),
  execute: Effect.fn("execute")(function*({ body, issue }, { effectKey }) {
    const tracker = yield* TrackerClient
    yield* Console.log("tool: posting the comment")
    return yield* tracker.post(issue, `${body}\n${effectMarker(effectKey)}`)
  })
})

const plainComment = tool({
  description,
  inputSchema,
  outputSchema: Comment,
  onInputAvailable,
  execute: Effect.fn("execute")(function*({ body, issue }) {
    const tracker = yield* TrackerClient
    yield* Console.log("tool: posting the comment")
    return yield* tracker.post(issue, body)
  })
})

const program = Effect.gen(function*() {
  const issue = yield* Config.Int("ISSUE")
  const words = yield* Config.String("WORDS")
  const plain = yield* Config.Boolean("PLAIN")
  const realModel = yield* Config.option(Config.String("AI_MODEL"))
  const prompt = `Answer issue ${issue}: post one comment that says: "${words}". Then say that you are done.`
  const result = yield* generateText({
    model: Option.getOrElse(realModel, () => scriptedModel(calls(["comment", { issue, body: words }]), says("Done."))),
    prompt,
    stopWhen: isStepCount(3),
    tools: { comment: plain ? yield* plainComment : yield* comment }
  })
  yield* Console.log(`model: ${result.text}`)
})

const layers = Layer.unwrap(Effect.gen(function*() {
  const runId = yield* Config.String("RUN_ID")
  return Layer.mergeAll(
    Ai.layer,
    TrackerClient.layer,
    ToolContext.layer({ runId }),
    layerLedger,
    layerLease,
    EffectEvent.layer((event) => Console.log(`event: ${event.outcome}${event.takenOver ? ", claim taken over" : ""}`))
  )
}))

program.pipe(Effect.provide(layers), NodeRuntime.runMain)
