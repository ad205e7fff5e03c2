import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, Engine, Output, tool, ToolContext } from "chamvi-effect"
import { APICallError, hasToolCall, isStepCount } from "ai"
import { Context, Data, Deferred, Effect, Layer, Schema, Stream } from "effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { withAgents } from "./support.ts"

const adder = () => {
  let added = 0
  return {
    get added() {
      return added
    },
    tool: tool({
      inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
      execute: ({ a, b }) =>
        Effect.sync(() => {
          added++
          return a + b
        })
    })
  }
}

class OutOfStock extends Data.TaggedError("OutOfStock")<{ readonly left: number }> {}

const failing = (message: string, isRetryable = false) =>
  new APICallError({ message, url: "https://example.com", requestBodyValues: {}, isRetryable })

describe("Engine.run", () => {
  it.effect("answers the recorded result where the run is over, without the model and without the tools", () => {
    const add = adder()
    const model = scripted(calls(["add", { a: 1, b: 2 }]), says("3"))
    const agent = defineAgent({ name: "adder", model, tools: { add: add.tool } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const first = yield* engine.run(agent, { runId: "run-1", prompt: "1 + 2?" })
        expect(first).toMatchObject({ text: "3", output: "3", steps: 2, runId: "run-1", finishReason: "stop" })
        expect(first.usage.totalTokens).toBe(4)
        expect(yield* engine.run(agent, { runId: "run-1", prompt: "1 + 2?" })).toEqual(first)
        expect([model.doGenerateCalls.length, add.added]).toEqual([2, 1])
        expect(yield* engine.get("run-1")).toMatchObject({ status: "completed", agent: "adder", keysInDoubt: [] })
      })
    )
  })

  it.effect("refuses an agent that is not registered, and an id that is none", () => {
    const agent = defineAgent({ name: "here", model: scripted(says("Hi.")) })
    const other = defineAgent({ name: "elsewhere", model: scripted(says("Hi.")) })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engine.run(other, { runId: "1", prompt: "Hello?" }))
        expect(error).toMatchObject({ _tag: "AgentNotRegisteredError", agent: "elsewhere" })
        expect(yield* Effect.flip(engine.run(agent, { runId: " ", prompt: "Hello?" }))).toMatchObject({
          _tag: "RunInputError"
        })
        expect(yield* Effect.flip(engine.get("1"))).toMatchObject({ _tag: "RunNotFoundError", runId: "1" })
      })
    )
  })

  it.effect("refuses the id of another agent's run, and another prompt or trigger", () => {
    const schema = Schema.Struct({ at: Schema.Date })
    const one = defineAgent({ name: "one", model: scripted(says("Hi.")), trigger: schema })
    const two = defineAgent({ name: "two", model: scripted(says("Hi.")), trigger: schema })
    const trigger = { at: new Date(0) }
    return withAgents([one, two])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(one, { runId: "1", prompt: "Hello?", trigger })
        expect(yield* Effect.flip(engine.run(two, { runId: "1", prompt: "Hello?", trigger }))).toMatchObject({
          _tag: "RunOfAnotherAgentError",
          startedBy: "one"
        })
        expect(yield* Effect.flip(engine.run(one, { runId: "1", prompt: "Hello!", trigger }))).toMatchObject({
          _tag: "RunConflictError"
        })
        const later = { at: new Date(1) }
        expect(yield* Effect.flip(engine.run(one, { runId: "1", prompt: "Hello?", trigger: later }))).toMatchObject({
          _tag: "RunConflictError"
        })
        expect((yield* engine.run(one, { runId: "1", prompt: "Hello?", trigger: { at: new Date(0) } })).text).toBe(
          "Hi."
        )
      })
    )
  })

  it.effect("gives instructions, tools and hooks the run's context, with the decoded trigger", () => {
    class Greeting extends Context.Service<Greeting, string>()("test/Greeting") {}
    const seen: Array<unknown> = []
    const model = scripted(calls(["note", { text: "x" }]), says("Done."))
    const agent = defineAgent({
      name: "context",
      model,
      trigger: Schema.Struct({ at: Schema.Date }),
      instructions: ({ run }) => Effect.map(Greeting, (greeting) => `${greeting} ${run.trigger.at.getUTCFullYear()}`),
      tools: ({ run }) => ({
        note: defineEffectTool({
          description: `Notes of ${run.runId}`,
          inputSchema: Schema.Struct({ text: Schema.String }),
          execute: ({ text }, { context }) =>
            Effect.gen(function*() {
              yield* context.state.set("text", Schema.String, text)
              const { run, state } = yield* ToolContext
              seen.push(run.agent, run.trigger, yield* state.get("text", Schema.String))
              return text
            })
        })
      })
    })
    return Effect.gen(function*() {
      const engine = yield* Engine
      yield* engine.run(agent, { runId: "run-1", prompt: "Note it.", trigger: { at: new Date("2030-01-02") } })
      expect(seen).toEqual(["context", { at: new Date("2030-01-02") }, "x"])
      expect(model.doGenerateCalls[0]?.prompt[0]).toMatchObject({ role: "system", content: "Hello 2030" })
      expect(model.doGenerateCalls[0]?.tools?.[0]).toMatchObject({ description: "Notes of run-1" })
    }).pipe(Effect.provide(
      agent.layer.pipe(
        Layer.provideMerge(Engine.layerMemory()),
        Layer.provide(Layer.succeed(Greeting, "Hello"))
      )
    ))
  })

  it.effect("types and decodes the output, the same each time", () => {
    const output = Output.object({ schema: Schema.Struct({ at: Schema.Date }) })
    const agent = defineAgent({ name: "output", model: scripted(says(`{"at":"2030-01-02T00:00:00.000Z"}`)), output })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const run = engine.run(agent, { runId: "1", prompt: "When?" })
        expect((yield* run).output).toEqual({ at: new Date("2030-01-02") })
        expect((yield* run).output).toEqual({ at: new Date("2030-01-02") })
      })
    )
  })

  it.effect("tells calls with the same id apart, within a step and over steps", () => {
    const add = adder()
    const one = ["add", { a: 1, b: 1 }, "call"] as const
    const two = ["add", { a: 2, b: 2 }, "call"] as const
    const model = scripted(calls(one, two), calls(["add", { a: 3, b: 3 }, "call"]), says("Done."))
    const agent = defineAgent({ name: "same", model, tools: { add: add.tool } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(agent, { runId: "1", prompt: "Add." })
        expect(add.added).toBe(3)
        expect(readBy(model)).toEqual(expect.arrayContaining([2, 4, 6]))
      })
    )
  })

  it.effect("runs the tools of a step in parallel", () =>
    Effect.gen(function*() {
      const first = yield* Deferred.make<void>()
      const second = yield* Deferred.make<void>()
      const meet = tool({
        inputSchema: Schema.Struct({ first: Schema.Boolean }),
        execute: (input) =>
          input.first
            ? Effect.as(Effect.andThen(Deferred.succeed(first, undefined), Deferred.await(second)), "met")
            : Effect.as(Effect.andThen(Deferred.await(first), Deferred.succeed(second, undefined)), "met")
      })
      const model = scripted(calls(["meet", { first: true }], ["meet", { first: false }]), says("Met."))
      const agent = defineAgent({ name: "parallel", model, tools: { meet } })
      yield* withAgents([agent])((engine) => engine.run(agent, { runId: "1", prompt: "Meet." }))
      expect(readBy(model)).toEqual(["met", "met"])
    }))

  it.effect("lets the model read a failure of a tool, and goes on", () => {
    const model = scripted(calls(["fail", {}]), says("It failed."))
    const fail = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail(new OutOfStock({ left: 0 })) })
    const agent = defineAgent({ name: "fails", model, tools: { fail } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect((yield* engine.run(agent, { runId: "1", prompt: "Try." })).text).toBe("It failed.")
        expect(readBy(model)).toEqual([`OutOfStock {"left":0}`])
      })
    )
  })

  it.effect("keeps bytes, Dates, URLs and undefined of results", () => {
    const value = {
      small: new Uint8Array([1, 2, 3]),
      large: new Uint8Array(40_000).fill(7),
      at: new Date("2030-01-02"),
      url: new URL("https://example.com/"),
      none: undefined,
      big: 12n,
      $: "own"
    }
    const read: Array<unknown> = []
    const keep = {
      ...Effect.runSync(tool({
        inputSchema: Schema.Struct({}),
        outputSchema: Schema.Unknown,
        execute: () => Effect.succeed("")
      })),
      execute: () => Promise.resolve(value),
      toModelOutput: ({ output }: { readonly output: unknown }) => {
        read.push(output)
        return { type: "text" as const, value: "kept" }
      }
    }
    const agent = defineAgent({ name: "keeps", model: scripted(calls(["keep", {}]), says("Kept.")), tools: { keep } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(agent, { runId: "1", prompt: "Keep." })
        expect(read[0]).toStrictEqual(value)
      })
    )
  })

  it.effect("takes tools that stream, whose last value counts, and a model that a step brings along", () => {
    const first = scripted(calls(["count", {}], ["deploy", {}]))
    const second = scripted(says("Done."))
    const inputSchema = Schema.Struct({})
    const count = tool({ inputSchema, streaming: true, execute: () => Stream.make(1, 2, 3) })
    const deploy = defineEffectTool({ inputSchema, streaming: true, execute: () => Stream.make("building", "built") })
    const agent = defineAgent({
      name: "streams",
      model: first,
      tools: { count, deploy },
      prepareStep: ({ stepNumber }) => Effect.succeed(stepNumber === 0 ? {} : { model: second })
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const run = engine.run(agent, { runId: "1", prompt: "Go." })
        expect((yield* run).text).toBe("Done.")
        expect(readBy(second)).toEqual([3, "built"])
        yield* run
        expect([first.doGenerateCalls.length, second.doGenerateCalls.length]).toEqual([1, 1])
      })
    )
  })

  it("takes no two agents of one name, and no agent without one", async () => {
    const model = scripted(says("Hi."))
    expect(() => defineAgent({ name: " ", model })).toThrow("needs a name")
    const one = defineAgent({ name: "same", model })
    const two = defineAgent({ name: "same", model })
    const built = Effect.runPromise(
      Effect.scoped(Layer.build(Layer.mergeAll(one.layer, two.layer).pipe(Layer.provide(Engine.layerMemory()))))
    )
    await expect(built).rejects.toThrow("Two agents are called")
  })

  it.effect("fails a run whose row would be too large, and no other one", () => {
    const model = scripted(calls(["big", {}]), says("Done."))
    const big = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed("x".repeat(10_000)) })
    const agent = defineAgent({ name: "big", model, tools: { big } })
    const small = defineAgent({ name: "small", model: scripted(says("Hi.")) })
    return withAgents([agent, small], { maxRowSize: 5000 })((engine) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Go." }))
        expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "RunRowTooLargeError", step: 0 } })
        expect((yield* engine.run(small, { runId: "2", prompt: "Go." })).text).toBe("Hi.")
      })
    )
  })

  it.effect("asks allow at every execution of every tool", () => {
    const add = adder()
    let applied = 0
    const pay = defineEffectTool({
      inputSchema: Schema.Struct({}),
      execute: () => Effect.sync(() => ++applied)
    })
    const model = scripted(calls(["add", { a: 1, b: 1 }], ["pay", {}]), calls(["add", { a: 1, b: 1 }]), says("Done."))
    const asked: Array<string> = []
    const agent = defineAgent({
      name: "allowed",
      model,
      tools: { add: add.tool, pay },
      allow: (name) => Effect.sync(() => asked.push(name) === 1)
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(agent, { runId: "1", prompt: "Go." })
        expect(asked).toEqual(["add", "pay", "add"])
        expect([add.added, applied]).toEqual([1, 0])
        expect(readBy(model).map(String)).toEqual([
          "2",
          expect.stringContaining("ToolNotAllowedError"),
          expect.stringContaining("ToolNotAllowedError")
        ])
      })
    )
  })
})

