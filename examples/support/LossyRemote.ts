/**
 * A remote over HTTP that applies what it is asked and never answers the first time, as if the connection had broken.
 */
import { Context, Deferred, Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { localServer } from "./localServer.ts"

/** What the remote itself knows. It answers a request with the number of what it applied: `{ "id": 1 }`. */
export class LossyRemote extends Context.Service<LossyRemote, {
  /** What was applied, in order: the paths. */
  readonly applied: () => ReadonlyArray<string>
  readonly requests: () => number
  /** Ends when the first request was applied; whoever sent it waits for the answer in vain. */
  readonly firstApplied: Effect.Effect<void>
}>()("examples/support/LossyRemote") {
  /**
   * The server, and an `HttpClient` that is pointed at it. `identityOf` says by what the remote tells that it has applied a
   * request before; where it cannot tell (`undefined`), it applies it again.
   */
  static readonly layer = (identityOf: (request: HttpServerRequest.HttpServerRequest) => string | undefined) =>
    Layer.unwrap(Effect.gen(function*() {
      const applied: Array<string> = []
      const identities: Array<string | undefined> = []
      const firstApplied = yield* Deferred.make<void>()
      let requests = 0
      const answer = Effect.gen(function*() {
        const request = yield* HttpServerRequest.HttpServerRequest
        const identity = identityOf(request)
        const known = identity === undefined ? -1 : identities.indexOf(identity)
        if (known < 0) {
          identities.push(identity)
          applied.push(request.url)
        }
        if (++requests === 1) {
          yield* Deferred.succeed(firstApplied, undefined)
          return yield* Effect.never
        }
        return HttpServerResponse.jsonUnsafe({ id: known < 0 ? applied.length : known + 1 })
      })
      return Layer.merge(
        localServer(HttpRouter.add("*", "/*", answer)),
        Layer.succeed(LossyRemote, {
          applied: () => applied,
          requests: () => requests,
          firstApplied: Deferred.await(firstApplied)
        })
      )
    }))
}
