/**
 * The engine, given run ids, approvals, triggers, prompts and answers of models that somebody made up to do harm: the right
 * run or a typed error, and never another run's result.
 */
import { assert, describe, it } from "@effect/vitest"
import { defineAgent, defineEffectTool } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { Cause, Effect, Exit, Schedule, Schema } from "effect"
import { vi } from "vitest"
import { engines } from "../engine/support.ts"
import { tagOf } from "../reconciliation/support.ts"
import { texts } from "./hostile.ts"

vi.setConfig({ testTimeout: 120_000 })

const ending = (exit: Exit.Exit<unknown, unknown>): unknown =>
  Exit.isSuccess(exit) ? "ok" : tagOf(Cause.squash(exit.cause)) ?? String(Cause.squash(exit.cause))

const echo = () =>
  ScriptedModel.make([
    ScriptedModel.reply(({ options }) => {
      const last = options.prompt.findLast((message) => message.role === "user")
      const said = last?.content.flatMap((part) => part.type === "text" ? [part.text] : []).join("")
      return ScriptedModel.text(`heard ${JSON.stringify(said)}`)
    })
  ])

for (const { where, withAgents } of engines) {
  describe(`an engine under attack ${where}`, () => {
    it.live("keeps runs apart, whatever their ids", () => {
      const agent = defineAgent({ name: "echo", model: echo() })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          for (const round of [1, 2]) {
            for (const [index, runId] of texts.entries()) {
              const exit = yield* Effect.exit(engine.run(agent, { runId, prompt: `${index}` }))
              if (Exit.isSuccess(exit)) assert.strictEqual(exit.value.text, `heard "${index}"`)
              else assert.strictEqual(ending(exit), "RunInputError", JSON.stringify(runId))
              assert.strictEqual(
                Exit.isFailure(exit),
                !runId.isWellFormed() || runId.trim() === "",
                `${round} ${JSON.stringify(runId)}`
              )
            }
          }
        })
      )
    })

    it.live("tells prompts apart that JSON or UTF-8 cannot", () => {
      const agent = defineAgent({ name: "echo", model: echo() })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const prompts = ["\ud800", "\ud801", "\ufffd", "a\udc00"]
          for (const [index, prompt] of prompts.entries()) {
            const runId = `run ${index}`
            const exit = yield* Effect.exit(engine.run(agent, { runId, prompt }))
            if (Exit.isSuccess(exit)) assert.strictEqual(exit.value.text, `heard ${JSON.stringify(prompt)}`)
            for (const other of prompts) {
              if (other !== prompt) {
                assert.strictEqual(
                  ending(yield* Effect.exit(engine.run(agent, { runId, prompt: other }))),
                  "RunConflictError",
                  JSON.stringify([prompt, other])
                )
              }
            }
          }
        })
      )
    })

    it.live("executes each call once, whatever its id", () => {
      const ids = texts.map((id) => id === "" ? "empty" : id)
      const applied = new Map<number, number>()
      const model = ScriptedModel.make([
        ScriptedModel.together(...ids.map((toolCallId, n) => ScriptedModel.call("note", { n }, { toolCallId }))),
        ScriptedModel.again(ScriptedModel.fails(new Error("cut off")), ScriptedModel.text("done"))
      ])
      const agent = defineAgent({
        name: "notes",
        model,
        tools: {
          note: defineEffectTool({
            inputSchema: Schema.Struct({ n: Schema.Int }),
            execute: ({ n }) =>
              Effect.sync(() => {
                applied.set(n, (applied.get(n) ?? 0) + 1)
                return { n }
              })
          })
        }
      })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          assert.strictEqual(
            ending(yield* Effect.exit(engine.run(agent, { runId: "1", prompt: "go" }))),
            "RunFailedError"
          )
          yield* engine.retry("1")
          assert.strictEqual((yield* engine.run(agent, { runId: "1", prompt: "go" })).text, "done")
          assert.deepStrictEqual([...applied], ids.map((_, n) => [n, 1]))
          assert.deepStrictEqual(model.toolResults, ids.map((_, n) => ({ n })))
        })
      )
    })

    it.live("executes nothing for an approval that is not the one of the call", () => {
      let applied = 0
      const model = ScriptedModel.make([ScriptedModel.call("pay", { to: "Eve" }), ScriptedModel.text("done")])
      const agent = defineAgent({
        name: "payer",
        model,
        tools: {
          pay: defineEffectTool({
            inputSchema: Schema.Struct({ to: Schema.String }),
            needsApproval: true,
            execute: () => Effect.sync(() => `paid ${++applied}`)
          })
        }
      })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt: "go" })
          const waiting = Effect.repeat(engine.get("1"), {
            until: ({ status }) => status === "waiting",
            schedule: Schedule.spaced("5 millis")
          })
          const { approvals: [approval] } = yield* waiting
          for (const text of texts) {
            for (const forged of [text, `${approval!.id}${text || "x"}`, `${text || "x"}${approval!.id}`]) {
              for (const reason of [undefined, text]) {
                // one that is not even of the form of an id is refused
                yield* Effect.catchTag(
                  engine.approve("1", forged, { reason }),
                  "ApprovalIdError",
                  ({ id }) => Effect.sync(() => assert.strictEqual(id, forged))
                )
              }
            }
            if (text !== "1") {
              assert.strictEqual(ending(yield* Effect.exit(engine.approve(text, approval!.id))), "RunNotFoundError")
            }
          }
          assert.deepStrictEqual((yield* waiting).approvals.map(({ id }) => id), [approval!.id])
          assert.strictEqual(applied, 0)
          // the first answer counts, and only once
          yield* engine.approve("1", approval!.id, { reason: "__proto__" })
          yield* engine.deny("1", approval!.id)
          yield* engine.approve("1", approval!.id)
          assert.strictEqual((yield* engine.run(agent, { runId: "1", prompt: "go" })).text, "done")
          assert.deepStrictEqual(model.toolResults, ["paid 1"])
          assert.strictEqual(applied, 1)
        })
      )
    })

    it.live("takes a trigger as data, whatever its members are called", () => {
      const seen: Array<unknown> = []
      const agent = defineAgent({
        name: "trigger",
        model: echo(),
        trigger: Schema.Unknown,
        instructions: ({ run }) => {
          seen.push(run.trigger)
          return "Listen."
        }
      })
      const trigger: unknown = JSON.parse(
        `{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}},"$":"blob","v":"x","toString":1,"then":2}`
      )
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* engine.run(agent, { runId: "1", prompt: "go", trigger })
          yield* engine.run(agent, { runId: "1", prompt: "go", trigger })
          assert.deepStrictEqual(
            seen.map((trigger) => JSON.stringify(trigger)),
            seen.map(() => JSON.stringify(trigger))
          )
          assert.isNotEmpty(seen)
          assert.isUndefined(({} as { readonly admin?: unknown }).admin)
          const cyclic: Record<string, unknown> = {}
          cyclic["self"] = cyclic
          let deep: unknown = "bottom"
          for (let level = 0; level < 10_000; level++) deep = { deep }
          const bad = [
            cyclic,
            deep,
            { get: Symbol("x") },
            { f: () => 1 },
            new Proxy({}, {
              ownKeys: () => {
                throw new Error("no")
              }
            })
          ]
          for (const [index, trigger] of bad.entries()) {
            const exit = yield* Effect.exit(engine.run(agent, { runId: `bad ${index}`, prompt: "go", trigger }))
            assert.include(["RunInputError"], ending(exit), `${index}`)
          }
        })
      )
    })

    it.live("lets a model that calls what no tool is read so", () => {
      const names = texts.filter((name) => name !== "key")
      let applied = 0
      const model = ScriptedModel.make([
        ScriptedModel.together(...names.map((name) => ScriptedModel.call(name, {}))),
        ScriptedModel.text("sorry")
      ])
      const agent = defineAgent({
        name: "names",
        model,
        tools: {
          key: defineEffectTool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++applied) })
        }
      })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const exit = yield* Effect.exit(engine.run(agent, { runId: "1", prompt: "go" }))
          assert.strictEqual(ending(exit), "ok")
          assert.strictEqual(applied, 0)
          assert.strictEqual(model.toolResults.length, names.length)
          for (const [index, read] of model.toolResults.entries()) {
            assert.include(String(read), "NoSuchToolError", names[index])
          }
        })
      )
    })
  })
}
