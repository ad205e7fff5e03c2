/**
 * The tools of the demo's agents: one that posts a comment as an effect, and, for comparison, one that just posts it.
 */
import { defineEffectTool, effectMarker, findMarker, tool } from "chamvi-effect"
import { Console, Effect, Option, Schema, Stream } from "effect"
import { Comment } from "./Comment.ts"
import { TrackerClient } from "./TrackerClient.ts"

const inputSchema = Schema.Struct({ issue: Schema.Int, body: Schema.String })
const description = "Posts a comment on the issue."
const onInputAvailable = ({ input }: { readonly input: typeof inputSchema.Type }) =>
  Console.log(`call: comment on issue ${input.issue}: "${input.body}"`)

// One comment per run and issue, whatever the body says.
export const comment = defineEffectTool({
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

export const plainComment = tool({
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
