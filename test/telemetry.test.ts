/** Spans of calls: their tree, their attributes, and how they end. */
import { assert, describe, it } from "@effect/vitest"
import { isStepCount, ToolLoopAgent } from "ai"
import { MockEmbeddingModelV4, MockRerankingModelV4, MockSpeechModelV4 } from "ai/test"
import { Ai, embed, embedMany, generateSpeech, generateText, rerank, runAgent, streamText, tool } from "chamvi-effect"
import { Context, Deferred, Effect, Fiber, Option, Schema, Stream, Tracer } from "effect"
import { Telemetry as EffectTelemetry } from "effect/ai"
import { calls, says, scripted } from "./support/model.ts"
import { busy, ledger, makeTools } from "./support/observed.ts"
import { attributesOf, recordSpans } from "./support/spans.ts"
import { calls as streamsCalls, says as streamsText, streaming } from "./support/streamModel.ts"

describe("Spans", () => {
  it.effect("are a tree of the call, its steps, model calls and tools, with the tools' own below", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = scripted(calls(["add", { a: 1, b: 2 }, "a"], ["label", { label: "bug" }, "b"]), says("done"))
      yield* generateText({
        model,
        prompt: "go",
        tools: yield* makeTools,
        stopWhen: isStepCount(2),
        temperature: 0.5,
        maxOutputTokens: 100
      }).pipe(Effect.withSpan("request"), Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(recorded.tree(), [
        "request",
        "  generateText",
        "    step 0",
        "      chat mock-model-id",
        "      execute_tool add",
        "        adding",
        "      execute_tool label",
        "        labelling",
        "    step 1",
        "      chat mock-model-id"
      ])
      assert.deepStrictEqual(attributesOf(recorded.span("generateText")), {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": "mock-model-id",
        "gen_ai.provider.name": "mock-provider",
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 2
      })
      assert.deepStrictEqual(attributesOf(recorded.span("step 0")), {
        "chamvi.step": 0,
        "gen_ai.response.finish_reasons": ["tool-calls"],
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1
      })
      const { "gen_ai.response.id": id, ...chat } = attributesOf(recorded.span("chat mock-model-id"))
      assert.isString(id)
      assert.deepStrictEqual(chat, {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "mock-model-id",
        "gen_ai.provider.name": "mock-provider",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.model": "mock-model-id",
        "gen_ai.response.finish_reasons": ["tool-calls"],
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1
      })
      assert.deepStrictEqual(attributesOf(recorded.span("execute_tool add")), {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "a"
      })
      assert.deepStrictEqual(["generateText", "chat mock-model-id"].map((name) => recorded.span(name).kind), [
        "internal",
        "client"
      ])
    }).pipe(Effect.provide(ledger)))

  it.effect("have the names that effect/ai gives its attributes", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      yield* Effect.withTracer(
        generateText({ model: scripted(says("hi")), prompt: "go", seed: 1, topK: 2 }),
        recorded.tracer
      )
      const theirs = new Tracer.NativeSpan({
        name: "theirs",
        parent: Option.none(),
        annotations: Context.empty(),
        links: [],
        startTime: 0n,
        kind: "client",
        sampled: true
      })
      EffectTelemetry.addGenAIAnnotations(theirs, {
        provider: { name: "p" },
        operation: { name: "chat" },
        request: { model: "m", seed: 1, topK: 2 },
        response: { id: "1", model: "m", finishReasons: ["stop"] },
        usage: { inputTokens: 1, outputTokens: 1 }
      })
      assert.sameMembers([...recorded.span("chat mock-model-id").attributes.keys()], [...theirs.attributes.keys()])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of an effect tool's execution have its outcome, a replay's too", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = scripted(calls(["label", { label: "a" }, "a"], ["label", { label: "a" }, "b"]), says("done"))
      yield* Effect.withTracer(
        generateText({ model, prompt: "go", tools: yield* makeTools, stopWhen: isStepCount(2) }),
        recorded.tracer
      )
      const outcomes = recorded.spans.filter(({ name }) => name === "execute_tool label").map((span) => [
        span.attributes.get("gen_ai.tool.call.id"),
        span.attributes.get("chamvi.effect.key"),
        span.attributes.get("chamvi.effect.outcome")
      ])
      assert.deepStrictEqual(outcomes, [["a", "run-1:label", "executed"], ["b", "run-1:label", "recorded"]])
      assert.isFalse(recorded.span("labelling").attributes.has("chamvi.effect.outcome"))
    }).pipe(Effect.provide(ledger)))

  it.effect("of tools at the same time keep to their own", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const both = yield* Deferred.make<void>()
      let running = 0
      const wait = yield* tool({
        inputSchema: Schema.Struct({ name: Schema.String }),
        execute: ({ name }) =>
          Effect.gen(function*() {
            if (++running === 2) yield* Deferred.succeed(both, undefined)
            yield* Deferred.await(both)
            yield* Effect.withSpan(Effect.yieldNow, `work of ${name}`)
            return name
          })
      })
      const model = scripted(calls(["wait", { name: "one" }, "1"], ["wait", { name: "two" }, "2"]))
      yield* Effect.withTracer(generateText({ model, prompt: "go", tools: { wait } }), recorded.tracer)
      const parents = ["work of one", "work of two"].map((name) => {
        const parent = Option.getOrThrow(recorded.span(name).parent) as Tracer.NativeSpan
        return [parent.name, parent.attributes.get("gen_ai.tool.call.id")]
      })
      assert.deepStrictEqual(parents, [["execute_tool wait", "1"], ["execute_tool wait", "2"]])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a tool that fails have the failure, and those above do not", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = scripted(calls(["fail", {}]), says("It is locked."))
      yield* Effect.withTracer(
        generateText({ model, prompt: "go", tools: yield* makeTools, stopWhen: isStepCount(2) }),
        recorded.tracer
      )
      assert.deepStrictEqual(recorded.tree(), [
        "generateText",
        "  step 0",
        "    chat mock-model-id",
        "    execute_tool fail (failed)",
        "  step 1",
        "    chat mock-model-id"
      ])
      assert.strictEqual(recorded.span("execute_tool fail").attributes.get("error.type"), "Broken")
      assert.include(recorded.text(), "the door is locked")
    }).pipe(Effect.provide(ledger)))

  it.effect("of a call that fails have the failure from the model call up, and tell of each attempt", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = scripted(() => Promise.reject(busy()))
      yield* Effect.flip(generateText({ model, prompt: "go", maxRetries: 1 })).pipe(Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(recorded.tree(), [
        "generateText (failed)",
        "  step 0 (failed)",
        "    chat mock-model-id (failed)"
      ])
      const chat = recorded.span("chat mock-model-id")
      assert.deepStrictEqual(chat.events.map(([name, , attributes]) => [name, attributes]), [
        ["gen_ai.attempt_failed", { "error.type": "APICallError" }],
        ["gen_ai.attempt_failed", { "error.type": "APICallError" }]
      ])
      assert.strictEqual(chat.attributes.get("error.type"), "APICallError")
      assert.strictEqual(recorded.span("generateText").attributes.get("error.type"), "APICallError")
      assert.notInclude(recorded.text(), "secret")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of a call that is interrupted are interrupted, and none stays open", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const started = yield* Deferred.make<void>()
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
      const fiber = yield* Effect.forkChild(
        Effect.withTracer(
          generateText({ model: scripted(calls(["slow", {}])), prompt: "go", tools: { slow } }),
          recorded.tracer
        )
      )
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(recorded.tree(), [
        "generateText (interrupted)",
        "  step 0 (interrupted)",
        "    chat mock-model-id",
        "    execute_tool slow (interrupted)"
      ])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of streamText are the same tree, and end with the stream", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = streaming(
        streamsCalls(["add", { a: 1, b: 2 }], ["label", { label: "bug" }]),
        streamsText("do", "ne")
      )
      const result = yield* streamText({
        model,
        prompt: "go",
        tools: yield* makeTools,
        stopWhen: isStepCount(2)
      }).pipe(Effect.withTracer(recorded.tracer))
      yield* Stream.runDrain(result.textStream)
      assert.deepStrictEqual(recorded.tree(), [
        "streamText",
        "  step 0",
        "    chat mock-model-id",
        "    execute_tool add",
        "      adding",
        "    execute_tool label",
        "      labelling",
        "  step 1",
        "    chat mock-model-id"
      ])
      assert.strictEqual(recorded.span("streamText").attributes.get("gen_ai.usage.output_tokens"), 4)
      assert.strictEqual(recorded.span("execute_tool label").attributes.get("chamvi.effect.outcome"), "executed")
    }).pipe(Effect.scoped, Effect.provide(ledger)))

  it.effect("of a stream that is left are interrupted, and of one that fails failed", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const left = yield* Effect.withTracer(
        streamText({ model: streaming(streamsText("a", "b", "c")), prompt: "go" }),
        recorded.tracer
      )
      yield* Stream.runDrain(Stream.take(left.textStream, 1))
      assert.strictEqual(recorded.tree()[0], "streamText (interrupted)")
      assert.notInclude(recorded.tree().join("\n"), "open")
      const failing = recordSpans()
      const failed = yield* Effect.withTracer(
        streamText({ model: streaming(() => Promise.reject(busy())), prompt: "go", maxRetries: 0 }),
        failing.tracer
      )
      yield* Effect.flip(failed.text)
      assert.deepStrictEqual(failing.tree(), [
        "streamText (failed)",
        "  step 0 (failed)",
        "    chat mock-model-id (failed)"
      ])
    }).pipe(Effect.scoped, Effect.provide(Ai.layer)))

  it.effect("of a stream that nobody reads end with its scope", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      yield* Effect.scoped(
        Effect.withTracer(streamText({ model: streaming(streamsText("a")), prompt: "go" }), recorded.tracer)
      )
      assert.strictEqual(recorded.tree()[0], "streamText (interrupted)")
      assert.notInclude(recorded.tree().join("\n"), "open")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of an agent have its name, its model calls and its tools", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const agent = new ToolLoopAgent({
        id: "triage",
        model: scripted(calls(["label", { label: "bug" }]), says("done")),
        tools: yield* makeTools
      })
      yield* Effect.withTracer(runAgent(agent, { prompt: "go" }), recorded.tracer)
      assert.deepStrictEqual(recorded.tree(), [
        "invoke_agent triage",
        "  step 0",
        "    chat mock-model-id",
        "    execute_tool label",
        "      labelling",
        "  step 1",
        "    chat mock-model-id"
      ])
      assert.strictEqual(recorded.span("invoke_agent triage").attributes.get("gen_ai.agent.name"), "triage")
    }).pipe(Effect.provide(ledger)))

  it.effect("of functions without tools have the requests below them, as far as the AI SDK tells of them", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const model = new MockEmbeddingModelV4({
        maxEmbeddingsPerCall: 1,
        supportsParallelCalls: true,
        doEmbed: async () => ({ embeddings: [[1]], usage: { tokens: 3 }, warnings: [] })
      })
      const ranking = new MockRerankingModelV4({
        doRerank: async () => ({ ranking: [{ index: 0, relevanceScore: 1 }] })
      })
      const speech = new MockSpeechModelV4({
        provider: "openai.speech",
        doGenerate: async () => ({
          audio: new Uint8Array([1]),
          warnings: [],
          response: { timestamp: new Date(0), modelId: "mock" }
        })
      })
      yield* Effect.gen(function*() {
        yield* embedMany({ model, values: ["sun", "rain"] })
        yield* rerank({ model: ranking, query: "q", documents: ["d"] })
        yield* generateSpeech({ model: speech, text: "Hello." })
      }).pipe(Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(recorded.tree(), [
        "embedMany",
        "  embeddings mock-model-id",
        "  embeddings mock-model-id",
        "rerank",
        "  rerank mock-model-id",
        "generateSpeech"
      ])
      assert.deepStrictEqual(attributesOf(recorded.span("embedMany")), {
        "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "mock-model-id",
        "gen_ai.provider.name": "mock-provider",
        "gen_ai.usage.input_tokens": 6
      })
      assert.strictEqual(recorded.span("generateSpeech").attributes.get("gen_ai.provider.name"), "openai")
      assert.notInclude(recorded.text(), "Hello.")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("of an embedding that was repeated tell of the attempt that failed", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      let asked = 0
      const model = new MockEmbeddingModelV4({
        doEmbed: async () => {
          if (++asked === 1) throw busy()
          return { embeddings: [[1]], warnings: [] }
        }
      })
      yield* Effect.withTracer(embed({ model, value: "sun" }), recorded.tracer)
      assert.deepStrictEqual(recorded.tree(), [
        "embed",
        "  embeddings mock-model-id (failed)",
        "  embeddings mock-model-id"
      ])
    }).pipe(Effect.provide(Ai.layer)))
})
