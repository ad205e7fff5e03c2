/**
 * What the engine costs: per step, against the same loop without it and against two bare activities of a workflow (the model
 * call and the tool call); and how many runs it gets done with 50 at once. The model answers at once; each step calls one tool.
 */
import { MockLanguageModelV4 } from "ai/test"
import { Ai, defineAgent, type EffectStore, Engine, generateText, tool } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { isStepCount } from "ai"
import { Context, Deferred, Effect, Layer, Redacted, Schema, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Port from "../src/engine/port.ts"
import { layerSingle } from "../src/engineSql/executions.ts"
import * as SqliteClient from "../src/SqliteClient.ts"
import { SqlClient } from "effect/sql"
import { type Case, measure, print } from "./harness.ts"
import { benchDatabase } from "./postgres.ts"

const steps = 10
const text = "x".repeat(200)
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined }
}

/** Calls one tool in each step but the last. */
const model = (steps: number) =>
  new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const step = prompt.filter(({ role }) => role === "assistant").length
      return {
        content: step < steps - 1
          ? [{ type: "tool-call", toolCallId: `call-${step}`, toolName: "look", input: JSON.stringify({ text }) }]
          : [{ type: "text", text }],
        finishReason: { unified: step < steps - 1 ? "tool-calls" : "stop", raw: undefined },
        usage,
        warnings: []
      }
    }
  })

const look = tool({
  inputSchema: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed({ ok: true, text })
})

const long = defineAgent({ name: "long", model: model(steps), tools: { look } })
const short = defineAgent({ name: "short", model: model(3), tools: { look } })
const prompt = "Go."

let unique = 0

const engineOn = (layer: Layer.Layer<Engine | EffectStore, unknown>) =>
  Effect.map(
    Layer.build(Layer.mergeAll(long.layer, short.layer).pipe(Layer.provideMerge(layer))),
    (context) => Effect.runPromiseWith(context)
  )

/** A workflow of activities that answer at once, twice as many as there are steps. */
const activitiesOn = (layer: Layer.Layer<Port.Executions, unknown>) =>
  Effect.gen(function*() {
    const executions = Context.get(yield* Layer.build(layer), Port.Executions)
    const ended = new Map<string, Deferred.Deferred<void>>()
    yield* executions.register("bare", ({ runId }, execution) =>
      Effect.forEach(
        Array.from({ length: 2 * steps - 1 }, (_, i) => i),
        (i) => execution.activity(`activity-${i}`, 1, Effect.succeed(JSON.stringify({ ok: true, text }))),
        { discard: true }
      ).pipe(Effect.andThen(Deferred.succeed(ended.get(runId)!, undefined)), Effect.asVoid))
    return () =>
      Effect.runPromise(Effect.gen(function*() {
        const runId = `bare-${++unique}`
        const deferred = yield* Deferred.make<void>()
        ended.set(runId, deferred)
        yield* executions.start({ agent: "bare", runId, incarnation: "", input: text })
        yield* Deferred.await(deferred)
        ended.delete(runId)
      }))
  })

const sqliteActivities = (filename: string, mode: "fast" | "durable") =>
  layerSingle({ drain: "1 second" }).pipe(
    Layer.provide(Layer.effect(SqlClient.SqlClient, SqliteClient.make({ filename, mode })))
  )

export const benchEngine = (rounds: number): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "chamvi-bench-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const file = (name: string) => join(folder, `${name}.sqlite`)
    const engines = {
      "memory": yield* engineOn(Engine.layerMemory()),
      "SQLite fast": yield* engineOn(SqliteEngine.layer({ filename: file("fast"), mode: "fast", drain: 0 })),
      "SQLite durable": yield* engineOn(SqliteEngine.layer({ filename: file("durable"), drain: 0 })),
      "Postgres": yield* engineOn(ClusterEngine.layer({ url: Redacted.make(yield* benchDatabase) }))
    }
    const activities = {
      "memory": yield* activitiesOn(Port.layerMemory),
      "SQLite fast": yield* activitiesOn(sqliteActivities(file("fast-bare"), "fast")),
      "SQLite durable": yield* activitiesOn(sqliteActivities(file("durable-bare"), "durable"))
    }
    const tools = { look: yield* look }
    const loop = () =>
      Effect.runPromise(Effect.provide(
        generateText({ model: model(steps), prompt, tools, stopWhen: isStepCount(20) }),
        Ai.layer
      ))
    const run = (name: keyof typeof engines, agent: typeof long | typeof short) => () =>
      engines[name](Engine.run(agent as typeof long, { runId: `run-${++unique}`, prompt }))
    const many = (name: keyof typeof engines) => () => Promise.all(Array.from({ length: 50 }, run(name, short)))
    const names = Object.keys(engines) as ReadonlyArray<keyof typeof engines>

    const perStep: ReadonlyArray<Case> = [
      { name: "the loop without an engine", operations: steps, run: loop },
      ...Object.entries(activities).map(([name, run]): Case => ({
        name: `two activities, ${name}`,
        operations: steps,
        run
      })),
      ...names.map((name): Case => ({ name: `engine, ${name}`, operations: steps, run: run(name, long) }))
    ]
    const measured = yield* Effect.promise(() => measure(perStep, rounds))
    const of = (name: string) => measured.find((row) => row.name === name)
    print(
      `The engine, per step of ${steps} (a model call and a tool call)`,
      measured.map((row) => ({
        ...row,
        base: row.name.startsWith("engine")
          ? of(row.name.replace("engine", "two activities")) ?? measured[0]
          : row === measured[0]
          ? undefined
          : measured[0]
      }))
    )

    const perRun = yield* Effect.promise(() =>
      measure(
        names.map((name) => ({ name: `50 runs at once, ${name}`, operations: 50, run: many(name) })),
        Math.ceil(rounds / 4)
      )
    )
    print(
      "The engine, runs of 3 steps",
      perRun.map((row) => ({
        ...row,
        name: `${row.name}: ${Math.round(1_000_000 / row.micros)} runs/s`,
        base: undefined
      }))
    )
  })
