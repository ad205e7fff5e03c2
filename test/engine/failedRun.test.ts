import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Engine } from "chamvi-effect"
import { Effect, Schedule } from "effect"
import { says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

describe.each(engines)("a failed run $where", ({ withAgents }) => {
  it.live("goes on with a retry only, whatever is answered meanwhile", () => {
    const model = scripted(() => Promise.reject(new Error("down")), says("Good."))
    const agent = defineAgent({ name: "fails", model, maxRetries: 0 })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Go." }))
        const { updatedAt } = yield* engine.get("1")
        yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "later" }))
        // the answer wakes it
        const woken = yield* Effect.repeat(engine.get("1"), {
          until: (run) => run.updatedAt !== updatedAt,
          schedule: Schedule.spaced("10 millis")
        })
        expect(woken).toMatchObject({ status: "failed", failure: { step: 0 }, retries: 0 })
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).text).toBe("Good.")
        expect(model.doGenerateCalls.length).toBe(2)
      })
    )
  })
})
