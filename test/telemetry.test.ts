/** Spans and metrics of calls: what is seen of them, what never is, and that nothing is made where nobody looks. */
import { assert, describe, it } from "@effect/vitest"
import {
  APICallError,
  isStepCount,
  registerTelemetry,
  type Telemetry,
  tool as sdkTool,
  ToolLoopAgent,
  TypeValidationError
} from "ai"
import { MockEmbeddingModelV4, MockRerankingModelV4, MockSpeechModelV4 } from "ai/test"
import {
  Ai,
  AiTelemetry,
  defineEffectTool,
  EffectStore,
  embed,
  embedMany,
  generateSpeech,
  generateText,
  rerank,
  runAgent,
  streamText,
  tool,
  ToolContext
} from "chamvi-effect"
import {
  Context,
  Data,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Metric,
  Option,
  References,
  Schema,
  Stream,
  Tracer
} from "effect"
import { Telemetry as EffectTelemetry } from "effect/ai"
import { AsyncLocalStorage } from "node:async_hooks"
import { z } from "zod"
import { calls, says, scripted } from "./support/model.ts"
import { attributesOf, recordSpans } from "./support/spans.ts"
import { calls as streamsCalls, says as streamsText, streaming } from "./support/streamModel.ts"

const ledger = Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), EffectStore.layerMemory)

class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

const makeTools = Effect.gen(function*() {
  const add = yield* tool({
    inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    execute: ({ a, b }) => Effect.withSpan(Effect.succeed(a + b), "adding")
  })
  const label = yield* defineEffectTool({
    inputSchema: Schema.Struct({ label: Schema.String }),
    effectKey: (_, ctx) => `${ctx.run.runId}:label`,
    execute: () => Effect.withSpan(Effect.succeed("labelled"), "labelling")
  })
  const fail = yield* tool({
    inputSchema: Schema.Struct({}),
    execute: () => Effect.fail(new Broken({ message: "the door is locked" }))
  })
  return { add, label, fail }
})

const busy = () =>
  new APICallError({
    message: "busy",
    url: "https://api.example.com",
    requestBodyValues: { prompt: "a secret prompt" },
    responseHeaders: { "retry-after-ms": "0" },
    statusCode: 503
  })

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

describe("What is said", () => {
  const secrets = ["secret instructions", "secret prompt", "secret input", "secret output", "secret text"]
  const converse = (telemetry?: { readonly recordInputs?: boolean; readonly recordOutputs?: boolean }) =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const echo = yield* tool({
        inputSchema: Schema.Struct({ text: Schema.String }),
        execute: () => Effect.succeed("secret output")
      })
      const model = scripted(calls(["echo", { text: "secret input" }]), says("secret text"))
      yield* generateText({
        model,
        instructions: "secret instructions",
        prompt: "secret prompt",
        tools: { echo },
        stopWhen: isStepCount(2),
        ...telemetry === undefined ? {} : { telemetry }
      }).pipe(Effect.withTracer(recorded.tracer))
      const text = recorded.text()
      return secrets.filter((secret) => text.includes(secret))
    })

  it.effect("is in no span, unless it is asked for", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* converse(), [])
      assert.deepStrictEqual(yield* converse({ recordInputs: false, recordOutputs: false }), [])
      assert.deepStrictEqual(yield* converse({ recordOutputs: true }), ["secret output", "secret text"])
      assert.deepStrictEqual(yield* converse({ recordInputs: true, recordOutputs: true }), secrets)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is in no failure of a span: neither of the AI SDK's errors nor of values that do not fit a schema", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const odd = yield* tool({
        inputSchema: Schema.Struct({}),
        outputSchema: Schema.Struct({ n: Schema.Finite }),
        execute: () => Effect.succeed({ n: "secret output" } as never)
      })
      const invalid = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.flatMap(
            Schema.decodeUnknownEffect(Schema.Finite)("secret input"),
            () => Effect.succeed("never")
          )
      })
      const validation = scripted(() =>
        Promise.reject(new TypeValidationError({ value: "secret prompt", cause: new Error("secret prompt") }))
      )
      yield* Effect.gen(function*() {
        yield* generateText({
          model: scripted(calls(["odd", {}], ["invalid", {}])),
          prompt: "go",
          tools: { odd, invalid }
        })
        yield* Effect.flip(generateText({ model: validation, prompt: "go" }))
      }).pipe(Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(
        recorded.spans.flatMap(({ attributes }) => attributes.get("error.type") ?? []),
        ["ToolResultError", "SchemaError", "TypeValidationError", "TypeValidationError", "TypeValidationError"]
      )
      assert.notInclude(recorded.text(), "secret")
    }).pipe(Effect.provide(Ai.layer)))
})

