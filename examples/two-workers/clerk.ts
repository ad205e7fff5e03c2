/**
 * The agent of both workers. Its tool charges at a bank, which knows a charge by its effect key.
 */
import { defineAgent, defineEffectTool } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Config, Effect, Schema } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"

const ask = (method: "GET" | "POST", key: string) =>
  Effect.gen(function*() {
    const bank = yield* Config.String("BANK_URL")
    const request = HttpClientRequest.make(method)(`${bank}/charges`, { urlParams: { key, worker: process.pid } })
    const response = yield* HttpClient.execute(request)
    return response.status === 200 ? yield* response.text : undefined
  })

const charge = defineEffectTool({
  description: "Charges the customer.",
  inputSchema: Schema.Struct({ euros: Schema.Int }),
  alreadyApplied: (key) => ask("GET", key),
  execute: (_, { effectKey }) => ask("POST", effectKey)
})

export const clerk = defineAgent({
  name: "clerk",
  model: ScriptedModel.make([ScriptedModel.call("charge", { euros: 10 }), ScriptedModel.text("Charged 10 euros.")]),
  tools: { charge }
})
