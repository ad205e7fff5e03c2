/** Trouble that is none of a call's own: a run ends with it, the model never reads it, and a retry goes on once it is over. */
import { describe, expect, it } from "@effect/vitest"
import { applyOnce, defineAgent, defineEffectTool, EffectStore, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Layer, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { make } from "../../src/engine/make.ts"
import { type Execution, Executions, layerMemory } from "../../src/engine/port.ts"
import * as RunIndex from "../../src/engine/RunIndex.ts"
import * as RunParts from "../../src/engine/RunParts.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const inputSchema = Schema.Struct({})

/** Runs statements beside the engine. */
const sqlite = (filename: string, use: (database: DatabaseSync) => void) =>
  Effect.sync(() => {
    const database = new DatabaseSync(filename)
    use(database)
    database.close()
  })

/** An engine in memory whose executions are seen through `decorate`. */
const engineOver = (decorate: (execution: Execution) => Execution) =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const index = yield* RunIndex.makeMemory
      const parts = yield* RunParts.makeMemory
      return yield* make({ index, parts, pollInterval: undefined })
    })
  ).pipe(
    Layer.provide(
      Layer.effect(
        Executions,
        Effect.map(Executions, (executions) => ({
          ...executions,
          register: (agent, run) => executions.register(agent, (start, execution) => run(start, decorate(execution)))
        }))
      ).pipe(Layer.provide(layerMemory))
    ),
    Layer.provide(KeyValueStore.layerMemory),
    Layer.provideMerge(EffectStore.layerMemory)
  )

describe("a journal that is broken", () => {
  for (const part of ["model", "tool", "rules"] as const) {
    it.live(`ends the run where it dies of its storage in a ${part}, and a retry goes on`, () => {
      let left = 1
      let applied = 0
      const model = scripted(calls(["pay", {}]), says("Paid."))
      const pay = tool({ inputSchema, needsApproval: () => false, execute: () => Effect.sync(() => ++applied) })
      const agent = defineAgent({ name: "payer", model, tools: { pay } })
      const engine = engineOver((execution) => ({
        ...execution,
        activity: (name, attempt, body) =>
          name.includes(`/${part}`) && left-- > 0
            ? Effect.die(new Error("the mailbox is full"))
            : execution.activity(name, attempt, body)
      }))
      return Effect.gen(function*() {
        const engine = yield* Engine
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
          _tag: "RunFailedError",
          failure: { message: "the mailbox is full", step: 0 }
        })
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
        expect([applied, model.doGenerateCalls.length, readBy(model)]).toEqual([1, 2, [1]])
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
    })
  }

  it.live("ends the run where a part of a result is missing, and a retry goes on when it is there again", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const large = `data:${"x".repeat(40_000)}`
      let got = 0
      let paid = 0
      const get = tool({ inputSchema, execute: () => Effect.sync(() => (got++, large)) })
      const pay = tool({ inputSchema, needsApproval: true, execute: () => Effect.sync(() => ++paid) })
      const model = scripted(calls(["get", {}, "a"], ["pay", {}, "b"]), says("Paid."))
      const agent = defineAgent({ name: "payer", model, tools: { get, pay } })
      const life = <A, E>(use: (engine: Engine["Service"]) => Effect.Effect<A, E>) =>
        Effect.provide(
          Effect.flatMap(Engine, use),
          agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
        )
      yield* life((engine) => Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." })))
      yield* sqlite(filename, (database) => {
        database.exec("CREATE TABLE kept AS SELECT * FROM chamvi_key_values")
        database.exec("DELETE FROM chamvi_key_values")
      })
      const error = yield* life((engine) =>
        Effect.andThen(
          engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "b" })),
          Effect.flip(engine.resume(agent, "1"))
        )
      )
      expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "EngineStoreError", step: 0 } })
      expect(error.message).toContain("missing")
      expect(model.doGenerateCalls.length).toBe(1)
      yield* sqlite(
        filename,
        (database) => database.exec("INSERT OR REPLACE INTO chamvi_key_values SELECT * FROM kept")
      )
      const result = yield* life((engine) => Effect.andThen(engine.retry("1"), engine.resume(agent, "1")))
      expect(result.text).toBe("Paid.")
      expect([got, paid, readBy(model)]).toEqual([1, 1, [large, 1]])
    }))
})

describe("a tool that is made wrong", () => {
  it.live("ends the run, and a retry goes on when it is made right", () => {
    let wrong = true
    const model = scripted(calls(["get", {}]), says("Got."))
    const get = {
      ...Effect.runSync(tool({ inputSchema, outputSchema: Schema.Unknown, execute: () => Effect.succeed(0) })),
      // what is inside of a Promise would never run
      execute: () => Promise.resolve(wrong ? Effect.succeed(1) : 1)
    }
    const agent = defineAgent({ name: "wrong", model, tools: { get } })
    return Effect.gen(function*() {
      const engine = yield* Engine
      const error = yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Get." }))
      expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "TypeError", step: 0 } })
      wrong = false
      yield* engine.retry("1")
      expect((yield* engine.resume(agent, "1")).text).toBe("Got.")
      expect([model.doGenerateCalls.length, readBy(model)]).toEqual([2, [1]])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(Engine.layerMemory()))))
  })
})

describe("a ledger that was changed by hand", () => {
  it.live("ends the run that comes upon a record which cannot be read, and a retry goes on when it is repaired", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      let applied = 0
      const pay = defineEffectTool({
        inputSchema,
        outputSchema: Schema.Number,
        effectKey: () => "pay",
        execute: () => Effect.sync(() => ++applied)
      })
      const model = scripted(calls(["pay", {}]), says("Paid."))
      const agent = defineAgent({ name: "payer", model, tools: { pay } })
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* applyOnce({ key: "pay", tool: "pay", execute: () => Effect.sync(() => ++applied) })
        yield* sqlite(filename, (database) => {
          database.exec("CREATE TABLE kept AS SELECT * FROM chamvi_effect")
          database.exec("UPDATE chamvi_effect SET result = '{'")
        })
        expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
          _tag: "RunFailedError",
          failure: { name: "EffectRecordError", step: 0 }
        })
        expect(model.doGenerateCalls.length).toBe(1)
        yield* sqlite(
          filename,
          (database) => database.exec("UPDATE chamvi_effect SET result = (SELECT result FROM kept)")
        )
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
        expect([applied, readBy(model)]).toEqual([1, [1]])
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))))
    }))
})

describe.each(engines)("any JSON, $where", ({ withAgents }) => {
  it.live("is a result that the model reads as it is", () => {
    const value = { $: "blob", v: 7 }
    const model = scripted(calls(["get", {}]), says("Got."))
    const get = tool({ inputSchema, execute: () => Effect.succeed(value) })
    const agent = defineAgent({ name: "any", model, tools: { get } })
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* engine.run(agent, { runId: "1", prompt: "Get." })
        expect(readBy(model)).toEqual([value])
      })
    )
  })
})
