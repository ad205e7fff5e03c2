import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Deferred, Effect, Layer, Logger, Schema } from "effect"
import { DatabaseSync } from "node:sqlite"
import { join } from "node:path"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, says, scripted } from "../support/model.ts"

const completed = {
  text: "Charged.",
  model: ["step 0", "step 1"],
  remote: ["run-1:charge:7"],
  looks: ["look"]
}

describe("a process that is killed", () => {
  for (
    const point of [
      "model 0",
      "tool",
      "before the effect",
      "after the effect",
      "after the record",
      "model 1"
    ]
  ) {
    it.live(
      `at "${point}" leaves a run that the next process completes, with each effect and each model call once`,
      () =>
        Effect.gen(function*() {
          const directory = yield* temporaryDirectory
          const first = yield* start("engineWorker.ts", directory, point, "first")
          yield* first.ended
          const second = yield* start("engineWorker.ts", directory, point, "second")
          expect(yield* second.line).toEqual(completed)
        }),
      { timeout: 60_000 }
    )
  }

  it.live(
    "while the run waits for a person leaves it waiting, and an answer in the next process completes it",
    () =>
      Effect.gen(function*() {
        const directory = yield* temporaryDirectory
        const first = yield* start("engineWorker.ts", directory, "waiting", "first")
        expect(yield* first.line).toBe("Failure")
        yield* first.kill("SIGKILL")
        yield* first.ended
        const second = yield* start("engineWorker.ts", directory, "waiting", "second")
        expect(yield* second.line).toEqual(completed)
      }),
    { timeout: 60_000 }
  )
})

