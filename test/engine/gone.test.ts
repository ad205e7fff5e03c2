/** Calls that a new version of the agent cannot make any more. */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import type { ToolSet } from "ai"
import { Effect, Layer, Schema } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"

const setup = Effect.gen(function*() {
  const filename = join(yield* temporaryDirectory, "engine.sqlite")
  const done: Array<string> = []
  const model = scripted(
    calls(["pay", { n: 7 }, "a"], ["look", {}, "b"], ["invented", {}, "c"], ["pay", { n: "seven" }, "d"]),
    says("Paid.")
  )
  const pay = (n: Schema.Codec<number>) =>
    tool({ inputSchema: Schema.Struct({ n }), execute: ({ n }) => Effect.sync(() => `${done.push(`pay ${n}`)} paid`) })
  const look = tool({
    inputSchema: Schema.Struct({}),
    needsApproval: true,
    execute: () => Effect.sync(() => `${done.push("look")} seen`)
  })
  /** A version of the agent, in a process of its own. */
  const version = (options: { readonly tools: object; readonly activeTools?: Array<string> }) => {
    const agent = defineAgent({ name: "payer", model, ...options as { readonly tools: ToolSet } })
    return <A, E>(use: (engine: Engine["Service"], agent_: typeof agent) => Effect.Effect<A, E>) =>
      Effect.provide(
        Effect.flatMap(Engine, (engine) => use(engine, agent)),
        agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
      )
  }
  const tools = { pay: pay(Schema.Int), look }
  return { done, look, model, pay, tools, version }
})

const approval = Engine.approvalId({ step: 0, toolCallId: "b" })

describe("a call that was made", () => {
  for (
    const [change, changed] of [
      ["has no such tool", ({ look }) => ({ tools: { look, send: look } })],
      ["refuses its input", ({ look, pay }) => ({ tools: { look, pay: pay(Schema.Literal(8)) } })],
      ["does not offer its tool", ({ tools }) => ({ tools, activeTools: ["look"] })]
    ] as ReadonlyArray<
      readonly [
        string,
        (made: Effect.Success<typeof setup>) => { readonly tools: object; readonly activeTools?: Array<string> }
      ]
    >
  ) {
    it.live(`ends the run where a new version of the agent ${change}, and a retry goes on when it does as before`, () =>
      Effect.gen(function*() {
        const made = yield* setup
        const { done, model, tools, version } = made
        const before = version({ tools })
        yield* before((engine, agent) => Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." })))
        const error = yield* version(changed(made))((engine, agent) =>
          Effect.andThen(engine.approve("1", approval), Effect.flip(engine.resume(agent, "1")))
        )
        expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "RunCallGoneError", step: 0 } })
        expect(error.message).toContain("Call \"a\" of tool \"pay\"")
        expect([model.doGenerateCalls.length, done]).toEqual([1, ["pay 7"]])
        yield* before((engine, agent) => Effect.andThen(engine.retry("1"), engine.resume(agent, "1")))
        expect([model.doGenerateCalls.length, done]).toEqual([2, ["pay 7", "look"]])
        expect(readBy(model)).toEqual(expect.arrayContaining(["1 paid", "2 seen"]))
      }))
  }

  it.live("is none where it could never be made: the model reads why, in a new version of the agent too", () =>
    Effect.gen(function*() {
      const { done, look, model, pay, tools, version } = yield* setup
      yield* version({ tools })((engine, agent) => Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." })))
      yield* version({ tools: { look, pay: pay(Schema.Finite) } })((engine, agent) =>
        Effect.andThen(engine.approve("1", approval), engine.resume(agent, "1"))
      )
      expect(done).toEqual(["pay 7", "look"])
      const read = readBy(model).map(String)
      expect(read.filter((text) => text.includes("unavailable tool 'invented'")).length).toBe(1)
      expect(read.filter((text) => text.includes("Invalid input for tool pay")).length).toBe(1)
    }))
})
