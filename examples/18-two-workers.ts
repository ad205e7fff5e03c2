/**
 * An agent on two workers that share a Postgres. The worker that charges is killed with SIGKILL while it waits for the bank's
 * answer. The other one goes on with the run: it asks the bank, and charges nothing.
 *
 * This file is the bank, and the client that starts the run; it executes nothing of it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Engine } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { Console, Effect, Layer, Redacted, Schema } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { join } from "node:path"
import { database } from "./support/database.ts"
import { localServer } from "./support/localServer.ts"
import { clerk } from "./two-workers/clerk.ts"

const charges = new Map<string, string>()
const request = HttpServerRequest.schemaSearchParams(
  Schema.Struct({ key: Schema.String, worker: Schema.FiniteFromString })
)
const Bank = localServer(Layer.mergeAll(
  HttpRouter.add(
    "GET",
    "/charges",
    Effect.map(request, ({ key }) => {
      const charge = charges.get(key)
      return charge === undefined ? HttpServerResponse.empty({ status: 404 }) : HttpServerResponse.text(charge)
    })
  ),
  HttpRouter.add(
    "POST",
    "/charges",
    Effect.gen(function*() {
      const { key, worker } = yield* request
      charges.set(key, `charge ${charges.size + 1}`)
      yield* Console.log("The bank has charged. The worker is killed.")
      process.kill(worker, "SIGKILL")
      return HttpServerResponse.empty({ status: 500 })
    })
  )
))

const worker = (env: Record<string, string>) =>
  Effect.flatMap(ChildProcessSpawner.ChildProcessSpawner, (spawner) =>
    spawner.spawn(
      ChildProcess.make(
        process.execPath,
        [...process.execArgv, join(import.meta.dirname, "two-workers/worker.ts")],
        { extendEnv: true, env }
      )
    ))

const main = Effect.gen(function*() {
  const { schema, url } = yield* database
  const { address } = yield* HttpServer.HttpServer
  const env = {
    BANK_URL: HttpServer.formatAddress(address),
    DATABASE_URL: Redacted.value(url),
    SCHEMA: schema
  }
  yield* worker(env)
  yield* worker(env)
  const result = yield* Engine.run(clerk, { runId: "invoice-7", prompt: "Settle invoice 7." }).pipe(
    Effect.provide(ClusterEngine.layerClient({ url, schema, pollInterval: "200 millis" }))
  )
  // => The bank has charged. The worker is killed.
  yield* Console.log(result.text) // => Charged 10 euros.
  yield* Console.log(`charges: ${charges.size}`) // => charges: 1
})

main.pipe(Effect.scoped, Effect.provide([Bank, NodeServices.layer]), NodeRuntime.runMain)
