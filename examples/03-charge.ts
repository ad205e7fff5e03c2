/**
 * A charge: the remote honours an `Idempotency-Key`. The effect key goes there, and an attempt whose reply was lost may be
 * repeated: the remote answers it with the charge that it has.
 *
 * The first reply is lost. The model reads that, and calls the tool again in other words, as models do.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  EffectOutcomeUnknownError,
  EffectStore,
  generateText,
  idempotencyKey,
  ToolContext
} from "chamvi-effect"
import { Console, Context, Effect, Layer, Logger, Schema } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import { LossyRemote } from "./support/LossyRemote.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

const Charge = Schema.Struct({ id: Schema.Int })
class Declined extends Schema.TaggedError<Declined>()("Declined", {}) {}

class Payments extends Context.Service<Payments, {
  readonly charge: (
    order: number,
    key: string
  ) => Effect.Effect<typeof Charge.Type, Declined | EffectOutcomeUnknownError>
}>()("examples/Payments") {
  static readonly layer = Layer.effect(
    Payments,
    Effect.gen(function*() {
      const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
      const charge = Effect.fn("Payments.charge")(
        (order: number, key: string) => client.post(`/orders/${order}/charge`, { headers: { "idempotency-key": key } }),
        Effect.flatMap(HttpClientResponse.schemaBodyJson(Charge)),
        Effect.timeout("100 millis"),
        // a card that is declined was not charged; whatever else went wrong, the request may have been applied
        Effect.mapError((cause) =>
          HttpClientError.isHttpClientError(cause) && cause.response?.status === 402
            ? new Declined()
            : new EffectOutcomeUnknownError({ cause })
        )
      )
      return Payments.of({ charge })
    })
  )
}

const charge = defineEffectTool({
  description: "Charges the customer of an order.",
  inputSchema: Schema.Struct({ order: Schema.Int, reason: Schema.String }),
  // an order is charged once, in whatever run
  effectKey: ({ order }) => `order:${order}:charge`,
  whenInDoubt: "execute",
  execute: ({ order }, { effectKey }) =>
    Effect.flatMap(Payments, (payments) => payments.charge(order, idempotencyKey(effectKey)))
})

const main = Effect.gen(function*() {
  const once = calls(["charge", { order: 42, reason: "Order 42." }])
  const again = calls(["charge", { order: 42, reason: "Trying once more." }])
  const model = scriptedModel(once, again, says("Paid."))
  yield* generateText({ model, prompt: "Charge order 42.", tools: { charge: yield* charge }, stopWhen: isStepCount(3) })
  // => failed
  // => executed, in doubt
  const remote = yield* LossyRemote
  yield* Console.log(`${remote.requests()} requests, ${remote.applied().length} charge`) // => 2 requests, 1 charge
})

const events = EffectEvent.layer((event) => Console.log(event.outcome + (event.executedInDoubt ? ", in doubt" : "")))
main.pipe(
  Effect.provide([Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }), Payments.layer, events]),
  Effect.provideService(Logger.LogToStderr, true),
  Effect.provide(LossyRemote.layer((request) => request.headers["idempotency-key"])),
  NodeRuntime.runMain
)
