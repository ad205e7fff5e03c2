/**
 * A marker that a stranger planted: anybody can comment, and effect keys can be guessed. A remote check that believed it would
 * keep the agent silent for ever. So markers are signed, and looked for in the agent's own comments only: the signature
 * keeps strangers from inventing one, the check of the author keeps them from copying one.
 *
 * The tracker has 30 comments a page. The agent's own, posted just before its process dies, is on the second.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import {
  defineEffectTool,
  EffectEvent,
  effectMarker,
  EffectStore,
  findMarker,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { Config, Console, Deferred, Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { Comment } from "./demo/Comment.ts"
import { Tracker } from "./demo/Tracker.ts"
import { TrackerClient } from "./demo/TrackerClient.ts"

const secretOfMarkers = Config.Redacted("MARKER_SECRET").pipe(
  Config.withDefault(Redacted.make("for this example only")),
  Config.map(Redacted.value)
)

const comment = defineEffectTool({
  description: "Posts a comment on an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, text: Schema.String }),
  outputSchema: Comment,
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
  alreadyApplied: Effect.fn("alreadyApplied")(function*(key, { issue }) {
    const tracker = yield* TrackerClient
    const secret = yield* secretOfMarkers
    const found = yield* tracker.comments(issue).pipe(
      Stream.filter(({ comment }) => comment.author === tracker.self),
      Stream.filter(({ comment }) => findMarker(comment.body, { secret }).includes(key)),
      Stream.runHead
    )
    return Option.getOrUndefined(found)?.comment
  }),
  execute: Effect.fn("execute")(function*({ issue, text }, { effectKey }) {
    const tracker = yield* TrackerClient
    const secret = yield* secretOfMarkers
    return yield* tracker.post(issue, `${text}\n${effectMarker(effectKey, { secret })}`)
  })
})

const main = Effect.gen(function*() {
  const tracker = yield* Tracker
  const planted = effectMarker("run-1:comment:7")
  const secret = yield* secretOfMarkers
  yield* Console.log(findMarker(planted), findMarker(planted, { secret })) // => [ 'run-1:comment:7' ] []
  tracker.seed(7, Array.from({ length: 34 }, (_, index) => index === 5 ? `Me too. ${planted}` : "Me too."))
  const tools = yield* wrapToolsForRun({ comment: yield* comment }, yield* ToolContext, yield* EffectStore)
  const call = (text: string) =>
    Effect.tryPromise((abortSignal) =>
      tools.comment.execute({ issue: 7, text }, { toolCallId: "1", messages: [], context: {}, abortSignal })
    )
  const stored = yield* Deferred.make<void>()
  tracker.afterNextPost(7, Effect.andThen(Deferred.succeed(stored, undefined), Effect.never))
  yield* Effect.raceFirst(call("Fixed in 1.4.2."), Deferred.await(stored)) // => interrupted
  const found = yield* call("This is solved by 1.4.2.") // => reconciled
  yield* Console.log(`comment ${found.id} of ${tracker.comments(7).length}`) // => comment 35 of 35
})

const client = Layer.effect(TrackerClient, Effect.flatMap(Tracker, ({ url }) => TrackerClient.make(url, "agent")))
main.pipe(
  Effect.scoped,
  Effect.provide([EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }), client]),
  Effect.provide([Tracker.layer, EffectEvent.layer((event) => Console.log(event.outcome))]),
  NodeRuntime.runMain
)
