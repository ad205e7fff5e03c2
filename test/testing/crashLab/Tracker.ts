/**
 * A small tracker: comments of everybody, in pages, that may show up later than they were written.
 */
import { CrashLab } from "chamvi-effect/testing"
import { Clock, Context, Data, Effect, Layer } from "effect"

export interface Comment {
  readonly id: number
  readonly author: string
  readonly body: string
  readonly at: number
}

const pageSize = 30

export const agent = "agent"

export class ReplyLost extends Data.TaggedError("ReplyLost")<{}> {}

export class Tracker extends Context.Service<Tracker, {
  readonly post: (author: string, body: string) => Effect.Effect<{ readonly id: number }, ReplyLost>
  /** The next one that posts does not hear of it. */
  readonly loseReply: Effect.Effect<void>
  /** The comments of a page, the oldest first; pages count from 1. */
  readonly page: (page: number) => Effect.Effect<ReadonlyArray<Comment>>
  /** How many comments there are by the agent, shown or not. */
  readonly count: Effect.Effect<number>
}>()("test/testing/Tracker") {
  /** `lag` is how long a comment is not shown, in milliseconds; `newestFirst` how pages are ordered. */
  static readonly layerOf = ({ lag = 0, newestFirst = false } = {}) =>
    Layer.sync(Tracker, () => {
      const comments: Array<Comment> = []
      let losesReply = false
      return Tracker.of({
        post: Effect.fnUntraced(function*(author, body) {
          yield* CrashLab.point("request")
          const comment = { id: comments.length + 1, author, body, at: yield* Clock.currentTimeMillis }
          comments.push(comment)
          if (author === agent) yield* CrashLab.point("stored")
          if (losesReply) {
            losesReply = false
            return yield* new ReplyLost()
          }
          return { id: comment.id }
        }),
        loseReply: Effect.sync(() => {
          losesReply = true
        }),
        page: Effect.fnUntraced(function*(page) {
          const now = yield* Clock.currentTimeMillis
          const shown = comments.filter(({ at }) => at + lag <= now)
          return (newestFirst ? shown.toReversed() : shown).slice((page - 1) * pageSize, page * pageSize)
        }),
        count: Effect.sync(() => comments.filter(({ author }) => author === agent).length)
      })
    })

  static readonly layer = Tracker.layerOf()
}

/** Every comment, over all pages. */
export const allComments = Effect.fnUntraced(function*() {
  const tracker = yield* Tracker
  const found: Array<Comment> = []
  for (let page = 1;; page++) {
    const comments = yield* tracker.page(page)
    found.push(...comments)
    if (comments.length < pageSize) return found
  }
})

/** What a lab needs of it. */
export const remote = {
  world: Tracker.layer,
  count: () => Effect.flatMap(Tracker, ({ count }) => count),
  crowd: (entries: number) =>
    Effect.flatMap(
      Tracker,
      ({ post }) =>
        Effect.forEach(Array.from({ length: entries }), () => post("somebody", "Me too."), { discard: true })
    ),
  plant: (marker: string) => Effect.flatMap(Tracker, ({ post }) => post("somebody", `Look: ${marker}`)),
  lag: "2 seconds"
} as const
