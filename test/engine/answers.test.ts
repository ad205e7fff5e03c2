import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Layer, Schema } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const pay = tool({ inputSchema: Schema.Struct({}), needsApproval: true, execute: () => Effect.succeed("paid") })
const make = () => defineAgent({ name: "pays", model: scripted(calls(["pay", {}]), says("Paid.")), tools: { pay } })
const id = Engine.approvalId({ step: 0, toolCallId: "call-1" })
const waiting = { _tag: "RunWaitingError" }

describe.each(engines)("an answer $where", ({ withAgents }) => {
  it.live("to what is no id of an approval is refused, and answers nothing", () => {
    const agent = make()
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        for (const wrong of ["call-1", "", "0/call-1", "zero/0/call-1"]) {
          const error = yield* Effect.flip(engine.approve("1", wrong))
          expect(error).toMatchObject({ _tag: "ApprovalIdError", runId: "1", id: wrong })
          expect(error.message).toContain("Engine.approvalId")
          expect(yield* Effect.flip(engine.deny("1", wrong))).toEqual(error)
        }
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject(waiting)
        for (const right of ["", "a/b", "\"", "\n"]) {
          yield* engine.approve("1", Engine.approvalId({ step: 7, toolCallId: right }))
        }
      })
    )
  })
})

describe("an engine that executes alone", () => {
  it.live("refuses to answer, cancel or retry runs of an agent that it does not have, and leaves them as they are", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const agent = make()
      const fails = defineAgent({
        name: "fails",
        model: scripted(() => Promise.reject(new Error("down")), says("Good.")),
        maxRetries: 0
      })
      const sqlite = () => Layer.fresh(SqliteEngine.layer({ filename, drain: 0 }))
      const agents = () => Layer.mergeAll(agent.layer, fails.layer).pipe(Layer.provideMerge(sqlite()))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        yield* Effect.flip(engine.run(fails, { runId: "2", prompt: "Fail." }))
      }).pipe(Effect.provide(Layer.fresh(agents())))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        const before = yield* engine.list()
        for (const refused of [engine.approve("1", id), engine.deny("1", id), engine.cancel("1")]) {
          expect(yield* Effect.flip(refused)).toMatchObject({ _tag: "AgentNotRegisteredError", agent: "pays" })
        }
        expect(yield* Effect.flip(engine.retry("2"))).toMatchObject({ _tag: "AgentNotRegisteredError", agent: "fails" })
        expect(yield* engine.list()).toEqual(before)
        // it does nothing that would have to hear of it
        yield* engine.cancel("2")
        expect(yield* engine.get("2")).toMatchObject({ status: "cancelled" })
      }).pipe(Effect.provide(sqlite()))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* engine.approve("1", id)
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      }).pipe(Effect.provide(Layer.fresh(agents())))
    }))
})
