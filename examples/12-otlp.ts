/**
 * Spans of an agent, exported over OpenTelemetry's protocol: here to a collector on this machine, elsewhere to the one that
 * you have. Effect's own exporter is all that it takes.
 *
 * The provider delivers the call of the tool twice. The second one is answered from the ledger, and its span says so. What
 * the customer wrote is in no span.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import { Ai, AiTelemetry, defineEffectTool, EffectStore, generateText, ToolContext } from "chamvi-effect"
import { Console, Effect, Layer, Metric, Schema } from "effect"
import { FetchHttpClient, HttpServer } from "effect/http"
import { OtlpSerialization, OtlpTracer } from "effect/observability"
import { Collector, treeOf } from "./support/Collector.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

const refund = defineEffectTool({
  description: "Refunds an order.",
  inputSchema: Schema.Struct({ order: Schema.Int }),
  effectKey: ({ order }) => `order:${order}:refund`,
  execute: ({ order }) => Effect.withSpan(Effect.succeed({ refunded: order }), "Payments.refund")
})

const answer = Effect.gen(function*() {
  const turn = calls(["refund", { order: 7 }], ["refund", { order: 7 }])
  const result = yield* generateText({
    model: scriptedModel(turn, says("Your money is on its way.")),
    prompt: "My name is Ada, and my cup came in pieces.",
    tools: { refund: yield* refund },
    stopWhen: isStepCount(3)
  })
  yield* Console.log(result.text) // => Your money is on its way.
}).pipe(
  Effect.withSpan("POST /messages"),
  Effect.provide([Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })])
)

/** Where spans go. The exporter sends what it still has when its scope closes. */
const tracing = Layer.unwrap(
  HttpServer.addressFormattedWith((address) =>
    Effect.succeed(OtlpTracer.layer({ url: `${address}/v1/traces`, resource: { serviceName: "support" } }))
  )
).pipe(Layer.provide([OtlpSerialization.layerJson, FetchHttpClient.layer]))

const main = Effect.gen(function*() {
  yield* Effect.provide(answer, tracing)
  const { bodies, received } = yield* Collector
  for (const line of treeOf(received)) yield* Console.log(line)
  // => POST /messages
  // =>   generateText
  // =>     step 0
  // =>       chat mock-model-id
  // =>       execute_tool refund
  // =>         Payments.refund
  // =>       execute_tool refund
  // =>     step 1
  // =>       chat mock-model-id
  const outcomes = received.flatMap(({ attributes }) =>
    attributes.flatMap(({ key, value }) => key === "chamvi.effect.outcome" ? [value.stringValue] : [])
  )
  yield* Console.log(outcomes.join(", ")) // => executed, recorded
  yield* Console.log(`told of Ada: ${bodies.join().includes("Ada")}`) // => told of Ada: false

  const tokens = Metric.withAttributes(AiTelemetry.tokens, { model: "mock-model-id", type: "input" })
  yield* Console.log(`tokens read: ${(yield* Metric.value(tokens)).count}`) // => tokens read: 2
})

main.pipe(Effect.provide(Collector.layer), NodeRuntime.runMain)
