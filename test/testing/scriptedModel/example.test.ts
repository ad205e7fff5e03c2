import { expect, it } from "@effect/vitest"
import type { LanguageModel } from "ai"
import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Context, Effect, Layer, Schema } from "effect"

/** The tracker as a test double. */
class Labels extends Context.Service<Labels, Array<string>>()("app/Labels") {
  static readonly layer = Layer.sync(Labels, () => [])
}

const label = defineEffectTool({
  description: "Puts a label on an issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, label: Schema.String }),
  execute: ({ issue, label }) =>
    Effect.map(Labels, (labels) => {
      labels.push(label)
      return `issue ${issue} is a ${label}`
    })
})

const triageBy = (model: LanguageModel) => defineAgent({ name: "triage", model, tools: { label } })

it.effect("labels once, although the model is out of order for a while", () => {
  const model = ScriptedModel.make([
    ScriptedModel.call("label", { issue: 7, label: "bug" }),
    ScriptedModel.again(ScriptedModel.fails(new Error("out of order")), ScriptedModel.text("Labelled as a bug."))
  ])
  const triage = triageBy(model)
  return Effect.gen(function*() {
    const run = Engine.run(triage, { runId: "issue-7", prompt: "Triage issue 7." })
    expect((yield* Effect.flip(run))._tag).toBe("RunFailedError")
    yield* Engine.retry("issue-7")
    expect((yield* run).text).toBe("Labelled as a bug.")
    expect(yield* Labels).toEqual(["bug"])
    expect(model.toolResults).toEqual(["issue 7 is a bug"])
    // the retry went on where the run had failed: what came before was not asked again
    expect([model.callsOf(0), model.callsOf(1)]).toEqual([1, 2])
  }).pipe(
    Effect.provide(triage.layer.pipe(Layer.provideMerge(Engine.layerMemory()), Layer.provideMerge(Labels.layer)))
  )
})
