/**
 * The tracker as an agent's tools use it.
 */
import { findMarker } from "chamvi-effect"
import { Config, Context, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"
import { Comment, pageSize } from "./Tracker.ts"

export class TrackerClient extends Context.Service<TrackerClient, {
  readonly post: (issue: number, body: string) => Effect.Effect<Comment, TrackerError>
  /** The comment of ours that carries the marker of the effect key, on whatever page it is. */
  readonly find: (issue: number, effectKey: string) => Effect.Effect<Found | undefined, TrackerError>
}>()("demo/TrackerClient") {
  static readonly layer = Layer.effect(
    TrackerClient,
    Effect.gen(function*() {
      const url = yield* Config.String("TRACKER_URL")
      const author = yield* Config.String("TRACKER_USER").pipe(Config.withDefault("agent"))
      const client = (yield* HttpClient.HttpClient).pipe(
        HttpClient.mapRequest(HttpClientRequest.prependUrl(url)),
        HttpClient.filterStatusOk
      )
      const page = (issue: number, number: number) =>
        client.get(`/issues/${issue}/comments`, { urlParams: { page: number } }).pipe(
          Effect.flatMap(HttpClientResponse.schemaBodyJson(Schema.Array(Comment)))
        )
      const findFrom = (issue: number, effectKey: string, number: number): Effect.Effect<Found | undefined, unknown> =>
        Effect.flatMap(page(issue, number), (comments) => {
          // a marker is believed only in a comment of our own: anybody can write one
          const comment = comments.find((comment) =>
            comment.author === author && findMarker(comment.body).includes(effectKey)
          )
          return comment !== undefined
            ? Effect.succeed({ comment, page: number })
            : comments.length < pageSize
            ? Effect.undefined
            : findFrom(issue, effectKey, number + 1)
        })
      return TrackerClient.of({
        post: (issue, body) =>
          HttpClientRequest.post(`/issues/${issue}/comments`).pipe(
            HttpClientRequest.bodyJsonUnsafe({ author, body }),
            client.execute,
            Effect.flatMap(HttpClientResponse.schemaBodyJson(Comment)),
            Effect.mapError((cause) => new TrackerError({ cause }))
          ),
        find: (issue, effectKey) =>
          Effect.mapError(findFrom(issue, effectKey, 1), (cause) => new TrackerError({ cause }))
      })
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))
}

export interface Found {
  readonly comment: Comment
  readonly page: number
}

export class TrackerError extends Schema.TaggedError<TrackerError>()("TrackerError", { cause: Schema.Defect() }) {}
