import { describe, expect, it } from "@effect/vitest"
import { AiTelemetry, defineAgent, defineEffectTool, Engine, EngineTelemetry, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { APICallError } from "ai"
import { Deferred, Effect, Layer, Logger, Metric, References, Schema, Tracer } from "effect"
import { join } from "node:path"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, says, scripted } from "../support/model.ts"
import { attributesOf, recordSpans } from "../support/spans.ts"
import { engines } from "./support.ts"

const inputSchema = Schema.Struct({})

/** An agent that charges, asks a person, and says so. */
const setup = () => {
  const charge = defineEffectTool({
    inputSchema,
    execute: () => Effect.withSpan(Effect.succeed("charged"), "charging")
  })
  const ask = tool({ inputSchema, needsApproval: true, execute: () => Effect.succeed("asked") })
  const model = scripted(calls(["charge", {}], ["ask", {}]), says("Done."))
  return { agent: defineAgent({ name: "charger", model, tools: { charge, ask } }), model }
}

const approvalOfAsk = Engine.approvalId({ step: 0, toolCallId: "call-2" })

/** What a metric says of the given attributes. */
const counted = (metric: Metric.Metric<number, { readonly count: number }>, attributes: Record<string, string>) =>
  Effect.map(Metric.value(Metric.withAttributes(metric, attributes)), ({ count }) => count)

describe("the spans of a run", () => {
  it.live(
    "are below the span that started it, in every process that works on it, and tell what was replayed",
    () =>
      Effect.gen(function*() {
        const filename = join(yield* temporaryDirectory, "engine.sqlite")
        const { agent } = setup()
        const engine = () => agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
        const first = recordSpans()
        yield* Effect.flip(Effect.flatMap(Engine, (engine) => engine.run(agent, { runId: "run-1", prompt: "Charge." })))
          .pipe(
            Effect.withSpan("request"),
            Effect.provide(engine()),
            Effect.provideService(Tracer.Tracer, first.tracer)
          )
        const request = first.span("request")
        const run = first.span("run charger")
        expect(run).toMatchObject({ traceId: request.traceId, kind: "consumer" })
        expect(run.parent).toMatchObject({ value: { spanId: request.spanId } })
        expect(attributesOf(run)).toMatchObject({
          "chamvi.run.id": "run-1",
          "gen_ai.agent.name": "charger",
          "chamvi.run.status": "parked"
        })
        for (
          const name of ["invoke_agent charger", "step 0", "chat mock-model-id", "execute_tool charge", "charging"]
        ) {
          expect(first.span(name).traceId).toBe(request.traceId)
        }
        expect(attributesOf(first.span("execute_tool charge"))).not.toHaveProperty("chamvi.replayed")

        const second = recordSpans()
        yield* Effect.gen(function*() {
          const engine = yield* Engine
          yield* engine.approve("run-1", approvalOfAsk)
          yield* engine.resume(agent, "run-1")
        }).pipe(
          Effect.withSpan("approval"),
          Effect.provide(engine()),
          Effect.provideService(Tracer.Tracer, second.tracer)
        )
        const resumed = second.span("run charger")
        expect(resumed.traceId).toBe(request.traceId)
        expect(resumed.parent).toMatchObject({ value: { spanId: request.spanId } })
        expect(attributesOf(resumed)).toMatchObject({ "chamvi.run.id": "run-1", "chamvi.run.status": "completed" })
        const replayed = second.spans
          .filter((span) => span.attributes.get("chamvi.replayed") === true)
          .map(({ name }) => name)
        expect(replayed).toEqual(["chat mock-model-id", "execute_tool charge"])
        expect(second.spans.filter(({ name }) => name.startsWith("chat")).length).toBe(2)
        expect(second.spans.filter(({ name }) => name === "charging")).toEqual([])
      }),
    { timeout: 60_000 }
  )

  it.live("name what a run failed with, and lines of its log name the run", () =>
    Effect.gen(function*() {
      const recorded = recordSpans()
      const annotations: Array<unknown> = []
      const note = tool({ inputSchema, execute: () => Effect.as(Effect.logInfo("noted"), "noted") })
      const model = scripted(calls(["note", {}]), () => Promise.reject(new Error("no credit")))
      const agent = defineAgent({ name: "fails", model, tools: { note }, maxRetries: 0 })
      const logger = Logger.make(({ fiber, message }) => {
        if (String(message) === "noted") annotations.push(fiber.getRef(References.CurrentLogAnnotations))
      })
      yield* Effect.flip(Effect.flatMap(Engine, (engine) => engine.run(agent, { runId: "1", prompt: "Note." }))).pipe(
        Effect.provide(agent.layer.pipe(Layer.provideMerge(Engine.layerMemory()))),
        Effect.provideService(Tracer.Tracer, recorded.tracer),
        Effect.provide(Logger.layer([logger]))
      )
      expect(attributesOf(recorded.span("run fails"))).toMatchObject({
        "chamvi.run.status": "failed",
        "error.type": "AiError"
      })
      expect(annotations).toMatchObject([{ run: "1", agent: "fails" }])
    }))
})