describe("Where nobody looks", () => {
  it.effect("no span is made: without a tracer, with tracing off, or with telemetry off", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const parents: Array<unknown> = []
      const look = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.map(Effect.option(Effect.currentParentSpan), (span) => void parents.push(span._tag))
      })
      const seen: Array<string> = []
      const call = (isEnabled?: false) =>
        generateText({
          model: scripted(calls(["look", {}])),
          prompt: "go",
          tools: { look },
          telemetry: {
            integrations: { onStart: () => void seen.push("told") },
            ...isEnabled === false ? { isEnabled } : {}
          }
        })
      yield* call()
      assert.deepStrictEqual(seen, ["told"])
      yield* call().pipe(Effect.withTracer(recorded.tracer), Effect.provideService(References.TracerEnabled, false))
      yield* call(false).pipe(Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(recorded.tree(), [])
      assert.deepStrictEqual(parents, ["None", "None", "None"])
      assert.deepStrictEqual(seen, ["told", "told"])
    }).pipe(Effect.provide(Ai.layer)))
})

describe("Integrations of the AI SDK's telemetry", () => {
  const telling = (seen: Array<string>, name: string): Telemetry => ({
    onStart: () => void seen.push(`${name} start`),
    executeTool: ({ execute }) => {
      seen.push(`${name} tool`)
      return execute()
    },
    onEnd: () => void seen.push(`${name} end`)
  })

  it.effect("are still called beside our spans: the global ones, or those of the call", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const before = globalThis.AI_SDK_TELEMETRY_INTEGRATIONS
      globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = []
      registerTelemetry(telling(seen, "global"))
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          globalThis.AI_SDK_TELEMETRY_INTEGRATIONS = before
        })
      )
      const recorded = recordSpans()
      const tools = yield* makeTools
      const call = (integrations?: Telemetry) =>
        generateText({
          model: scripted(calls(["add", { a: 1, b: 2 }])),
          prompt: "go",
          tools,
          ...integrations === undefined ? {} : { telemetry: { integrations } }
        }).pipe(Effect.withTracer(recorded.tracer))
      yield* call()
      assert.deepStrictEqual(seen.splice(0), ["global start", "global tool", "global end"])
      yield* call(telling(seen, "own"))
      assert.deepStrictEqual(seen.splice(0), ["own start", "own tool", "own end"])
      assert.strictEqual(recorded.spans.filter(({ name }) => name === "adding").length, 2)
    }).pipe(Effect.scoped, Effect.provide(ledger)))
})

describe("Code that the AI SDK runs outside of any fiber", () => {
  it.effect("makes its spans below the call's with withCallSpan: in models, plain tools and embeddings", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const context = yield* Effect.context<never>()
      const run = <A>(effect: Effect.Effect<A>) =>
        Effect.runPromiseWith(Context.add(context, Tracer.Tracer, recorded.tracer))(AiTelemetry.withCallSpan(effect))
      const model = scripted(
        async () => {
          await run(Effect.withSpan(Effect.yieldNow, "http of the model"))
          return calls(["plain", {}])
        }
      )
      const plain = sdkTool({
        inputSchema: z.object({}),
        execute: async () => {
          await Promise.resolve()
          return run(Effect.withSpan(Effect.succeed("done"), "http of the tool"))
        }
      })
      const embedding = new MockEmbeddingModelV4({
        doEmbed: async () => {
          await run(Effect.withSpan(Effect.yieldNow, "http of the embedding"))
          return { embeddings: [[1]], warnings: [] }
        }
      })
      yield* Effect.gen(function*() {
        yield* generateText({ model, prompt: "go", tools: { plain } })
        yield* embed({ model: embedding, value: "sun" })
      }).pipe(Effect.withTracer(recorded.tracer))
      yield* Effect.promise(() => run(Effect.withSpan(Effect.void, "outside")))
      assert.deepStrictEqual(recorded.tree(), [
        "generateText",
        "  step 0",
        "    chat mock-model-id",
        "      http of the model",
        "    execute_tool plain",
        "      http of the tool",
        "embed",
        "  embeddings mock-model-id",
        "  http of the embedding",
        "outside"
      ])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("is in the context of a tracer that has one of its own, as that of OpenTelemetry", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const active = new AsyncLocalStorage<string>()
      const tracer = Tracer.make({
        span: (options) => recorded.tracer.span(options),
        context: (primitive, fiber) => {
          const { span } = fiber.cache
          const evaluate = () => primitive["~effect/Effect/evaluate"](fiber)
          return span?._tag === "Span" ? active.run(span.name, evaluate) : evaluate()
        }
      })
      const seen: Array<string | undefined> = []
      const model = scripted(async () => {
        await Promise.resolve()
        seen.push(active.getStore())
        return calls(["plain", {}])
      })
      const plain = sdkTool({
        inputSchema: z.object({}),
        execute: async () => {
          await Promise.resolve()
          seen.push(active.getStore())
          return "done"
        }
      })
      yield* Effect.withTracer(generateText({ model, prompt: "go", tools: { plain } }), tracer)
      assert.deepStrictEqual(seen, ["chat mock-model-id", "execute_tool plain"])
    }).pipe(Effect.provide(Ai.layer)))
})

