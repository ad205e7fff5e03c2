/** What a retry makes again, and what it leaves as it is. */
import { describe, expect, it } from "@effect/vitest"
import { AiError, defineAgent, Engine, tool } from "chamvi-effect"
import { NoOutputGeneratedError } from "ai"
import { Effect, Schema } from "effect"
import { calls, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

describe.each(engines)("a retry $where", ({ withAgents }) => {
  it.live("makes no step again whose calls were made, whatever it failed with, and gives no call the approval of another", () => {
    let broken = false
    const done: Array<string> = []
    const pay = (name: string, needsApproval: boolean) =>
      tool({
        inputSchema: Schema.Struct({ n: Schema.Int }),
        needsApproval,
        execute: ({ n }) => Effect.sync(() => done.push(`${name} ${n}`))
      })
    const of = (n: number) => calls(["small", { n }, "a"], ["large", { n }, "b"])
    const model = scripted(
      of(1),
      ({ prompt }) => Promise.resolve(prompt.some(({ role }) => role === "tool") ? says("Paid.") : of(2))
    )
    const agent = defineAgent({
      name: "payer",
      model,
      tools: { small: pay("small", false), large: pay("large", true) },
      // as where it asks a model for an object
      prepareStep: () =>
        broken ? Effect.fail(AiError.from(new NoOutputGeneratedError({ message: "no output" }))) : Effect.succeed({})
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        broken = true
        yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "b" }))
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({
          _tag: "RunFailedError",
          failure: { name: "AiError", step: 0 }
        })
        broken = false
        yield* engine.retry("1")
        yield* engine.resume(agent, "1")
        expect(done).toEqual(["small 1", "large 1"])
      })
    )
  })
})