describe("Engine.retry", () => {
  it.effect("goes on from the last good step", () => {
    const add = adder()
    let broken = true
    const model = scripted(
      calls(["add", { a: 1, b: 2 }]),
      () => broken ? Promise.reject(failing("no credit")) : Promise.resolve(says("3"))
    )
    const agent = defineAgent({ name: "adder", model, tools: { add: add.tool } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const run = engine.run(agent, { runId: "1", prompt: "1 + 2?" })
        const error = yield* Effect.flip(run)
        expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "AiError", step: 1 } })
        expect(error.message).toContain("no credit")
        // asking again does not try again
        expect(yield* Effect.flip(run)).toEqual(error)
        expect(model.doGenerateCalls.length).toBe(2)
        broken = false
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).text).toBe("3")
        expect([model.doGenerateCalls.length, add.added]).toEqual([3, 1])
        expect(yield* engine.get("1")).toMatchObject({ status: "completed", retries: 1, failure: undefined })
        expect(yield* Effect.flip(engine.retry("1"))).toMatchObject({ _tag: "RunNotFailedError", status: "completed" })
      })
    )
  })

  for (
    const [rule, stopWhen, count] of [
      ["a tool's name", hasToolCall("add"), 1],
      ["a number of steps", isStepCount(2), 2]
    ] as const
  ) {
    it.effect(`completes where ${rule} ends its loop with a call, and makes it once`, () => {
      const model = ScriptedModel.make([
        ScriptedModel.call("add", { a: 1, b: 1 }),
        ScriptedModel.call("add", { a: 2, b: 1 })
      ])
      const add = adder()
      const agent = defineAgent({ name: "calls", model, stopWhen, tools: { add: add.tool } })
      return withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const run = engine.run(agent, { runId: "1", prompt: "Add." })
          expect(yield* run).toMatchObject({ text: "", output: "", finishReason: "tool-calls", steps: count })
          expect(yield* run).toMatchObject({ text: "", output: "", steps: count })
          expect([model.calls.length, add.added]).toEqual([count, count])
        })
      )
    })
  }

  it.effect("that ends with a call and before its output is not made again by a retry, nor is its call", () => {
    const output = Output.object({ schema: Schema.Struct({ ok: Schema.Boolean }) })
    const model = ScriptedModel.make([ScriptedModel.call("add", { a: 1, b: 1 })])
    const add = adder()
    const agent = defineAgent({ name: "early", model, output, stopWhen: isStepCount(1), tools: { add: add.tool } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Add." }))
        expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "NoOutputGeneratedError", step: 0 } })
        yield* engine.retry("1")
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({ _tag: "RunFailedError" })
        expect([model.calls.length, add.added]).toEqual([1, 1])
      })
    )
  })

  it.effect("generates a step again whose output was none", () => {
    const output = Output.object({ schema: Schema.Struct({ ok: Schema.Boolean }) })
    const model = scripted(says("no JSON"), says("none either"), says(`{"ok":true}`))
    const agent = defineAgent({ name: "output", model, output })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "?" }))).toMatchObject({
          _tag: "RunFailedError"
        })
        yield* engine.retry("1")
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({ _tag: "RunFailedError" })
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).output).toEqual({ ok: true })
      })
    )
  })
})

describe("Engine.list and Engine.prune", () => {
  it.effect("list runs, and forget those that are over", () => {
    const model = scripted(says("Hi."))
    const agent = defineAgent({ name: "a", model })
    const other = defineAgent({ name: "b", model })
    return withAgents([agent, other])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(agent, { runId: "1", prompt: "Hello?" })
        yield* engine.run(other, { runId: "2", prompt: "Hello?" })
        expect((yield* engine.list()).map(({ runId }) => runId)).toEqual(["2", "1"])
        expect((yield* engine.list({ agent: "a", status: "completed" })).map(({ runId }) => runId)).toEqual(["1"])
        expect(yield* engine.prune({ olderThan: "1 minute" })).toBe(0)
        expect(yield* engine.prune({ olderThan: -1 })).toBe(2)
        expect(yield* engine.list()).toEqual([])
        // the id is free again, for another prompt too
        expect((yield* engine.run(agent, { runId: "1", prompt: "Who?" })).text).toBe("Hi.")
        expect(model.doGenerateCalls.length).toBe(3)
      })
    )
  })
})
