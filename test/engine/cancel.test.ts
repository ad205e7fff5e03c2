import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, Engine, tool } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

describe.each(engines)("Engine.cancel $where", ({ withAgents }) => {
  it.live("interrupts the tool that runs, waits for its finalizers, and ends the run as cancelled", () =>
    Effect.gen(function*() {
      const reached = yield* Deferred.make<void>()
      const events: Array<string> = []
      const wait = defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Deferred.succeed(reached, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => events.push("finalized")))
          )
      })
      const model = scripted(calls(["wait", {}]), says("Never."))
      const agent = defineAgent({ name: "waits", model, tools: { wait } })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const run = yield* Effect.forkChild(Effect.flip(engine.run(agent, { runId: "1", prompt: "Wait." })))
          yield* Deferred.await(reached)
          yield* engine.cancel("1")
          expect(events).toEqual(["finalized"])
          const { keysInDoubt: [{ key } = { key: "" }] } = yield* engine.get("1")
          const error = yield* Fiber.join(run)
          expect(error).toMatchObject({ _tag: "RunCancelledError", keysInDoubt: [key] })
          expect(error.message).toContain("in doubt")
          expect(yield* engine.list()).toMatchObject([{ runId: "1", keysInDoubt: [{ key, doubt: "inDoubt" }] }])
          const info = yield* engine.get("1")
          expect(info).toMatchObject({ status: "cancelled", cancelling: false })
          expect(info.keysInDoubt.length).toBe(1)
          expect(model.doGenerateCalls.length).toBe(1)
          // it stays so
          expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Wait." }))).toMatchObject({
            _tag: "RunCancelledError"
          })
        })
      )
    }))

  it.live("aborts the model call", () =>
    Effect.gen(function*() {
      const reached = yield* Deferred.make<void>()
      let aborted = false
      const model = scripted(({ abortSignal }) =>
        new Promise((_, reject) => {
          abortSignal?.addEventListener("abort", () => {
            aborted = true
            reject(abortSignal.reason)
          })
          Deferred.doneUnsafe(reached, Effect.void)
        })
      )
      const agent = defineAgent({ name: "slow", model })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* engine.start(agent, { runId: "1", prompt: "Think." })
          yield* Deferred.await(reached)
          yield* engine.cancel("1")
          expect(aborted).toBe(true)
          expect(yield* engine.get("1")).toMatchObject({ status: "cancelled" })
        })
      )
    }))

  it.live("ends a run that waits for a person, that has failed, or that waits for its turn", () =>
    Effect.gen(function*() {
      const pay = tool({ inputSchema: Schema.Struct({}), needsApproval: true, execute: () => Effect.succeed(1) })
      const asks = defineAgent({ name: "asks", model: scripted(calls(["pay", {}])), tools: { pay } })
      const fails = defineAgent({ name: "fails", model: scripted(() => Promise.reject(new Error("no"))) })
      const slow = defineAgent({ name: "slow", model: scripted(() => new Promise(() => {})) })
      yield* withAgents([asks, fails, slow], { concurrency: 1 })((engine) =>
        Effect.gen(function*() {
          yield* Effect.flip(engine.run(asks, { runId: "asks", prompt: "Pay." }))
          yield* Effect.flip(engine.run(fails, { runId: "fails", prompt: "Fail." }))
          yield* engine.start(slow, { runId: "slow", prompt: "Think." })
          yield* engine.start(slow, { runId: "queued", prompt: "Think." })
          for (const runId of ["asks", "fails", "queued", "slow"]) {
            yield* engine.cancel(runId)
            expect([runId, (yield* engine.get(runId)).status]).toEqual([runId, "cancelled"])
          }
        })
      )
    }))
})

/** What `Engine.cancel` has written where its process died before it stopped anything. */
const cancelling = (filename: string) => {
  const database = new DatabaseSync(filename)
  database.exec("UPDATE chamvi_runs SET data = json_set(data, '$.cancelling', json('true')), version = version + 1")
  database.close()
}

describe("a cancel that was cut off before it stopped anything", () => {
  const tools = (paid: Array<number>, needsApproval: boolean) => ({
    pay: tool({
      inputSchema: Schema.Struct({ n: Schema.Int }),
      needsApproval,
      execute: ({ n }) => Effect.sync(() => paid.push(n))
    })
  })
  const sqlite = (filename: string) => Layer.fresh(SqliteEngine.layer({ filename, drain: 0 }))

  it.live.each([["calls a tool", calls(["pay", { n: 2 }])], ["is done", says("Done.")]] as const)(
    "ends a run as cancelled that goes on, and then %s",
    ([, last]) =>
      Effect.gen(function*() {
        const filename = join(yield* temporaryDirectory, "engine.sqlite")
        const paid: Array<number> = []
        const model = scripted(calls(["pay", { n: 1 }]), async () => {
          cancelling(filename)
          return last
        })
        const agent = defineAgent({ name: "pays", model, tools: tools(paid, false) })
        yield* Effect.gen(function*() {
          const engine = yield* Engine
          expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
            _tag: "RunCancelledError"
          })
          expect(yield* engine.get("1")).toMatchObject({ status: "cancelled", cancelling: false })
          expect([paid, model.doGenerateCalls.length]).toEqual([[1], 2])
        }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(sqlite(filename)))))
      })
  )

  it.live("ends a run that waits for a person: with who resumes it, and else with its agent's next process", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const paid: Array<number> = []
      const model = scripted(calls(["pay", { n: 1 }]))
      const agent = defineAgent({ name: "pays", model, tools: tools(paid, true) })
      const life = () => Layer.fresh(agent.layer.pipe(Layer.provideMerge(sqlite(filename))))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        const waiting = { _tag: "RunWaitingError" }
        for (const runId of ["1", "2", "3"]) {
          expect(yield* Effect.flip(engine.run(agent, { runId, prompt: "Pay." }))).toMatchObject(waiting)
        }
        cancelling(filename)
        const cancelled = { _tag: "RunCancelledError" }
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject(cancelled)
        expect(yield* Effect.flip(engine.run(agent, { runId: "2", prompt: "Pay." }))).toMatchObject(cancelled)
        expect(yield* engine.get("3")).toMatchObject({ status: "waiting", cancelling: true })
      }).pipe(Effect.provide(life()))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        const parts = yield* Stream.runCollect(engine.stream("3"))
        expect(parts.at(-1)?.part).toEqual({ type: "run-cancelled" })
        expect(yield* engine.list({ status: "cancelled" })).toHaveLength(3)
        expect(paid).toEqual([])
      }).pipe(Effect.provide(life()))
    }))
})
