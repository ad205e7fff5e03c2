import { describe, expect, it } from "@effect/vitest"
import { defineAgent, Engine } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Layer, Schema } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

const down = () => Promise.reject(new Error("down"))

describe.each(engines)("Engine.prune $where", ({ withAgents }) => {
  it.live("spares a run that is retried meanwhile, and retries none that it has taken", () => {
    let broken = true
    const model = scripted(() => broken ? down() : Promise.resolve(says("Good.")))
    const agent = defineAgent({ name: "fails", model, maxRetries: 0 })
    const ids = Array.from({ length: 60 }, (_, index) => String(index))
    return withAgents([agent])((engine) =>
      Effect.gen(function*() {
        yield* Effect.forEach(ids, (runId) => Effect.flip(engine.run(agent, { runId, prompt: "Go." })))
        broken = false
        // they ended before now
        yield* Effect.sleep(2)
        const retry = (runId: string) =>
          Effect.matchEffect(engine.retry(runId), {
            onFailure: (error) => Effect.as(Effect.sync(() => expect(error._tag).toBe("RunNotFoundError")), []),
            onSuccess: () => Effect.succeed([runId])
          })
        const [pruned, retried] = yield* Effect.all([engine.prune({ olderThan: 0 }), Effect.forEach(ids, retry)], {
          concurrency: 2
        })
        expect(pruned + retried.flat().length).toBe(ids.length)
        for (const runId of retried.flat()) expect((yield* engine.resume(agent, runId)).text).toBe("Good.")
      })
    )
  })
})

describe("SqliteEngine", () => {
  it.live("knows no run whose pruning was cut off, and the next prune, or run of the same id, removes the rest", () =>
    Effect.gen(function*() {
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      const seen: Array<unknown> = []
      const model = scripted(down, down, says("Good."))
      const agent = defineAgent({
        name: "visits",
        model,
        maxRetries: 0,
        instructions: ({ state }) =>
          Effect.gen(function*() {
            seen.push(yield* state.get("visited", Schema.Boolean))
            yield* state.set("visited", Schema.Boolean, true)
            return "Go."
          })
      })
      const edit = <A>(use: (database: DatabaseSync) => A) =>
        Effect.acquireUseRelease(
          Effect.sync(() => new DatabaseSync(filename)),
          (database) => Effect.sync(() => use(database)),
          (database) => Effect.sync(() => database.close())
        )
      const life = agent.layer.pipe(Layer.provideMerge(SqliteEngine.layer({ filename, drain: 0 })))
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Go." }))
        yield* Effect.flip(engine.run(agent, { runId: "2", prompt: "Go." }))
        yield* edit((database) =>
          database.exec(
            "CREATE TRIGGER full BEFORE DELETE ON chamvi_run_parts BEGIN SELECT RAISE(ABORT, 'no more'); END"
          )
        )
        // it fails where it removes the last parts of what it keeps
        expect(yield* Effect.flip(engine.prune({ olderThan: -1 }))).toMatchObject({ _tag: "EngineStoreError" })
      }).pipe(Effect.provide(Layer.fresh(life)))
      const left = yield* edit((database) => {
        database.exec("DROP TRIGGER full")
        return database.prepare("SELECT run_id, status FROM chamvi_runs ORDER BY run_id").all()
      })
      expect(left.map((row) => ({ ...row }))).toEqual([{ run_id: "1", status: "pruning" }, {
        run_id: "2",
        status: "pruning"
      }])
      yield* Effect.gen(function*() {
        const engine = yield* Engine
        const missing = { _tag: "RunNotFoundError" }
        expect(yield* Effect.flip(engine.retry("1"))).toMatchObject(missing)
        expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject(missing)
        expect(yield* Effect.flip(engine.get("1"))).toMatchObject(missing)
        expect(yield* engine.list()).toEqual([])
        expect((yield* engine.run(agent, { runId: "1", prompt: "Anew." })).text).toBe("Good.")
        // it found nothing of the one before
        expect(seen).toEqual([undefined, undefined, undefined])
        expect(yield* engine.prune({ olderThan: "1 day" })).toBe(1)
        expect((yield* engine.list()).map(({ runId }) => runId)).toEqual(["1"])
      }).pipe(Effect.provide(Layer.fresh(life)))
    }))
})
