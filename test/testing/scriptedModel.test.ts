import { describe, expect, it } from "@effect/vitest"
import { Ai, defineAgent, defineEffectTool, generateText, streamText, tool } from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { APICallError, generateText as plainGenerateText, isStepCount, streamText as plainStreamText } from "ai"
import { Context, Data, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { withAgents } from "../engine/support.ts"

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const label = tool({
  inputSchema: Schema.Struct({ label: Schema.String }),
  execute: ({ label }) => Effect.succeed(`labelled ${label}`)
})

const busy = () =>
  new APICallError({
    message: "busy",
    url: "https://example.com",
    requestBodyValues: {},
    responseHeaders: { "retry-after-ms": "0" },
    statusCode: 503
  })

const script = [
  ScriptedModel.together(
    ScriptedModel.text("Let me see."),
    ScriptedModel.call("label", { label: "bug" }),
    ScriptedModel.call("label", { label: "urgent" })
  ),
  ScriptedModel.text("Labelled it as an urgent bug.")
]

describe("ScriptedModel", () => {
  it.effect("says the line of its step in generateText, and keeps what it was asked", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.make(script)
      const call = generateText({ model, prompt: "Hi.", tools: { label: yield* label }, stopWhen: isStepCount(3) })
      const { steps } = yield* call
      expect(steps.map(({ finishReason, text, toolCalls }) => [text, toolCalls.length, finishReason])).toEqual([
        ["Let me see.", 2, "tool-calls"],
        ["Labelled it as an urgent bug.", 0, "stop"]
      ])
      expect(steps[0]?.toolCalls.map(({ toolCallId }) => toolCallId)).toEqual(["call-1-1", "call-1-2"])
      expect(model.toolResults).toEqual(["labelled bug", "labelled urgent"])
      expect(model.calls.map(({ attempt, kind, step }) => [kind, step, attempt])).toEqual([
        ["generate", 0, 0],
        ["generate", 1, 0]
      ])
      expect(model.prompts.map((prompt) => prompt.map(({ role }) => role))).toEqual([
        ["user"],
        ["user", "assistant", "tool"]
      ])
      // another run on the same model begins at the beginning
      expect((yield* call).steps).toHaveLength(2)
      expect([model.callsOf(0), model.callsOf(1), model.callsOf(2)]).toEqual([2, 2, 0])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("streams the same lines, texts and inputs in chunks", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.make([
        ScriptedModel.together(ScriptedModel.reasoning("Hm, ", "a bug."), script[0]!),
        script[1]!
      ])
      const result = yield* streamText({
        model,
        prompt: "Hi.",
        tools: { label: yield* label },
        stopWhen: isStepCount(3)
      })
      const parts = yield* Stream.runCollect(result.stream)
      const said = (type: "text-delta" | "reasoning-delta") =>
        parts.flatMap((part) => part.type === type ? [part.text] : [])
      expect(said("reasoning-delta")).toEqual(["Hm, ", "a bug."])
      expect(said("text-delta").slice(0, 4)).toEqual(["Let", " me", " see.", "Labelled"])
      const deltas = parts.flatMap((part) => part.type === "tool-input-delta" ? [part] : [])
      expect(deltas.filter(({ id }) => id === "call-1-1").map(({ delta }) => delta).join("")).toBe(`{"label":"bug"}`)
      expect(deltas.length).toBe(4)
      expect(model.toolResults).toEqual(["labelled bug", "labelled urgent"])
      expect(model.calls.map(({ kind }) => kind)).toEqual(["stream", "stream"])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer)))

  it.effect("serves agents: a run that is asked for again, and others beside it, get the lines of their steps", () => {
    const model = ScriptedModel.make([
      ScriptedModel.call("label", { label: "bug" }),
      ScriptedModel.again(ScriptedModel.fails(new Broken({ message: "out of words" })), ScriptedModel.text("Done."))
    ])
    let applied = 0
    const agent = defineAgent({
      name: "triage",
      model,
      tools: {
        label: defineEffectTool({
          inputSchema: Schema.Struct({ label: Schema.String }),
          execute: ({ label }) => Effect.sync(() => `${label} ${++applied}`)
        })
      }
    })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        const input = { runId: "1", prompt: "Hi." }
        expect(Exit.isFailure(yield* Effect.exit(engine.run(agent, input)))).toBe(true)
        yield* engine.retry("1")
        expect((yield* engine.run(agent, input)).text).toBe("Done.")
        // the first step of the run was not generated again
        expect([model.callsOf(0), model.callsOf(1), applied]).toEqual([1, 2, 1])
        const other = yield* engine.run(agent, { runId: "2", prompt: "Hello." }).pipe(Effect.exit)
        expect(Exit.isFailure(other)).toBe(true)
        expect(model.callsOf(0)).toBe(2)
      })
    )
  })

  it("serves the plain AI SDK", async () => {
    const model = ScriptedModel.make([ScriptedModel.text("Hi there."), ScriptedModel.text("And again.")])
    expect((await plainGenerateText({ model, prompt: "Hi." })).text).toBe("Hi there.")
    expect(
      await plainStreamText({
        model,
        messages: [
          { role: "user", content: "Hi." },
          { role: "assistant", content: "Hi there." },
          { role: "user", content: "Again!" }
        ]
      }).text
    ).toBe("And again.")
  })

  it.effect("says other words where a call is repeated", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.make([ScriptedModel.again(
        ScriptedModel.fails(busy()),
        ScriptedModel.fails(busy()),
        ScriptedModel.text("At last.")
      )])
      expect((yield* generateText({ model, prompt: "Hi.", maxRetries: 2 })).text).toBe("At last.")
      expect(model.calls.map(({ attempt }) => attempt)).toEqual([0, 1, 2])
      const streamed = yield* streamText({ model, prompt: "Hi there.", maxRetries: 2 })
      expect(yield* streamed.text).toBe("At last.")
      expect(model.calls.map(({ attempt }) => attempt)).toEqual([0, 1, 2, 0, 1, 2])
      // the last line stays, and another prompt is another call
      expect((yield* generateText({ model, prompt: "Hi.", maxRetries: 0 })).text).toBe("At last.")
      expect(Exit.isFailure(yield* Effect.exit(generateText({ model, prompt: "Ho.", maxRetries: 0 })))).toBe(true)
    }).pipe(Effect.scoped, Effect.provide(Ai.layer)))

  it.effect("goes on counting attempts of earlier processes, and steps behind a history", () =>
    Effect.gen(function*() {
      const lines = [ScriptedModel.again(ScriptedModel.text("one"), ScriptedModel.text("two"))]
      const second = ScriptedModel.make(lines, { earlierAttempts: 1 })
      expect((yield* generateText({ model: second, prompt: "Hi." })).text).toBe("two")
      const later = ScriptedModel.make(lines, { history: 1 })
      const messages = [
        { role: "user", content: "Hi." },
        { role: "assistant", content: "Hello." },
        { role: "user", content: "Well?" }
      ] as const
      expect((yield* generateText({ model: later, messages: [...messages] })).text).toBe("one")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails clearly where the conversation is longer than the script", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.make([ScriptedModel.call("label", { label: "bug" })])
      const options = { model, prompt: "Hi.", tools: { label: yield* label }, stopWhen: isStepCount(5) }
      const error = yield* Effect.flip(generateText(options))
      expect(error).toMatchObject({ cause: { _tag: "ScriptEndedError", lines: 1, step: 1 } })
      expect(String(error)).toContain("has 1 line, and the prompt holds 1 of its steps already")
      const parts = yield* Effect.flatMap(streamText(options), ({ stream }) => Stream.runCollect(stream)).pipe(
        Effect.scoped,
        Effect.flip
      )
      expect(parts).toMatchObject({ cause: { _tag: "ScriptEndedError" } })
      expect(model.calls.length).toBe(4)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("waits for a gate before it answers, and for an Effect between two chunks", () =>
    Effect.gen(function*() {
      const gate = yield* Deferred.make<void>()
      const middle = yield* Deferred.make<void>()
      const said: Array<string> = []
      const model = ScriptedModel.make([
        ScriptedModel.after(Deferred.await(gate), ScriptedModel.text("Hel", Deferred.await(middle), "lo"))
      ])
      const reader = yield* Effect.forkChild(
        Effect.scoped(Effect.flatMap(streamText({ model, prompt: "Hi." }), ({ textStream }) =>
          Stream.runForEach(textStream, (text) =>
            Effect.andThen(
              Effect.sync(() =>
                said.push(text)
              ),
              Deferred.succeed(middle, undefined)
            ))))
      )
      yield* Effect.yieldNow
      expect(said).toEqual([])
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(reader)
      expect(said).toEqual(["Hel", "lo"])
      expect((yield* generateText({ model, prompt: "Hi." })).text).toBe("Hello")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("waits on the clock, and with the services, of the fiber that makes it", () =>
    Effect.gen(function*() {
      class Delay extends Context.Service<Delay, Effect.Effect<void>>()("test/Delay") {}
      class Word extends Context.Service<Word, string>()("test/Word") {}
      const model: ScriptedModel.ScriptedModel = yield* ScriptedModel.makeEffect([
        ScriptedModel.after(Effect.flatten(Delay), ScriptedModel.text("Late.")),
        ScriptedModel.text("never ", Effect.map(Word, (word) => word))
      ]).pipe(
        Effect.provide(Layer.merge(Layer.succeed(Delay, Effect.sleep("1 hour")), Layer.succeed(Word, "said")))
      )
      const call = yield* Effect.forkChild(generateText({ model, prompt: "Hi." }))
      yield* TestClock.adjust("59 minutes")
      expect(call.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 minute")
      expect((yield* Fiber.join(call)).text).toBe("Late.")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("stops waiting when its call is aborted", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const forever = Effect.andThen(Deferred.succeed(asked, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
      )
      const model = ScriptedModel.make([ScriptedModel.after(forever, ScriptedModel.text("never"))])
      const call = yield* Effect.forkChild(generateText({ model, prompt: "Hi." }))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(call)
      yield* Deferred.await(stopped)
    }).pipe(Effect.provide(Ai.layer)))

  it("breaks a stream in the middle, by an error or by an abort", async () => {
    const broken = new Broken({ message: "cut" })
    const controller = new AbortController()
    const model = ScriptedModel.make([
      ScriptedModel.text("Hel", Effect.fail(broken), "lo"),
      ScriptedModel.text("Hel", Effect.never)
    ])
    const read = async (steps: number) => {
      const { stream } = await model.doStream({
        prompt: Array.from({ length: steps }, () => ({ role: "assistant" as const, content: [] })),
        abortSignal: controller.signal
      })
      const deltas: Array<string> = []
      let error: unknown
      try {
        for await (const part of stream) {
          if (part.type === "text-delta") {
            deltas.push(part.delta)
            if (steps === 1) controller.abort("enough")
          }
        }
      } catch (thrown) {
        error = thrown
      }
      return { deltas, error }
    }
    expect(await read(0)).toEqual({ deltas: ["Hel"], error: broken })
    await expect(plainGenerateText({ model, prompt: "Hi." })).rejects.toBe(broken)
    expect(await read(1)).toEqual({ deltas: ["Hel"], error: "enough" })
  })

  it.effect("says what a provider would, decides in view of the call, and ends for a given reason", () =>
    Effect.gen(function*() {
      const source = { type: "source", sourceType: "url", id: "1", url: "https://example.com" } as const
      const model = ScriptedModel.make([
        ScriptedModel.reply(({ options }) =>
          ScriptedModel.ends(
            ScriptedModel.together(
              ScriptedModel.content(source),
              ScriptedModel.text(`${options.prompt.length} messages`)
            ),
            "length"
          )
        )
      ], { usage: { input: 3, output: 4 }, provider: "house", modelId: "parrot" })
      const result = yield* generateText({ model, prompt: "Hi." })
      expect(result).toMatchObject({ text: "1 messages", finishReason: "length", sources: [{ id: "1" }] })
      expect([result.usage.totalTokens, model.provider, model.modelId]).toEqual([7, "house", "parrot"])
      const streamed = yield* streamText({ model, prompt: "Hi." })
      expect(yield* streamed.finishReason).toBe("length")
      expect((yield* streamed.sources).map(({ id }) => id)).toEqual(["1"])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer)))
})
