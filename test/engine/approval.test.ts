import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, Engine, tool } from "chamvi-effect"
import { Deferred, Effect, Schema } from "effect"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const setup = () => {
  const done: Array<string> = []
  const make = (name: string) =>
    defineEffectTool({
      inputSchema: Schema.Struct({ what: Schema.String }),
      execute: ({ what }) =>
        Effect.sync(() => {
          done.push(`${name} ${what}`)
          return what
        })
    })
  const model = scripted(
    calls(["look", { what: "up" }, "a"], ["pay", { what: "rent" }, "b"]),
    says("Paid.")
  )
  const agent = defineAgent({
    name: "payer",
    model,
    tools: { look: make("look"), pay: make("pay") },
    toolApproval: { pay: () => Effect.succeed({ type: "user-approval", reason: "money" } as const) }
  })
  return { agent, done, model }
}

describe.each(engines)("a tool call that needs approval $where", ({ withAgents }) => {
  it.live("suspends the run, which goes on when a person approves; nothing is done twice", () => {
    const { agent, done, model } = setup()
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        expect(error).toMatchObject({
          _tag: "RunWaitingError",
          approvals: [{ toolName: "pay", toolCallId: "b", step: 0, input: `{"what":"rent"}` }]
        })
        expect(done).toEqual(["look up"])
        const { approvals, status } = yield* engine.get("1")
        expect(status).toBe("waiting")
        expect(approvals[0]?.id).toBe(Engine.approvalId({ step: 0, toolCallId: "b" }))
        yield* engine.approve("1", approvals[0]!.id)
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
        expect(done).toEqual(["look up", "pay rent"])
        expect(model.doGenerateCalls.length).toBe(2)
        expect(readBy(model)).toEqual(["up", "rent"])
        expect(yield* engine.get("1")).toMatchObject({ status: "completed", approvals: [] })
      })
    )
  })

  it.live("that is denied is not executed, and the model reads the AI SDK's denial", () => {
    const { agent, done, model } = setup()
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        const id = Engine.approvalId({ step: 0, toolCallId: "b" })
        yield* engine.deny("1", id, { reason: "too much" })
        // the first answer counts
        yield* engine.approve("1", id)
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
        expect(done).toEqual(["look up"])
        expect(readBy(model)).toEqual(expect.arrayContaining([
          "up",
          expect.objectContaining({ type: "execution-denied", reason: "too much" })
        ]))
      })
    )
  })

  it.live("may be approved before it waits", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      let paid = 0
      const pay = tool({
        inputSchema: Schema.Struct({}),
        needsApproval: true,
        execute: () => Effect.sync(() => ++paid)
      })
      const model = scripted(
        () =>
          Effect.runPromise(
            Effect.as(Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(go)), calls(["pay", {}, "c"]))
          ),
        says("Paid.")
      )
      const agent = defineAgent({ name: "early", model, tools: { pay } })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt: "Pay." })
          yield* Deferred.await(asked)
          yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "c" }))
          yield* Deferred.succeed(go, undefined)
          expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
          expect([paid, model.doGenerateCalls.length]).toEqual([1, 2])
        })
      )
    }))

  it.live("that is approved while a call beside it runs does not cut that one off", () =>
    Effect.gen(function*() {
      const reached = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const events: Array<string> = []
      const inputSchema = Schema.Struct({})
      const slow = defineEffectTool({
        inputSchema,
        execute: () =>
          Effect.suspend(() => {
            events.push("slow")
            return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(go))
          }).pipe(Effect.as("slow"), Effect.onInterrupt(() => Effect.sync(() => events.push("cut off"))))
      })
      const pay = tool({ inputSchema, needsApproval: true, execute: () => Effect.sync(() => events.push("pay")) })
      const model = scripted(calls(["slow", {}, "a"], ["pay", {}, "b"]), says("Paid."))
      const agent = defineAgent({ name: "siblings", model, tools: { slow, pay } })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt: "Pay." })
          yield* Deferred.await(reached)
          yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "b" }))
          yield* Deferred.succeed(go, undefined)
          expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
          expect(events).toEqual(["slow", "pay"])
        })
      )
    }))

  it.live("waits for each answer where several are needed", () => {
    const done: Array<string> = []
    const pay = tool({
      inputSchema: Schema.Struct({ what: Schema.String }),
      needsApproval: true,
      execute: ({ what }) => Effect.sync(() => done.push(what))
    })
    const model = scripted(calls(["pay", { what: "rent" }, "a"], ["pay", { what: "tax" }, "b"]), says("Paid."))
    const agent = defineAgent({ name: "several", model, tools: { pay } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const { approvals } = yield* Effect.flip(
          engine.run(agent, { runId: "1", prompt: "Pay." })
        ) as never as Effect.Effect<{ readonly approvals: ReadonlyArray<{ readonly id: string }> }>
        expect(approvals.length).toBe(2)
        yield* engine.approve("1", approvals[1]!.id)
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({ approvals: [{ toolCallId: "a" }] })
        yield* engine.approve("1", approvals[0]!.id)
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
        expect(done.toSorted()).toEqual(["rent", "tax"])
        expect(model.doGenerateCalls.length).toBe(2)
      })
    )
  })
})
