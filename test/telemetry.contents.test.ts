/** What telemetry never tells, where it is silent, and whom it tells beside us. */
import { assert, describe, it } from "@effect/vitest"
import { isStepCount, registerTelemetry, type Telemetry, tool as sdkTool, TypeValidationError } from "ai"
import { MockEmbeddingModelV4 } from "ai/test"
import { Ai, AiTelemetry, embed, generateText, tool } from "chamvi-effect"
import { Context, Effect, Option, References, Schema, Tracer } from "effect"
import { AsyncLocalStorage } from "node:async_hooks"
import { z } from "zod"
import { calls, says, scripted } from "./support/model.ts"
import { ledger, makeTools } from "./support/observed.ts"
import { recordSpans } from "./support/spans.ts"

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
        execute: () => Effect.as(Schema.decodeUnknownEffect(Schema.Finite)("secret input"), "never")
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
        execute: () =>
          Effect.map(Effect.option(Effect.currentSpan), (span) => void parents.push(Option.getOrUndefined(span)?.name))
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
      // Effect's default tracer makes spans that nobody sees
      yield* Effect.withSpan(call(), "open")
      assert.deepStrictEqual(seen, ["told", "told"])
      yield* call().pipe(Effect.withTracer(recorded.tracer), Effect.provideService(References.TracerEnabled, false))
      yield* call(false).pipe(Effect.withTracer(recorded.tracer))
      assert.deepStrictEqual(recorded.tree(), [])
      assert.deepStrictEqual(parents, [undefined, "open", undefined, undefined])
      assert.deepStrictEqual(seen, ["told", "told", "told"])
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
      const context = yield* Effect.context()
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