describe.each(engines)("EngineTelemetry, $where", ({ withAgents }) => {
  it.live("counts runs, steps, and calls by where their answer is from; tokens and tools of a replay count once", () =>
    Effect.gen(function*() {
      const { agent } = setup()
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Charge." }))
          yield* engine.approve("1", approvalOfAsk)
          yield* engine.resume(agent, "1")
          yield* engine.run(agent, { runId: "1", prompt: "Charge." })
        })
      )
      const of = { agent: "charger" }
      expect(yield* counted(EngineTelemetry.started, of)).toBe(1)
      expect(yield* counted(EngineTelemetry.ended, { ...of, status: "completed" })).toBe(1)
      expect(yield* counted(EngineTelemetry.steps, of)).toBe(2)
      const from = (kind: string, from: string) => counted(EngineTelemetry.activities, { ...of, kind, from })
      expect([yield* from("model", "execution"), yield* from("model", "storage")]).toEqual([2, 1])
      expect([yield* from("tool", "execution"), yield* from("tool", "storage")]).toEqual([2, 1])
      expect(yield* counted(AiTelemetry.tokens, { model: "mock-model-id", type: "input" })).toBe(2)
      expect(yield* counted(AiTelemetry.toolExecutions, { tool: "charge", outcome: "success" })).toBe(1)
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())))

  it.live(
    "tells how many runs execute, how long others waited, and what was tried again",
    () =>
      Effect.gen(function*() {
        const reached = yield* Deferred.make<void>()
        const open = yield* Deferred.make<void>()
        const wait = tool({
          inputSchema,
          execute: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.as(Deferred.await(open), "waited"))
        })
        const waits = defineAgent({
          name: "waits",
          model: scripted(calls(["wait", {}]), says("Done.")),
          tools: { wait }
        })
        const busy = new APICallError({
          message: "busy",
          url: "https://example.com",
          requestBodyValues: {},
          isRetryable: true
        })
        const flaky = defineAgent({
          name: "flaky",
          model: scripted(() => Promise.reject(busy), () => Promise.reject(new Error("no")), says("Done."))
        })
        const executing = (agent: string) =>
          Effect.map(
            Metric.value(Metric.withAttributes(EngineTelemetry.executing, { agent })),
            ({ value }) => value
          )
        yield* withAgents([waits, flaky], { concurrency: 1 })((engine) =>
          Effect.gen(function*() {
            yield* engine.start(waits, { runId: "1", prompt: "Wait." })
            yield* Deferred.await(reached)
            yield* engine.start(flaky, { runId: "2", prompt: "Hello?" })
            expect([yield* executing("waits"), yield* executing("flaky")]).toEqual([1, 0])
            yield* Effect.sleep(50)
            yield* Deferred.succeed(open, undefined)
            yield* engine.resume(waits, "1")
            yield* Effect.flip(engine.resume(flaky, "2"))
            yield* engine.retry("2")
            yield* engine.resume(flaky, "2")
          })
        )
        yield* Effect.repeat(Effect.delay(Effect.all([executing("waits"), executing("flaky")]), 5), {
          until: ([waits, flaky]) => waits === 0 && flaky === 0
        })
        const waiting = yield* Metric.value(Metric.withAttributes(EngineTelemetry.waiting, { agent: "flaky" }))
        expect(waiting.max).toBeGreaterThan(0.04)
        expect(yield* counted(EngineTelemetry.ended, { agent: "flaky", status: "failed" })).toBe(1)
        expect(yield* counted(EngineTelemetry.retries, { agent: "flaky", of: "model" })).toBe(1)
        expect(yield* counted(EngineTelemetry.retries, { agent: "flaky", of: "run" })).toBe(1)
      }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
    { timeout: 60_000 }
  )
})
