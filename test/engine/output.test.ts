/** What the last step of a run holds beside its output. */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Output } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Effect, Schema } from "effect"
import { withAgents } from "./support.ts"

describe("the output of a run", () => {
  it.effect("is there where the model's provider has executed a tool in the same step", () => {
    const output = Output.object({ schema: Schema.Struct({ ok: Schema.Boolean }) })
    const model = ScriptedModel.make([
      ScriptedModel.together(
        ScriptedModel.content(
          {
            type: "tool-call",
            toolCallId: "s",
            toolName: "search",
            input: "{}",
            providerExecuted: true,
            dynamic: true
          },
          { type: "tool-result", toolCallId: "s", toolName: "search", result: "found", dynamic: true }
        ),
        ScriptedModel.text(`{"ok":true}`)
      )
    ])
    const agent = defineAgent({ name: "searches", model, output })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect((yield* engine.run(agent, { runId: "1", prompt: "?" })).output).toEqual({ ok: true })
      })
    )
  })
})
