import { it } from "@effect/vitest"
import { defineEffectTool, effectMarker, findMarker } from "chamvi-effect"
import { CrashLab } from "chamvi-effect/testing"
import { Context, Effect, Layer, Schema } from "effect"

interface Comment {
  readonly author: string
  readonly body: string
}

/** The tracker as a test double: comments come in pages of 30. */
class Tracker extends Context.Service<Tracker, {
  readonly comments: Array<Comment>
  readonly page: (page: number) => Effect.Effect<ReadonlyArray<Comment>>
}>()("app/Tracker") {
  static readonly layer = Layer.sync(Tracker, () => {
    const comments: Array<Comment> = []
    return { comments, page: (page) => Effect.sync(() => comments.slice(30 * page, 30 * page + 30)) }
  })
}

const secret = "of the agent alone"

const comment = defineEffectTool({
  description: "Posts a comment on an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, body: Schema.String }),
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
  settle: "5 seconds",
  alreadyApplied: Effect.fnUntraced(function*(key) {
    const tracker = yield* Tracker
    for (let page = 0;; page++) {
      const comments = yield* tracker.page(page)
      if (comments.some(({ author, body }) => author === "agent" && findMarker(body, { secret }).includes(key))) {
        return "posted"
      }
      if (comments.length < 30) return undefined
    }
  }),
  execute: Effect.fnUntraced(function*({ body }, { effectKey }) {
    const { comments } = yield* Tracker
    comments.push({ author: "agent", body: `${body}\n${effectMarker(effectKey, { secret })}` })
    yield* CrashLab.point("stored")
    return "posted"
  })
})

const byStrangers = (...bodies: ReadonlyArray<string>) =>
  Effect.map(Tracker, ({ comments }) => comments.push(...bodies.map((body) => ({ author: "somebody", body }))))

it.effect("comments once", () =>
  Effect.map(
    CrashLab.run({
      tool: comment,
      input: { issue: 7, body: "Fixed in 1.4.2." },
      inOtherWords: { issue: 7, body: "This is solved by 1.4.2." },
      world: Tracker.layer,
      count: () => Effect.map(Tracker, ({ comments }) => comments.filter(({ author }) => author === "agent").length),
      crowd: (entries) => byStrangers(...Array.from({ length: entries }, () => "Me too.")),
      plant: (marker) => byStrangers(marker),
      lag: "2 seconds"
    }),
    (report) => CrashLab.assertOnce(report)
  ), 60_000)
