/**
 * A notification: the gateway can be asked nothing, so only a person can say whether a message went out. With
 * `whenInDoubt: "fail"` the tool sends nothing more until somebody has.
 *
 * The first reply is lost. The model tries again, and gives up; the person finds the message in the gateway's own records.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  EffectOutcomeUnknownError,
  EffectResolution,
  EffectStore,
  generateText,
  ToolContext
} from "chamvi-effect"
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { LossyRemote } from "./support/LossyRemote.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

const Message = Schema.Struct({ id: Schema.Int })

class Gateway extends Context.Service<Gateway, {
  readonly send: (to: string, text: string) => Effect.Effect<typeof Message.Type, EffectOutcomeUnknownError>
}>()("examples/Gateway") {
  static readonly layer = Layer.effect(
    Gateway,
    Effect.map(HttpClient.HttpClient, (client) =>
      Gateway.of({
        send: Effect.fn("Gateway.send")(
          (to, text) => HttpClient.filterStatusOk(client).post(`/messages/${to}`, { urlParams: { text } }),
          Effect.flatMap(HttpClientResponse.schemaBodyJson(Message)),
          Effect.timeout("100 millis"),
          Effect.mapError((cause) => new EffectOutcomeUnknownError({ cause }))
        )
      }))
  )
}

const notify = defineEffectTool({
  description: "Sends a text message to a customer.",
  inputSchema: Schema.Struct({ to: Schema.String, text: Schema.String }),
  effectKey: ({ to }, ctx) => `${ctx.run.runId}:notify:${to}`,
  whenInDoubt: "fail",
  execute: ({ text, to }) => Effect.flatMap(Gateway, (gateway) => gateway.send(to, text))
})

const agent = Effect.fnUntraced(function*(...texts: ReadonlyArray<string>) {
  yield* generateText({
    model: scriptedModel(...texts.map((text) => calls(["notify", { to: "ada", text }])), says("That is all.")),
    prompt: "Tell ada that her parcel is on its way.",
    stopWhen: isStepCount(5),
    tools: { notify: yield* notify }
  })
})

const main = Effect.gen(function*() {
  yield* agent("It is on its way.", "Your parcel is on its way.")
  // => failed
  // => inDoubt
  const store = yield* EffectStore
  const doubtful = yield* Stream.runCollect(store.list({ doubt: "inDoubt" }))
  yield* Console.log(doubtful.map(({ key }) => key).join()) // => run-1:notify:ada
  // the person saw message 1 in the gateway's records; EffectResolution.notApplied would let the next call send it
  const seen = EffectResolution.applied({ id: 1 })
  yield* Console.log(yield* store.resolve("run-1:notify:ada", seen)) // => ok
  yield* agent("Your parcel is on its way.") // => recorded
  yield* Console.log((yield* LossyRemote).applied().join()) // => /messages/ada?text=It+is+on+its+way.
})

const events = EffectEvent.layer((event) => Console.log(event.outcome))
main.pipe(
  Effect.provide([Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }), Gateway.layer, events]),
  Effect.provide(LossyRemote.layer(() => undefined)),
  NodeRuntime.runMain
)
