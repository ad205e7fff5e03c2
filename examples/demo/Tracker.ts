/**
 * A small issue tracker over HTTP, with GitHub's shape: comments come in pages of 30, and each has an author.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { localServer } from "../support/localServer.ts"
import { Comment } from "./Comment.ts"

const pageSize = 30

/** The server as its own process sees it: its address, all comments, and a hook for the moment after a post is stored. */
export class Tracker extends Context.Service<Tracker, {
  readonly url: string
  readonly comments: (issue: number) => ReadonlyArray<Comment>
  readonly seed: (issue: number, bodies: ReadonlyArray<string>) => void
  /** Runs `effect` after the next comment on the issue is stored and before its author is answered. */
  readonly afterNextPost: (issue: number, effect: Effect.Effect<void>) => void
}>()("demo/Tracker") {
  static readonly layer = Layer.effect(
    Tracker,
    Effect.gen(function*() {
      const issues = new Map<number, Array<Comment>>()
      const hooks = new Map<number, Effect.Effect<void>>()
      const of = (issue: number) => {
        const comments = issues.get(issue) ?? []
        issues.set(issue, comments)
        return comments
      }
      const add = (issue: number, author: string, body: string) => {
        const comment = new Comment({ id: of(issue).length + 1, author, body })
        of(issue).push(comment)
        return comment
      }
      const path = HttpRouter.schemaPathParams(Schema.Struct({ issue: Schema.FiniteFromString }))
      const list = Effect.gen(function*() {
        const { issue } = yield* path
        const { page } = yield* HttpServerRequest.schemaSearchParams(
          Schema.Struct({ page: Schema.FiniteFromString })
        )
        return HttpServerResponse.jsonUnsafe(of(issue).slice((page - 1) * pageSize, page * pageSize))
      })
      const post = Effect.gen(function*() {
        const { issue } = yield* path
        const { author, body } = yield* HttpServerRequest.schemaBodyJson(
          Schema.Struct({ author: Schema.String, body: Schema.String })
        )
        const comment = add(issue, author, body)
        const hook = hooks.get(issue)
        hooks.delete(issue)
        if (hook !== undefined) yield* hook
        return HttpServerResponse.jsonUnsafe(comment, { status: 201 })
      })
      const routes = Layer.mergeAll(
        HttpRouter.add("GET", "/issues/:issue/comments", list),
        HttpRouter.add("POST", "/issues/:issue/comments", post)
      )
      const server = yield* Layer.build(localServer(routes))
      return Tracker.of({
        url: HttpServer.formatAddress(Context.get(server, HttpServer.HttpServer).address),
        comments: (issue) => of(issue),
        seed: (issue, bodies) => bodies.forEach((body) => add(issue, "somebody", body)),
        afterNextPost: (issue, effect) => void hooks.set(issue, effect)
      })
    })
  )
}
