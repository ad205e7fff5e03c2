/** Names that Postgres cannot keep as texts, on a cluster. */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { Effect, Layer, Redacted, Schema } from "effect"
import { calls, says, scripted } from "../support/model.ts"
import { databaseUrl, freshSchema, noPostgres } from "../support/postgres.ts"

const timeout = 240_000

describe.skipIf(noPostgres)("names on a cluster", () => {
  it.live(
    "of tool calls are told apart, with a NUL and with half a character too, also where a person answers",
    () =>
      Effect.gen(function*() {
        const ids = ["a\0", "a", "\ud800", "\ud801", "\ufffd"]
        const applied: Array<string> = []
        const pay = defineEffectTool({
          inputSchema: Schema.Struct({ to: Schema.String }),
          needsApproval: true,
          execute: ({ to }) => Effect.sync(() => applied.push(to))
        })
        const model = scripted(
          calls(...ids.map((id, index) => ["pay", { to: `person ${index}` }, id] as const)),
          says("Paid.")
        )
        const agent = defineAgent({ name: "payer", model, tools: { pay } })
        const url = Redacted.make(databaseUrl)
        yield* Effect.gen(function*() {
          const engine = yield* Engine
          const error = yield* Effect.flip(engine.run(agent, { runId: "run", prompt: "Pay." }))
          expect(error).toMatchObject({ _tag: "RunWaitingError" })
          expect((yield* engine.get("run")).approvals.map(({ toolCallId }) => toolCallId).toSorted()).toEqual(
            ids.toSorted()
          )
          // all but the second and the third one
          for (const [index, toolCallId] of ids.entries()) {
            const id = Engine.approvalId({ step: 0, toolCallId })
            yield* index === 1 || index === 2 ? engine.deny("run", id) : engine.approve("run", id)
          }
          expect((yield* engine.resume(agent, "run")).text).toBe("Paid.")
          expect(applied.toSorted()).toEqual(["person 0", "person 3", "person 4"])
        }).pipe(
          Effect.provide(agent.layer.pipe(
            Layer.provideMerge(ClusterEngine.layer({ url, schema: yield* freshSchema, pollInterval: "250 millis" }))
          ))
        )
      }),
    { timeout }
  )

  it.live(
    "of runs are refused with a typed error where they hold a NUL, whatever is asked",
    () =>
      Effect.gen(function*() {
        const agent = defineAgent({ name: "greeter", model: scripted(says("Hi.")) })
        const runId = "run\0"
        yield* Effect.gen(function*() {
          const engine = yield* Engine
          const answers = [
            engine.run(agent, { runId, prompt: "Hello?" }),
            engine.resume(agent, runId),
            engine.get(runId),
            engine.cancel(runId),
            engine.approve(runId, Engine.approvalId({ step: 0, toolCallId: "id" }))
          ]
          for (const answer of answers) {
            expect(yield* Effect.flip(answer as Effect.Effect<unknown, unknown>)).toMatchObject({
              _tag: "EngineStoreError"
            })
          }
        }).pipe(
          Effect.provide(ClusterEngine.layerClient({ url: Redacted.make(databaseUrl), schema: yield* freshSchema }))
        )
      }),
    { timeout }
  )
})
