/**
 * `RunStream`: an agent behind the AI SDK's `useChat`. The client reads a run as it goes, loses its connection, comes back and builds the same
 * message; and a tool call that needs approval is answered in the message itself.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { DefaultChatTransport, type UIMessage } from "ai"
import { defineAgent, defineEffectTool, Engine, RunStream } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Console, Effect, Layer, Option, Schema } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { approved, last, shown } from "./support/chatMessages.ts"
import { localServer } from "./support/localServer.ts"

const pay = defineEffectTool({
  description: "Pays an amount.",
  inputSchema: Schema.Struct({ amount: Schema.Int }),
  execute: ({ amount }) => Effect.as(Console.log(`pays ${amount}`), "paid")
})
const clerk = defineAgent({
  name: "clerk",
  model: ScriptedModel.make([ScriptedModel.call("pay", { amount: 900 }), ScriptedModel.text("It is paid.")]),
  stream: true,
  tools: { pay },
  toolApproval: { pay: "user-approval" }
})

const respond = (runId: string, after?: string) =>
  Effect.map(
    RunStream.toSse(RunStream.uiMessages(runId, { after })),
    (body) => HttpServerResponse.stream(body, { headers: RunStream.sseHeaders })
  )

// one run for each chat; a real program looks here whether the chat is the client's own
const Body = Schema.Struct({ id: Schema.String, messages: Schema.Array(Schema.Any) })
const chat = Effect.gen(function*() {
  const { id, messages } = yield* HttpServerRequest.schemaBodyJson(Body)
  const position = yield* RunStream.answered(id, messages.at(-1))
  if (position === undefined) yield* Engine.start(clerk, { runId: id, prompt: "Settle invoice 7." })
  return yield* respond(id, position?.after)
})
const again = Effect.gen(function*() {
  const { id } = yield* HttpRouter.schemaPathParams(Schema.Struct({ id: Schema.String }))
  const run = yield* Effect.option(Engine.get(id))
  return Option.isNone(run) ? HttpServerResponse.empty({ status: 204 }) : yield* respond(id)
})
const routes = Layer.mergeAll(HttpRouter.add("POST", "/chat", chat), HttpRouter.add("GET", "/chat/:id/stream", again))
const server = localServer(routes).pipe(Layer.provide(clerk.layer.pipe(Layer.provideMerge(Engine.layerMemory()))))

const question: UIMessage = { id: "1", role: "user", parts: [{ type: "text", text: "Settle invoice 7." }] }

const client = Effect.gen(function*() {
  const api = yield* HttpServer.addressFormattedWith((address) => Effect.succeed(`${address}/chat`))
  const transport = new DefaultChatTransport<UIMessage>({ api })
  const request = { trigger: "submit-message", chatId: "7", messageId: undefined, abortSignal: undefined } as const
  const send = (...messages: Array<UIMessage>) => Effect.promise(() => transport.sendMessages({ ...request, messages }))

  const asked = yield* last(yield* send(question))
  yield* Console.log(shown(asked)) // => tool-pay: approval-requested
  const stream = yield* Effect.promise(() => transport.reconnectToStream({ chatId: "7" }))
  yield* Console.log(shown(yield* last(stream!))) // => tool-pay: approval-requested

  // addToolApprovalResponse of useChat does the same
  const answer = approved(asked)
  const done = yield* last(yield* send(question, answer), answer)
  yield* Console.log(shown(done))
  // => pays 900
  // => tool-pay: output-available, It is paid.
})

client.pipe(Effect.provide(server), NodeRuntime.runMain)
