/**
 * A test of an agent: the engine is in memory, the model says what the test tells it, and the remote is one that the test can look at.
 * The agent is the one of production. Any test runner will do; here it is plain `node:assert`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Ai, defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { deepStrictEqual } from "node:assert/strict"

class Issues extends Context.Service<Issues, {
  readonly close: (issue: number, reason: string) => Effect.Effect<void>
}>()("examples/Issues") {}

const close = defineEffectTool({
  description: "Closes the issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, reason: Schema.String }),
  // one closing per run and issue, whatever the reason is called
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:close:${issue}`,
  execute: ({ issue, reason }) => Effect.as(Effect.flatMap(Issues, (issues) => issues.close(issue, reason)), "closed")
})

// no model of its own: it runs on the one of `Ai`
const janitor = defineAgent({
  name: "janitor",
  trigger: Schema.Struct({ issue: Schema.Int }),
  instructions: (ctx) => `You look after issue ${ctx.run.trigger.issue}.`,
  tools: { close },
  toolApproval: { close: ({ reason }) => reason === "spam" ? "user-approval" : "approved" }
})

const input = (issue: number) => ({ runId: `issue-${issue}`, trigger: { issue }, prompt: "Is it done?" })

/** The agent's layers, with a script in the model's place and a list in the tracker's. */
const world = (model: ScriptedModel.ScriptedModel, closed: Array<number>) =>
  janitor.layer.pipe(
    Layer.provideMerge(Engine.layerMemory()),
    Layer.provide(Ai.layerDefaults({ model })),
    Layer.provide(Layer.succeed(Issues, { close: (issue) => Effect.sync(() => void closed.push(issue)) }))
  )

const callsTwice = Effect.gen(function*() {
  const model = ScriptedModel.make([
    ScriptedModel.together(
      ScriptedModel.call("close", { issue: 7, reason: "fixed" }),
      ScriptedModel.call("close", { issue: 7, reason: "is fixed" })
    ),
    ScriptedModel.text("Closed.")
  ])
  const closed: Array<number> = []
  const { text } = yield* Effect.provide(Engine.run(janitor, input(7)), world(model, closed))
  deepStrictEqual([text, closed, model.toolResults], ["Closed.", [7], ["closed", "closed"]])
})

const isRefused = Effect.gen(function*() {
  const model = ScriptedModel.make([
    ScriptedModel.call("close", { issue: 8, reason: "spam" }),
    ScriptedModel.text("Kept.")
  ])
  const closed: Array<number> = []
  yield* Effect.gen(function*() {
    const waiting = yield* Effect.flip(Engine.run(janitor, input(8)))
    const { approvals } = yield* Engine.get("issue-8")
    deepStrictEqual([waiting._tag, approvals.length], ["RunWaitingError", 1])
    yield* Engine.deny("issue-8", approvals[0]!.id, { reason: "It is a question." })
    yield* Engine.resume(janitor, "issue-8")
  }).pipe(Effect.provide(world(model, closed)))
  deepStrictEqual([closed, model.calls.length], [[], 2])
})

const main = Effect.gen(function*() {
  yield* callsTwice
  yield* Console.log("closes an issue once") // => closes an issue once
  yield* isRefused
  yield* Console.log("goes on where a person refuses") // => goes on where a person refuses
})

main.pipe(NodeRuntime.runMain)
