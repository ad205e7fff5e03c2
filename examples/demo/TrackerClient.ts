/**
 * The tracker as an agent's tools use it.
 */
import { Config, Context, Effect, Layer, Option, Schema, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { Comment } from "./Comment.ts"

export class TrackerError extends Schema.TaggedError<TrackerError>()("TrackerError", { cause: Schema.Defect() }) {}

/** A comment, and the page that it is on. */
export interface Listed {
  readonly comment: Comment
  readonly page: number
}

export class TrackerClient extends Context.Service<TrackerClient, {
  /** The name under which we write. */
  readonly self: string
  /** All comments of an issue; a page is asked for when somebody reads so far. */
  readonly comments: (issue: number) => Stream.Stream<Listed, TrackerError>
  readonly post: (issue: number, body: string) => Effect.Effect<Comment, TrackerError>
}>()("demo/TrackerClient") {
  static readonly make = Effect.fnUntraced(function*(url: string, self: string) {
    const client = (yield* HttpClient.HttpClient).pipe(
      HttpClient.mapRequest(HttpClientRequest.prependUrl(url)),
      HttpClient.filterStatusOk
    )
    const pageOf = Effect.fn("TrackerClient.pageOf")(
      (issue: number, page: number) => client.get(`/issues/${issue}/comments`, { urlParams: { page } }),
      Effect.flatMap(HttpClientResponse.schemaBodyJson(Schema.Array(Comment))),
      Effect.mapError((cause) => new TrackerError({ cause }))
    )
    const post = Effect.fn("TrackerClient.post")(
      (issue: number, body: string) =>
        HttpClientRequest.post(`/issues/${issue}/comments`).pipe(
          HttpClientRequest.bodyJsonUnsafe({ author: self, body }),
          client.execute
        ),
      Effect.flatMap(HttpClientResponse.schemaBodyJson(Comment)),
      Effect.mapError((cause) => new TrackerError({ cause }))
    )
    const comments = (issue: number) =>
      Stream.paginate(1, (page) =>
        Effect.map(pageOf(issue, page), (comments) => [
          comments.map((comment): Listed => ({ comment, page })),
          // a page may be short without being the last one: only an empty one surely is
          comments.length > 0 ? Option.some(page + 1) : Option.none()
        ]))
    return TrackerClient.of({ self, comments, post })
  }, Effect.provide(FetchHttpClient.layer))

  static readonly layer = Layer.effect(
    TrackerClient,
    Effect.gen(function*() {
      const url = yield* Config.String("TRACKER_URL")
      const self = yield* Config.String("TRACKER_USER").pipe(Config.withDefault("agent"))
      return yield* TrackerClient.make(url, self)
    })
  )
}
