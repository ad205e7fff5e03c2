/**
 * An agent behind HTTP that may pay a large bill only after a person has agreed. The run sleeps in a file meanwhile: the server is
 * stopped here, and the answer goes to the next one, twice.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { ScriptedModel } from "chamvi-effect/testing"
import { Console, Effect, Layer, Schema } from "effect"
import { HttpClient, HttpClientRequest, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { ledgerFile } from "./support/ledgerFile.ts"
import { localServer } from "./support/localServer.ts"

const pay = defineEffectTool({
  description: "Pays an amount.",
  inputSchema: Schema.Struct({ amount: Schema.Int }),
  execute: ({ amount }) => Effect.as(Console.log(`pays ${amount}`), "paid")
})

const clerk = defineAgent({
  name: "clerk",
  model: ScriptedModel.make([ScriptedModel.call("pay", { amount: 900 }), ScriptedModel.text("It is paid.")]),
  instructions: "You settle invoices.",
  tools: { pay },
  toolApproval: { pay: ({ amount }) => amount > 500 ? "user-approval" : "approved" }
})

const runOfPath = Effect.map(HttpRouter.schemaPathParams(Schema.Struct({ runId: Schema.String })), ({ runId }) => runId)
const Answer = Schema.Struct({ id: Schema.String, approved: Schema.Boolean, reason: Schema.optional(Schema.String) })

// PUT, since the caller chooses the id: the same request again continues the run
const start = Effect.gen(function*() {
  yield* Engine.start(clerk, { runId: yield* runOfPath, prompt: "Settle invoice 7." })
  return HttpServerResponse.empty({ status: 202 })
})
const show = Effect.gen(function*() {
  const { approvals, status } = yield* Engine.get(yield* runOfPath)
  return HttpServerResponse.jsonUnsafe({ status, approvals })
})
const answer = Effect.gen(function*() {
  const { approved, id, reason } = yield* HttpServerRequest.schemaBodyJson(Answer)
  yield* (approved ? Engine.approve : Engine.deny)(yield* runOfPath, id, { reason })
  return HttpServerResponse.empty()
})
const result = Effect.gen(function*() {
  return HttpServerResponse.text((yield* Engine.resume(clerk, yield* runOfPath)).text)
}).pipe(Effect.catchTag("RunWaitingError", () => Effect.succeed(HttpServerResponse.text("waits", { status: 409 }))))

const routes = Layer.mergeAll(
  HttpRouter.add("PUT", "/runs/:runId", start),
  HttpRouter.add("GET", "/runs/:runId", show),
  HttpRouter.add("POST", "/runs/:runId/answers", answer),
  HttpRouter.add("GET", "/runs/:runId/result", result)
)
const server = (filename: string) =>
  localServer(routes).pipe(Layer.provide(clerk.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename })))))

const main = Effect.gen(function*() {
  const filename = yield* ledgerFile
  const asked = Effect.gen(function*() {
    yield* HttpClient.put("/runs/invoice-7")
    return yield* (yield* HttpClient.get("/runs/invoice-7/result")).text
  })
  yield* Console.log(yield* Effect.provide(asked, server(filename))) // => waits

  const answered = Effect.gen(function*() {
    const run = yield* (yield* HttpClient.get("/runs/invoice-7")).json
    const [{ id }] = (run as { readonly approvals: readonly [{ readonly id: string }] }).approvals
    const yes = HttpClientRequest.post("/runs/invoice-7/answers").pipe(
      HttpClientRequest.bodyJsonUnsafe({ id, approved: true })
    )
    yield* HttpClient.execute(yes) // => pays 900
    yield* HttpClient.execute(yes)
    return yield* (yield* HttpClient.get("/runs/invoice-7/result")).text
  })
  yield* Console.log(yield* Effect.provide(answered, server(filename))) // => It is paid.
})

main.pipe(Effect.scoped, NodeRuntime.runMain)
