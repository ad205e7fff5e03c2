/**
 * A real HTTP server on a free port of this machine, and an `HttpClient` that is pointed at it.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import { FetchHttpClient, HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"

export const localServer = <E, R>(routes: Layer.Layer<never, E, R>) =>
  Layer.suspend(() => {
    const server = createServer()
    // a client that gave up can leave a connection open that the closing server would wait for
    const hangUp = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections())))
    const serving = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true })
    return Layer.mergeAll(serving, HttpServer.layerTestClient, hangUp).pipe(
      Layer.provide(FetchHttpClient.layer),
      Layer.provideMerge(NodeHttpServer.layer(() => server, { port: 0, host: "127.0.0.1" }))
    )
  })
