import { describe, expect, it } from "@effect/vitest"
import { tool } from "chamvi-effect"
import { Effect, Layer, Schema } from "effect"
import { defineAgent } from "../../src/Agent.ts"
import { Engine } from "../../src/Engine.ts"
import { calls, says, scripted } from "../support/model.ts"

describe("a run", () => {
  it.effect("comes to its result", () => {
    const model = scripted(calls(["add", { a: 1, b: 2 }]), says("3"))
    let applied = 0
    const agent = defineAgent({
      name: "adder",
      model,
      tools: {
        add: tool({
          inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
          execute: ({ a, b }) =>
            Effect.sync(() => {
              applied++
              return a + b
            })
        })
      }
    })
    return Effect.gen(function*() {
      const engine = yield* Engine
      const first = yield* engine.run(agent, { runId: "run-1", prompt: "1 + 2?" })
      expect(first).toMatchObject({ text: "3", output: "3", steps: 2, runId: "run-1" })
      expect(model.doGenerateCalls.length).toBe(2)
      const again = yield* engine.run(agent, { runId: "run-1", prompt: "1 + 2?" })
      expect(again).toEqual(first)
      expect(model.doGenerateCalls.length).toBe(2)
      expect(applied).toBe(1)
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(Engine.layerMemory()))))
  })
})
