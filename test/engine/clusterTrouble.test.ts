/** A cluster whose Postgres is away for a while, or whose connections are cut, and workers that use sockets. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { SqlClient } from "effect/sql"
import { createServer } from "node:net"
import { once } from "node:events"
import { agents, clusterOn, makeCluster } from "../support/cluster.ts"
import { startEmbedded } from "../support/embeddedPostgres.ts"
import { noPostgres, pool } from "../support/postgres.ts"

const timeout = 240_000

describe.skipIf(noPostgres)("a cluster", () => {
  it.live("outlasts a restart of Postgres in the middle of tools and model calls", () =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.promise(() => startEmbedded(["fsync=off"])),
        (server) => Effect.promise(() => server.stop())
      )
      const cluster = yield* clusterOn(server.url, "public")
      yield* cluster.workers({}, {})
      const engine = yield* cluster.engine
      const plans = [
        { run: "tool", stay: "before the effect" },
        { run: "sent", stay: "after the effect" },
        { run: "model", stay: "model 0" }
      ]
      yield* Effect.forEach(plans, (plan) => engine.start(agents.charger, cluster.inputOf(plan)))
      yield* cluster.reached(plans.map(({ run }) => run))
      yield* Effect.promise(() => server.restart())
      yield* Effect.forEach(plans, ({ run }) => cluster.go(run))
      for (const { run } of plans) {
        const result = yield* Effect.retry(engine.resume(agents.charger, run), {
          while: ({ _tag }) => _tag === "EngineStoreError"
        })
        expect(result.text).toBe("Charged.")
        expect(cluster.remoteOf(run)).toEqual([`${run}:charge`, `${run}:look`])
      }
      expect(cluster.misread).toEqual([])
    }), { timeout })

  it.live("outlasts the loss of all connections at any moment, and no model reads of it", () =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster
      yield* cluster.workers({}, {})
      const engine = yield* cluster.engine
      const runs = Array.from({ length: 12 }, (_, index) => `cut-${index}`)
      yield* Effect.forEach(runs, (run) => engine.start(agents.charger, cluster.inputOf({ run })))
      const sql = yield* SqlClient.SqlClient
      const cut = sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'chamvi-effect engine' AND datname = current_database()`
      const cutting = yield* Effect.forkScoped(Effect.forever(Effect.andThen(cut, Effect.sleep("700 millis"))))
      yield* Effect.sleep("3 seconds")
      yield* Fiber.interrupt(cutting)
      for (const run of runs) {
        const result = yield* Effect.retry(engine.resume(agents.charger, run), {
          while: ({ _tag }) => _tag === "EngineStoreError"
        })
        expect(result.text).toBe("Charged.")
        expect(cluster.remoteOf(run)).toEqual([`${run}:charge`, `${run}:look`])
      }
      expect(cluster.misread).toEqual([])
    }).pipe(Effect.provide(pool({ maxConnections: 1 }))), { timeout })

  it.live("goes on with the runs of a dead worker over sockets too", () =>
    Effect.gen(function*() {
      const cluster = yield* makeCluster
      const ports = yield* Effect.promise(freePorts)
      const workers = yield* cluster.workers({ port: ports[0]! }, { port: ports[1]! })
      const engine = yield* cluster.engine
      const result = yield* Effect.forkScoped(
        engine.run(agents.charger, cluster.inputOf({ run: "sockets", kill: "before the effect" }))
      )
      yield* Effect.raceAllFirst(workers.map(({ ended }) => ended))
      expect((yield* Fiber.join(result)).text).toBe("Charged.")
      expect(cluster.remoteOf("sockets")).toEqual(["sockets:charge", "sockets:look"])
      expect((yield* cluster.addresses).some((address) => address.includes(`:${ports[0]}`))).toBe(true)
    }), { timeout })
})

const freePorts = async (): Promise<ReadonlyArray<number>> => {
  const servers = [createServer().listen(0, "127.0.0.1"), createServer().listen(0, "127.0.0.1")]
  await Promise.all(servers.map((server) => once(server, "listening")))
  const ports = servers.map((server) => (server.address() as { readonly port: number }).port)
  servers.forEach((server) => server.close())
  return ports
}
