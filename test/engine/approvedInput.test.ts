import { describe, expect, it } from "@effect/vitest"
import { jsonSchema, tool as aiTool } from "ai"
import { defineAgent, defineEffectTool, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Layer, Schema } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const inputSchema = Schema.Struct({ n: Schema.Int })

/** A tool that tells what it was executed with. */
const payer = (done: Array<number>, needsApproval?: boolean) =>
  defineEffectTool({
    inputSchema,
    ...needsApproval === undefined ? {} : { needsApproval },
    execute: ({ n }) => Effect.sync(() => (done.push(n), `paid ${n}`))
  })

const ask = Engine.approvalId({ step: 0, toolCallId: "a" })

describe.each(engines)("a tool call that is approved $where", ({ withAgents }) => {
  it.live.each([
    {
      by: "repairToolCall",
      input: { n: "ten" },
      options: (next: () => number) => ({
        repairToolCall: ({ toolCall }: { readonly toolCall: { readonly input: string } }) => ({
          ...toolCall,
          input: JSON.stringify({ n: next() })
        })
      })
    },
    {
      by: "experimental_refineToolInput",
      input: { n: 1 },
      options: (next: () => number) => ({ experimental_refineToolInput: { pay: () => ({ n: next() }) } })
    }
  ])("is executed with what was approved, where $by answers something else each time", ({ input, options }) => {
    const done: Array<number> = []
    let made = 0
    const agent = defineAgent({
      name: "changing",
      model: scripted(calls(["pay", input, "a"]), says("Paid.")),
      tools: { pay: payer(done, true) },
      ...options(() => 10 ** ++made) as object
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        expect((yield* engine.get("1")).approvals).toMatchObject([{ id: ask, input: `{"n":10}` }])
        yield* engine.approve("1", ask)
        yield* engine.resume(agent, "1")
        expect([done, made]).toEqual([[10], 1])
      })
    )
  })

  it.live("is looked at with its own input where calls of one answer have one id", () => {
    const done: Array<number> = []
    const model = scripted(calls(["ask", {}, "a"], ["pay", { n: 1 }, "a"], ["free", { n: 2 }, "a"]), says("Paid."))
    const agent = defineAgent({
      name: "same",
      model,
      tools: {
        ask: aiTool({ inputSchema: jsonSchema<object>({ type: "object" }) }),
        pay: payer(done, true),
        free: payer(done)
      }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
        expect(error).toMatchObject({ approvals: [{ toolName: "pay", toolCallId: "a-2", input: `{"n":1}` }] })
        expect(done).toEqual([2])
        yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "a-2" }))
        yield* engine.resume(agent, "1")
        expect(done).toEqual([2, 1])
      })
    )
  })

  it.live("has an id of its own beside a call that the provider executes", () => {
    const done: Array<number> = []
    const call = calls(["pay", { n: 1 }, "s"], ["pay", { n: 2 }, "s-2"])
    const search = {
      type: "tool-call",
      toolCallId: "s",
      toolName: "search",
      input: "{}",
      providerExecuted: true
    } as const
    const found = { type: "tool-result", toolCallId: "s", toolName: "search", result: { found: 1 } } as const
    const model = scripted({ ...call, content: [...call.content, search, found] }, says("Paid."))
    const agent = defineAgent({
      name: "provider",
      model,
      tools: { search: providerTool, pay: payer(done) },
      toolApproval: { pay: ({ n }) => n === 1 ? "user-approval" : "not-applicable" }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
          approvals: [{ toolCallId: "s-3" }]
        })
        expect(done).toEqual([2])
        yield* engine.deny("1", Engine.approvalId({ step: 0, toolCallId: "s-3" }))
        yield* engine.resume(agent, "1")
        expect(done).toEqual([2])
        const results = model.doGenerateCalls.at(-1)!.prompt.flatMap((message) =>
          message.role === "user" || message.role === "system"
            ? []
            : message.content.flatMap((part) =>
              part.type === "tool-result" ? [[part.toolCallId, part.toolName, part.output.type]] : []
            )
        )
        expect(results.toSorted(([one = ""], [other = ""]) => one.localeCompare(other))).toEqual([
          ["s", "search", "json"],
          ["s-2", "pay", "text"],
          ["s-3", "pay", "execution-denied"]
        ])
      })
    )
  })

  it.live("is none that the provider executes: the run fails, and nobody approves for a person", () => {
    const answer = calls(["pay", { n: 1 }, "c"])
    const search = {
      type: "tool-call",
      toolCallId: "s",
      toolName: "search",
      input: "{}",
      providerExecuted: true
    } as const
    const model = scripted({ ...answer, content: [search, ...answer.content] }, says("Paid."))
    const agent = defineAgent({
      name: "invented",
      model,
      tools: { search: providerTool, pay: payer([]) },
      toolApproval: ({ toolCall }) => toolCall.toolName === "search" ? "user-approval" : "not-applicable"
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Search." }))).toMatchObject({
          failure: { name: "ProviderCallApprovalError" }
        })
        expect(model.doGenerateCalls.length).toBe(1)
        yield* engine.retry("1")
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({
          failure: { name: "ProviderCallApprovalError" }
        })
      })
    )
  })

  it.live("keeps no call behind it from being made, however many may run at once", () =>
    Effect.forEach([undefined, 1], (toolCallConcurrency) => {
      const done: Array<number> = []
      const agent = defineAgent({
        name: "first",
        model: scripted(calls(["pay", { n: 1 }, "a"], ["look", { n: 2 }, "b"], ["look", { n: 3 }, "c"]), says("Paid.")),
        tools: { pay: payer(done, true), look: payer(done) },
        ...toolCallConcurrency === undefined ? {} : { toolCallConcurrency }
      })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))
          expect(done).toEqual([2, 3])
          yield* engine.approve("1", ask)
          yield* engine.resume(agent, "1")
          expect(done).toEqual([2, 3, 1])
        })
      )
    }))

  it.live("does not hide that a call beside it ends the run", () => {
    const pay = payer([], true)
    const agent = defineAgent({
      name: "large",
      model: scripted(calls(["pay", { n: 1 }, "a"], ["large", {}, "b"]), says("Paid.")),
      tools: {
        pay,
        large: tool({
          inputSchema: Schema.Struct({}),
          execute: () => Effect.as(Effect.promise(() => Promise.resolve()), "x".repeat(20_000))
        })
      }
    })
    return withAgents([agent], { maxRowSize: 10_000 })((engine) =>
      Effect.gen(function*() {
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
          _tag: "RunFailedError",
          failure: { name: "RunRowTooLargeError" }
        })
      })
    )
  })
})