describe("Metrics", () => {
  const count = (metric: typeof AiTelemetry.calls, attributes: Record<string, string>) =>
    Effect.map(Metric.value(Metric.withAttributes(metric, attributes)), (state) => Number(state.count))
  const durations = (metric: typeof AiTelemetry.duration, attributes: Record<string, string>) =>
    Effect.map(Metric.value(Metric.withAttributes(metric, attributes)), ({ count, max }) => [count, max > 0])
  const fresh = Effect.provideServiceEffect(Metric.MetricRegistry, Effect.sync(() => new Map()))

  it.effect("count calls and their time by function, model and outcome, without a tracer too", () =>
    Effect.gen(function*() {
      const model = "mock-model-id"
      yield* generateText({ model: scripted(says("hi")), prompt: "go" })
      yield* Effect.flip(generateText({ model: scripted(() => Promise.reject(new Error("no"))), prompt: "go" }))
      const asked = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(generateText({
        model: scripted(() => {
          Deferred.doneUnsafe(asked, Exit.void)
          return new Promise(() => undefined)
        }),
        prompt: "go"
      }))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      yield* Effect.scoped(
        Effect.flatMap(streamText({ model: streaming(streamsText("hi")), prompt: "go" }), (result) => result.text)
      )
      const outcomes = ["success", "failure", "interrupted"] as const
      const called = yield* Effect.forEach(
        outcomes,
        (outcome) => count(AiTelemetry.calls, { function: "generateText", model, outcome })
      )
      assert.deepStrictEqual(called, [1, 1, 1])
      assert.strictEqual(yield* count(AiTelemetry.calls, { function: "streamText", model, outcome: "success" }), 1)
      assert.strictEqual(
        (yield* durations(AiTelemetry.duration, { function: "generateText", model, outcome: "success" }))[0],
        1
      )
    }).pipe(Effect.provide(Ai.layer), fresh))

  it.effect("count tokens by model, and executions of tools by their outcome", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }], ["fail", {}]), says("done"))
      yield* generateText({ model, prompt: "go", tools: yield* makeTools, stopWhen: isStepCount(2) })
      const embedding = new MockEmbeddingModelV4({
        modelId: "tiny",
        doEmbed: async () => ({ embeddings: [[1]], usage: { tokens: 7 }, warnings: [] })
      })
      yield* embed({ model: embedding, value: "sun" })
      const counted = yield* Effect.all([
        count(AiTelemetry.tokens, { model: "mock-model-id", type: "input" }),
        count(AiTelemetry.tokens, { model: "mock-model-id", type: "output" }),
        count(AiTelemetry.tokens, { model: "tiny", type: "input" }),
        count(AiTelemetry.toolExecutions, { tool: "add", outcome: "success" }),
        count(AiTelemetry.toolExecutions, { tool: "fail", outcome: "failure" })
      ])
      assert.deepStrictEqual(counted, [2, 2, 7, 1, 1])
      assert.strictEqual((yield* durations(AiTelemetry.toolDuration, { tool: "add" }))[0], 1)
    }).pipe(Effect.provide(ledger), fresh))

  it.effect("count the tokens of the steps before a failure", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }]), () => Promise.reject(new Error("no")))
      yield* Effect.flip(
        generateText({ model, prompt: "go", tools: yield* makeTools, stopWhen: isStepCount(2) })
      )
      assert.strictEqual(yield* count(AiTelemetry.tokens, { model: "mock-model-id", type: "input" }), 1)
    }).pipe(Effect.provide(ledger), fresh))
})
