/** A process that executes nothing: what it asks for, and what workers with other agents make of it. */
import { describe, expect, it } from "@effect/vitest"
import { Engine } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { agents, makeCluster } from "../support/cluster.ts"
import { databaseUrl, freshSchema, noPostgres, pool } from "../support/postgres.ts"

const timeout = 240_000
const ask = Engine.approvalId({ step: 0, toolCallId: "b" })

describe.skipIf(noPostgres)("a client of a cluster", () => {
  it.live(
    "approves, before the run waits or while no worker is there, and the run goes on when one comes",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const engine = yield* cluster.engine
        // nobody has executed anything yet
        yield* engine.start(agents.charger, cluster.inputOf({ run: "early", approval: true }))
        yield* engine.approve("early", ask)
        yield* engine.start(agents.charger, cluster.inputOf({ run: "late", approval: true }))
        const worker = yield* cluster.worker()
        expect((yield* engine.resume(agents.charger, "early")).text).toBe("Charged.")
        expect(yield* Effect.flip(engine.resume(agents.charger, "late"))).toMatchObject({ _tag: "RunWaitingError" })
        yield* worker.kill("SIGKILL")
        yield* worker.ended
        yield* engine.approve("late", ask)
        yield* engine.start(agents.charger, cluster.inputOf({ run: "denied", approval: true }))
        yield* engine.deny("denied", ask)
        yield* cluster.worker()
        expect((yield* engine.resume(agents.charger, "late")).text).toBe("Charged.")
        expect((yield* engine.resume(agents.charger, "denied")).text).toBe("Charged.")
        expect(["early", "late", "denied"].map(cluster.remoteOf)).toEqual([
          ["early:charge", "early:look"],
          ["late:charge", "late:look"],
          ["denied:look"]
        ])
        expect(cluster.modelOf("late")).toEqual(["late step 0", "late step 1"])
      }),
    { timeout }
  )

  it.live("cancels a tool that runs on a worker, and a run whose worker has died", () =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster
      const engine = yield* cluster.engine
      const worker = yield* cluster.worker()
      yield* engine.start(agents.plain, cluster.inputOf({ run: "running", stay: "before the effect" }))
      yield* worker.line
      const waiting = yield* Effect.forkScoped(Effect.flip(engine.resume(agents.plain, "running")))
      yield* engine.cancel("running")
      expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "RunCancelledError" })
      const { keysInDoubt, status } = yield* engine.get("running")
      expect({ status, inDoubt: keysInDoubt.map(({ key }) => key), remote: cluster.remoteOf("running") }).toEqual({
        status: "cancelled",
        inDoubt: ["running:charge"],
        remote: ["running:look"]
      })

      yield* engine.start(agents.plain, cluster.inputOf({ run: "orphan", stay: "before the effect" }))
      yield* worker.line
      yield* worker.kill("SIGKILL")
      yield* engine.cancel("orphan")
      yield* cluster.worker()
      expect(yield* Effect.flip(engine.resume(agents.plain, "orphan"))).toMatchObject({ _tag: "RunCancelledError" })
      expect(cluster.remoteOf("orphan")).not.toContain("orphan:charge")
    }), { timeout })

  it.live(
    "starts runs of an agent that the workers get later, and loses no answer meanwhile",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const engine = yield* cluster.engine
        const old = yield* cluster.worker({ agents: ["plain"] })
        yield* engine.start(agents.charger, cluster.inputOf({ run: "new", approval: true }))
        yield* engine.approve("new", ask)
        // the one that has its shard knows other agents, and serves them
        expect((yield* engine.run(agents.plain, cluster.inputOf({ run: "known" }))).text).toBe("Charged.")
        expect(yield* engine.get("new")).toMatchObject({ status: "queued" })
        yield* cluster.worker()
        yield* old.kill("SIGTERM")
        expect((yield* engine.resume(agents.charger, "new")).text).toBe("Charged.")
        expect(cluster.remoteOf("new")).toEqual(["new:charge", "new:look"])
      }),
    { timeout }
  )
})

describe.skipIf(noPostgres)("the settings of a cluster", () => {
  const build = (options: Partial<Parameters<typeof ClusterEngine.layer>[0]>) =>
    Effect.scoped(Layer.build(Layer.fresh(ClusterEngine.layer({ url: Redacted.make(databaseUrl), ...options }))))

  it.live("are refused where workers could not live with them, by name", () =>
    Effect.gen(function*() {
      const refused = Effect.fnUntraced(function*(options: Parameters<typeof build>[0]) {
        const { _tag, message } = yield* Effect.flip(build(options))
        return [_tag, message.split(";")[0]]
      })
      expect(yield* refused({ maxConnections: 1 })).toEqual([
        "EngineSettingError",
        "The engine's setting maxConnections is 1"
      ])
      expect(yield* refused({ takeover: "2 seconds" })).toEqual([
        "EngineSettingError",
        "The engine's setting takeover is 2s"
      ])
      expect((yield* refused({ url: Redacted.make("postgres://nobody:secret@127.0.0.1:1/none") }))[0])
        .toBe("EngineStoreError")
    }))

  it.live("HOST and PORT are none, and no two workers have the same address", () =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster
      yield* Effect.acquireRelease(
        Effect.sync(() => Object.assign(process.env, { HOST: "same", PORT: "8080" })),
        () => Effect.sync(() => (delete process.env["HOST"], delete process.env["PORT"]))
      )
      yield* cluster.workers({ maxConnections: 2 }, { maxConnections: 2 })
      const engine = yield* cluster.engine
      expect((yield* engine.run(agents.charger, cluster.inputOf({ run: "small" }))).text).toBe("Charged.")
      expect(new Set(yield* cluster.addresses).size).toBe(2)
      expect((yield* cluster.addresses).filter((address) => /same|8080/.test(address))).toEqual([])
    }), { timeout })

  it.live("let ten workers start at once on an empty database", () =>
    Effect.gen(function*() {
      const schema = yield* freshSchema
      yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => build({ schema, maxConnections: 2, takeover: "3 seconds" }),
        { concurrency: "unbounded" }
      )
      const [tables] = yield* Effect.provide(
        Effect.flatMap(SqlClient.SqlClient, (sql) =>
          sql<
            { readonly n: string }
          >`SELECT count(*) AS n FROM information_schema.tables WHERE table_schema = ${schema}`),
        pool({ maxConnections: 1 })
      )
      expect(Number(tables!.n)).toBeGreaterThan(8)
    }), { timeout })
})
