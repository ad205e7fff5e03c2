/** Metrics of calls, tools and tokens. */
import { assert, describe, it } from "@effect/vitest"
import { isStepCount } from "ai"
import { MockEmbeddingModelV4 } from "ai/test"
import { Ai, AiTelemetry, embed, generateText, streamText } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Metric } from "effect"
import { calls, says, scripted } from "./support/model.ts"
import { ledger, makeTools } from "./support/observed.ts"
import { says as streamsText, streaming } from "./support/streamModel.ts"

describe("Metrics", () => {
  const count = (metric: typeof AiTelemetry.calls, attributes: Record<string, string>) =>
    Effect.map(Metric.value(Metric.withAttributes(metric, attributes)), ({ count }) => count)
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
