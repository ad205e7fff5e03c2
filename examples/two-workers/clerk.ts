/**
 * The agent of both workers. Its tool charges at a bank, which knows a charge by its effect key.
 */
import { defineAgent, defineEffectTool } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Config, Effect, Schema } from "effect"
import { HttpClient } from "effect/http"

const ask = (method: "get" | "post", key: string) =>
  Effect.gen(function*() {
    const bank = yield* Config.String("BANK_URL")
    const response = yield* HttpClient[method](`${bank}/charges`, { urlParams: { key, worker: process.pid } })
    return response.status === 200 ? yield* response.text : undefined
  })

const charge = defineEffectTool({
  description: "Charges the customer.",
  inputSchema: Schema.Struct({ euros: Schema.Int }),
  alreadyApplied: (key) => ask("get", key),
  execute: (_, { effectKey }) => ask("post", effectKey)
})

export const clerk = defineAgent({
  name: "clerk",
  model: ScriptedModel.make([ScriptedModel.call("charge", { euros: 10 }), ScriptedModel.text("Charged 10 euros.")]),
  tools: { charge }
})