describe("SqliteEngine", () => {
  const add = tool({
    inputSchema: Schema.Struct({ a: Schema.Finite }),
    execute: ({ a }) => Effect.succeed(a + 1)
  })

  it.live("keeps runs, and answers them from the file when its layers are built again", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const model = scripted(calls(["add", { a: 1 }]), says("2"))
      const agent = defineAgent({ name: "adder", model, tools: { add } })
      const run = Effect.flatMap(Engine, (engine) => engine.run(agent, { runId: "1", prompt: "1 + 1?" })).pipe(
        Effect.provide(agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename }))))
      )
      const first = yield* run
      expect(yield* run).toEqual(first)
      expect(model.doGenerateCalls.length).toBe(2)
    }))

  it.live("lets one engine use a file, and readers beside it", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const layer = SqliteEngine.layer({ filename })
      const open = Effect.scoped(Layer.build(Layer.fresh(layer)))
      yield* Effect.gen(function*() {
        const error = yield* Effect.flip(open)
        expect(error).toMatchObject({ _tag: "EngineLockedError", filename })
        const reader = new DatabaseSync(filename, { readOnly: true })
        expect(reader.prepare("SELECT count(*) AS runs FROM chamvi_runs").get()).toEqual({ runs: 0 })
        reader.close()
      }).pipe(Effect.provide(layer))
      yield* open
    }))

  it.live("forgets pruned runs, and their ids are free", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const model = scripted(says("Hi."))
      const agent = defineAgent({ name: "greeter", model })
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* engine.run(agent, { runId: "1", prompt: "Hello?" })
        expect(yield* engine.prune({ olderThan: -1 })).toBe(1)
        const reader = new DatabaseSync(filename, { readOnly: true })
        expect(reader.prepare("SELECT count(*) AS rows FROM chamvi_engine_messages").get()).toEqual({ rows: 0 })
        expect(reader.prepare("SELECT count(*) AS rows FROM chamvi_engine_replies").get()).toEqual({ rows: 0 })
        reader.close()
        yield* engine.run(agent, { runId: "1", prompt: "Who?" })
        expect(model.doGenerateCalls.length).toBe(2)
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename })))))
    }))

  it.live("closes at once, and without a word, where no run executes, whatever waits", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const ask = tool({ inputSchema: Schema.Struct({}), needsApproval: true, execute: () => Effect.succeed("asked") })
      const asks = defineAgent({ name: "asks", model: scripted(calls(["ask", {}])), tools: { ask } })
      const greets = defineAgent({ name: "greets", model: scripted(says("Hi.")) })
      const fails = defineAgent({
        name: "fails",
        model: scripted(() => Promise.reject(new Error("no"))),
        maxRetries: 0
      })
      const words: Array<unknown> = []
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        expect((yield* engine.run(greets, { runId: "1", prompt: "Hello?" })).text).toBe("Hi.")
        yield* Effect.flip(engine.run(asks, { runId: "2", prompt: "Ask." }))
        yield* Effect.flip(engine.run(fails, { runId: "3", prompt: "Fail." }))
        expect(words.splice(0).map(String)).toEqual([
          expect.stringContaining("Run 3 of agent fails failed in step 0 (AiError)")
        ])
      }).pipe(
        Effect.provide(
          Layer.mergeAll(asks.layer, greets.layer, fails.layer).pipe(
            // to wait for it would take longer than the test may
            Layer.provideMerge(SqliteEngine.layer({ filename, drain: "1 hour" })),
            Layer.provideMerge(Logger.layer([Logger.make(({ message }) => words.push(message))]))
          )
        )
      )
      expect(words).toEqual([])
    }), { timeout: 60_000 })

  it.live("leaves nothing of a pruned run but its effects, which a run of the same id does not apply again", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const inputSchema = Schema.Struct({})
      let charged = 0
      const charge = defineEffectTool({
        inputSchema,
        execute: (_, { context }) =>
          Effect.gen(function*() {
            yield* context.state.set("charged", Schema.Boolean, true)
            yield* context.artifacts.put("receipt", "paid", "text/plain")
            return ++charged
          })
      })
      const ask = tool({ inputSchema, needsApproval: true, execute: () => Effect.succeed("x".repeat(20_000)) })
      const model = scripted(calls(["charge", {}], ["ask", {}]), says("Done."), calls(["charge", {}]), says("Again."))
      const agent = defineAgent({ name: "charger", model, tools: { charge, ask } })
      const rows = Effect.acquireUseRelease(
        Effect.sync(() => new DatabaseSync(filename, { readOnly: true })),
        (reader) =>
          Effect.sync(() =>
            Object.fromEntries(
              reader.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'chamvi%'").all().map(
                ({ name }) => [name, reader.prepare(`SELECT count(*) AS rows FROM "${String(name)}"`).get()?.["rows"]]
              )
            )
          ),
        (reader) => Effect.sync(() => reader.close())
      )
      const file = { type: "file", mediaType: "text/plain", data: new Uint8Array(20_000) } as const
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        const before = yield* rows
        const run = { runId: "1", prompt: [{ role: "user" as const, content: [file] }] }
        yield* Effect.flip(engine.run(agent, run))
        yield* engine.approve("1", Engine.approvalId({ step: 0, toolCallId: "call-2" }))
        expect((yield* engine.resume(agent, "1")).text).toBe("Done.")
        const kept = yield* rows
        for (const table of ["chamvi_runs", "chamvi_key_values", "chamvi_engine_messages", "chamvi_engine_replies"]) {
          expect([table, kept[table]]).not.toEqual([table, before[table]])
        }
        expect(yield* engine.prune({ olderThan: -1 })).toBe(1)
        expect(yield* rows).toEqual({ ...before, chamvi_effect: 1 })
        expect((yield* engine.run(agent, run)).text).toBe("Again.")
        expect(charged).toBe(1)
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))))
    }))

  it.live("interrupts what runs when its layers close, and goes on when they are built again", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const reached = yield* Deferred.make<void>()
      const events: Array<string> = []
      const charge = defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.gen(function*() {
            if (events.push("called") > 1) return "charged"
            yield* Deferred.succeed(reached, undefined)
            return yield* Effect.never
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => events.push("finalized"))))
      })
      const model = scripted(calls(["charge", {}]), says("Charged."))
      const agent = defineAgent({ name: "charger", model, tools: { charge } })
      const layer = () => agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
      yield* Effect.gen(function*() {
        yield* (yield* Engine).start(agent, { runId: "1", prompt: "Charge." })
        yield* Deferred.await(reached)
      }).pipe(Effect.provide(layer()))
      expect(events).toEqual(["called", "finalized"])
      const result = yield* Effect.flatMap(Engine, (engine) => engine.resume(agent, "1")).pipe(Effect.provide(layer()))
      expect(result.text).toBe("Charged.")
      expect(events).toEqual(["called", "finalized", "called"])
      expect(model.doGenerateCalls.length).toBe(2)
    }))

  it.live("keeps nothing of a model call that is aborted when its layers close, and makes it again", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const reached = yield* Deferred.make<void>()
      const model = scripted(
        // as providers do: the request fails with the reason of its signal
        ({ abortSignal }) =>
          new Promise((_, reject) => {
            abortSignal?.addEventListener("abort", () => reject(abortSignal.reason))
            Deferred.doneUnsafe(reached, Effect.void)
          }),
        says("Hello!")
      )
      const agent = defineAgent({ name: "greeter", model })
      const layer = () => agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
      yield* Effect.gen(function*() {
        yield* (yield* Engine).start(agent, { runId: "1", prompt: "Say hello." })
        yield* Deferred.await(reached)
      }).pipe(Effect.provide(layer()))
      const result = yield* Effect.flatMap(Engine, (engine) => engine.resume(agent, "1")).pipe(Effect.provide(layer()))
      expect(result.text).toBe("Hello!")
    }))

  it.live("retries and cancels as the engine in memory does", () =>
    Effect.gen(function*() {
      let broken = true
      const model = scripted(
        calls(["add", { a: 1 }]),
        () => broken ? Promise.reject(new Error("no credit")) : Promise.resolve(says("2"))
      )
      const agent = defineAgent({ name: "adder", model, tools: { add } })
      const slow = defineAgent({ name: "slow", model: scripted(() => new Promise(() => {})) })
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "1 + 1?" }))
        broken = false
        yield* engine.retry("1")
        expect((yield* engine.resume(agent, "1")).text).toBe("2")
        expect(model.doGenerateCalls.length).toBe(3)
        yield* engine.start(slow, { runId: "2", prompt: "Think." })
        yield* engine.cancel("2")
        expect(yield* engine.get("2")).toMatchObject({ status: "cancelled" })
      }).pipe(Effect.provide(
        agent.layer.pipe(
          Layer.merge(slow.layer),
          Layer.provideMerge(SqliteEngine.layer({ filename: ":memory:" }))
        )
      ))
    }))
})
