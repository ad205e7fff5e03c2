/** A process that executes nothing, beside the one that executes on a SQLite file. */
import { describe, expect, it } from "@effect/vitest"
import { Engine } from "chamvi-effect"
import { SqliteEngine } from "chamvi-effect/SqliteEngine"
import { Effect, Fiber, Layer } from "effect"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { agents, makeFile } from "../support/cluster.ts"
import { reading, textsOf } from "../support/streams.ts"

const timeout = 240_000
const ask = Engine.approvalId({ step: 0, toolCallId: "b" })

const charged = (run: string) => ({
  model: [`${run} step 0`, `${run} step 1`],
  remote: [`${run}:charge`, `${run}:look`]
})

describe("a client of a SQLite file", () => {
  it.live("starts runs in the process that has the file, answers and lists them", () =>
    Effect.gen(function*() {
      const file = yield* makeFile
      const seen = (run: string) => ({ model: file.modelOf(run), remote: file.remoteOf(run) })
      yield* file.worker()
      const engine = yield* file.engine
      expect((yield* engine.run(agents.charger, file.inputOf({ run: "plain" }))).text).toBe("Charged.")
      expect(seen("plain")).toEqual(charged("plain"))
      for (const run of ["agreed", "denied"]) {
        expect(yield* Effect.flip(engine.run(agents.charger, file.inputOf({ run, approval: true })))).toMatchObject({
          _tag: "RunWaitingError",
          approvals: [{ id: ask, toolName: "charge" }]
        })
      }
      yield* engine.approve("agreed", ask)
      yield* engine.deny("denied", ask, { reason: "Not today." })
      expect((yield* engine.resume(agents.charger, "agreed")).text).toBe("Charged.")
      expect((yield* engine.resume(agents.charger, "denied")).text).toBe("Charged.")
      expect(seen("agreed")).toEqual(charged("agreed"))
      expect(file.remoteOf("denied")).toEqual(["denied:look"])
      expect((yield* engine.list()).map(({ runId, status }) => `${runId} ${status}`).toSorted()).toEqual([
        "agreed completed",
        "denied completed",
        "plain completed"
      ])
      expect(yield* Effect.flip(engine.retry("plain"))).toMatchObject({ _tag: "RunNotFailedError" })
      expect(yield* engine.prune({ olderThan: -1 })).toBe(3)
      expect((yield* engine.run(agents.charger, file.inputOf({ run: "plain" }))).text).toBe("Charged.")
      // the ledger remembers
      expect(file.remoteOf("plain")).toEqual(charged("plain").remote)
    }), { timeout })

  it.live("cancels a tool that runs there", () =>
    Effect.gen(function*() {
      const file = yield* makeFile
      const engine = yield* file.engine
      const worker = yield* file.worker()
      yield* engine.start(agents.plain, file.inputOf({ run: "running", stay: "before the effect" }))
      yield* worker.line
      const waiting = yield* Effect.forkScoped(Effect.flip(engine.resume(agents.plain, "running")))
      yield* engine.cancel("running")
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "RunCancelledError" })
      const { keysInDoubt, status } = yield* engine.get("running")
      expect({ status, inDoubt: keysInDoubt.map(({ key }) => key), remote: file.remoteOf("running") }).toEqual({
        status: "cancelled",
        inDoubt: ["running:charge"],
        remote: ["running:look"]
      })
    }), { timeout })

  it.live(
    "starts and answers runs while no process executes, and the next one goes on with them, after a kill too",
    () =>
      Effect.gen(function*() {
        const file = yield* makeFile
        const seen = (run: string) => ({ model: file.modelOf(run), remote: file.remoteOf(run) })
        // nobody has been here before
        const engine = yield* file.engine
        yield* engine.start(agents.charger, file.inputOf({ run: "early", approval: true }))
        yield* engine.approve("early", ask)
        expect(yield* engine.get("early")).toMatchObject({ status: "queued" })
        const first = yield* file.worker()
        expect((yield* engine.resume(agents.charger, "early")).text).toBe("Charged.")
        const killed = yield* Effect.forkScoped(
          engine.run(agents.charger, file.inputOf({ run: "killed", kill: "after the effect" }))
        )
        yield* first.ended
        yield* engine.start(agents.charger, file.inputOf({ run: "cancelled" }))
        yield* engine.cancel("cancelled")
        yield* file.worker()
        expect((yield* Fiber.join(killed)).text).toBe("Charged.")
        expect(yield* Effect.flip(engine.resume(agents.charger, "cancelled"))).toMatchObject({
          _tag: "RunCancelledError"
        })
        expect([seen("early"), seen("killed")]).toEqual([charged("early"), charged("killed")])
        expect(file.remoteOf("cancelled")).toEqual([])
      }),
    { timeout }
  )

  it.live("reads a run's parts while they are written", () =>
    Effect.gen(function*() {
      const file = yield* makeFile
      const engine = yield* file.engine
      yield* file.worker()
      const run = "streamed"
      yield* engine.start(agents.streamer, file.inputOf({ run, stay: "streaming 0" }))
      const reader = yield* reading(engine, run)
      const before = yield* reader.until(({ type }) => type === "text-delta")
      yield* file.go(run)
      const after = yield* reader.until(({ type }) => type === "run-completed")
      expect(textsOf([...before, ...after].map(({ part }) => part))).toEqual(["Hello.", "Hello."])
    }), { timeout })

  it.live(
    "opens the file while another process has it, which a second engine is told of",
    () =>
      Effect.gen(function*() {
        const file = yield* makeFile
        yield* file.worker()
        const second = Layer.build(Layer.fresh(SqliteEngine.layer({ filename: file.filename })))
        const error = yield* Effect.flip(Effect.scoped(second))
        expect(error._tag).toBe("EngineLockedError")
        expect(error.message).toContain("SqliteEngine.layerClient")
        expect(yield* (yield* file.engine).list()).toEqual([])
      }),
    { timeout }
  )

  it.live("is refused where it could reach nobody, by name", () =>
    Effect.gen(function*() {
      const refused = (options: Parameters<typeof SqliteEngine.layerClient>[0]) =>
        Effect.flip(Effect.scoped(Layer.build(SqliteEngine.layerClient(options))))
      const filename = join(yield* temporaryDirectory, "engine.sqlite")
      expect(yield* refused({ filename: ":memory:" })).toMatchObject({
        _tag: "EngineSettingError",
        setting: "filename"
      })
      expect(yield* refused({ filename, pollInterval: 0 })).toMatchObject({ setting: "pollInterval" })
      expect(yield* refused({ filename: join(filename, "no", "folder") })).toMatchObject({ _tag: "EngineStoreError" })
    }))

  it.live("is told where another process has taken the number of its message, and none is lost", () =>
    Effect.gen(function*() {
      const file = yield* makeFile
      const engine = yield* file.engine
      yield* engine.start(agents.charger, file.inputOf({ run: "run" }))
      const database = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(file.filename)),
        (database) => Effect.sync(() => database.close())
      )
      const table = "chamvi_engine_messages"
      const names = database.prepare(`PRAGMA table_info(${table})`).all().map(({ name }) => String(name))
      const copy = (id: string, messageId: string) => {
        const values = names.map((name) => name === "id" ? id : name === "message_id" ? messageId : name)
        database.exec(`INSERT OR IGNORE INTO ${table} (${names.join()}) SELECT ${values.join()} FROM ${table}`)
      }
      expect(() => copy("id", "'another'")).toThrow("has taken the number")
      // the same message again is none
      copy("id", "message_id")
      copy("id + 1", "message_id")
      expect(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()).toEqual({ n: 1 })
    }))
})