const providerTool = aiTool({
  type: "provider",
  isProviderExecuted: true,
  id: "x.search",
  args: {},
  inputSchema: jsonSchema<object>({ type: "object" }),
  outputSchema: jsonSchema<object>({ type: "object" })
})

describe("a new version of an agent", () => {
  const versions = Effect.gen(function*() {
    const filename = join(yield* temporaryDirectory, "runs.db")
    const done: Array<number> = []
    const model = scripted(calls(["pay", { n: 1 }, "a"], ["ask", { n: 2 }, "b"]), says("Paid."))
    const life = (
      { factor = 1, more = {}, needsApproval }: {
        /** What its schema makes of a number. */
        readonly factor?: number
        readonly more?: object
        readonly needsApproval?: boolean
      },
      use: (engine: Engine["Service"], agent: ReturnType<typeof version>) => Effect.Effect<void, unknown>
    ) => {
      const agent = version(more, needsApproval, factor)
      return Effect.flatMap(Engine, (engine) => use(engine, agent)).pipe(
        Effect.provide(agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 }))))
      )
    }
    const version = (more: object, needsApproval: boolean | undefined, factor: number) =>
      defineAgent({
        name: "versions",
        model,
        tools: {
          pay: aiTool({
            inputSchema: jsonSchema<{ readonly n: number }>({ type: "object" }, {
              validate: (value) => ({ success: true, value: { n: (value as { readonly n: number }).n * factor } })
            }),
            ...needsApproval === undefined ? {} : { needsApproval },
            execute: ({ n }: { readonly n: number }) => (done.push(n), `paid ${n}`)
          }),
          ask: payer(done, true)
        },
        ...more
      })
    return { done, life, model }
  })

  it.live("that asks nobody any more does not execute what was denied, nor what waits", () =>
    Effect.gen(function*() {
      const { done, life, model } = yield* versions
      yield* life({ needsApproval: true }, (engine, agent) =>
        Effect.gen(function*() {
          yield* Effect.exit(engine.run(agent, { runId: "1", prompt: "Pay." }))
          yield* Effect.exit(engine.run(agent, { runId: "2", prompt: "Pay." }))
        }))
      yield* life({}, (engine, agent) =>
        Effect.gen(function*() {
          yield* engine.deny("1", Engine.approvalId({ step: 0, toolCallId: "b" }))
          expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({ approvals: [{ id: ask }] })
          yield* engine.deny("1", ask)
          yield* engine.resume(agent, "1")
          expect(done).toEqual([])
          expect(readBy(model)).toMatchObject([{ type: "execution-denied" }, { type: "execution-denied" }])
        }))
    }))

  it.live("that a policy denied something before it was removed does not execute that", () =>
    Effect.gen(function*() {
      const { done, life } = yield* versions
      yield* life({ more: { toolApproval: { pay: "denied" } } }, (engine, agent) =>
        Effect.asVoid(Effect.exit(engine.run(agent, { runId: "1", prompt: "Pay." }))))
      yield* life({}, (engine, agent) =>
        Effect.gen(function*() {
          yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "b" }))
          yield* engine.resume(agent, "1")
          expect(done).toEqual([2])
        }))
    }))

  it.live("whose schema reads an approved input as another one does not execute it", () =>
    Effect.gen(function*() {
      const { done, life } = yield* versions
      yield* life({ needsApproval: true }, (engine, agent) =>
        Effect.asVoid(Effect.exit(engine.run(agent, { runId: "1", prompt: "Pay." }))))
      yield* life({ needsApproval: true, factor: 10 }, (engine, agent) =>
        Effect.gen(function*() {
          yield* engine.approve("1", ask)
          expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({
            failure: { name: "ApprovedInputChangedError" }
          })
          expect(done).toEqual([])
        }))
    }))
})
