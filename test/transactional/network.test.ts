/**
 * What the network may do to a transactional call at every point of it, commit included: one write with one record, or
 * neither, and a typed error where nobody can know.
 */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { applyOnce, EffectSettings, EffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Cause, Context, Effect, Exit, Fiber, Layer, Logger, Redacted, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import { databaseUrl, freshSchema, noPostgres } from "../support/postgres.ts"
import { type Point, tcpProxy, type Trouble } from "../support/tcpProxy.ts"

/** A program's client through a port, its ledger, and its table of notes. */
const connect = (port: number, schema: string) =>
  Effect.gen(function*() {
    const url = new URL(databaseUrl)
    url.port = String(port)
    const client = PgClient.layer({
      url: Redacted.make(url.href),
      maxConnections: 4,
      startupParameters: { search_path: schema },
      // every COMMIT is seen as a text on its way
      prepare: false
    })
    const context = yield* Layer.build(Layer.fresh(client))
    const sql = Context.get(context, SqlClient.SqlClient)
    const store = yield* Effect.provideService(SqlEffectStore.make(), SqlClient.SqlClient, sql)
    return { sql, store }
  })

type Program = Effect.Success<ReturnType<typeof connect>>

const Settings = EffectSettings.layer({ storeTimeout: 400, recordTimeout: 400 })

/** A call, told from all others by the bytes that it sends. */
const makeCall = () => {
  const mark = randomUUID()
  const [key, tool, note, result] = [`key-${mark}`, `tool-${mark}`, `note-${mark}`, `result-${mark}`]
  const call = ({ sql, store }: Program) =>
    applyOnce({
      key,
      tool,
      transactional: true,
      execute: () => Effect.as(sql`INSERT INTO notes (note) VALUES (${note})`, result)
    }).pipe(Effect.provideService(EffectStore, store), Effect.provide(Settings))
  return { key, tool, note, result, call }
}

const points = {
  "the begin": () => "BEGIN",
  "the claim": ({ tool }) => tool,
  "the write": ({ note }) => note,
  "the record": ({ result }) => result,
  "the commit": () => "COMMIT"
} as const satisfies Record<string, (call: ReturnType<typeof makeCall>) => string>

describe.skipIf(noPostgres)("A transactional call in a bad network", () => {
  for (const [what, bytesOf] of Object.entries(points)) {
    for (const before of ["request", "reply"] as const satisfies ReadonlyArray<Point["before"]>) {
      for (const trouble of ["stall", "cut", "half-close"] as const satisfies ReadonlyArray<Trouble>) {
        it.live(
          `${trouble} at the ${before} of ${what}: one write, one record`,
          () =>
            Effect.gen(function*() {
              const schema = yield* freshSchema
              const port = Number(new URL(databaseUrl).port || 5432)
              const setup = yield* Layer.build(PgClient.layer({ url: Redacted.make(databaseUrl), maxConnections: 1 }))
              yield* Effect.provideContext(
                Effect.flatMap(SqlClient.SqlClient, (sql) =>
                  Effect.andThen(
                    sql`CREATE SCHEMA ${sql(schema)}`,
                    sql`CREATE TABLE ${sql(schema)}.notes (note TEXT)`
                  )),
                setup
              )
              const proxy = yield* tcpProxy(port)
              const near = yield* connect(proxy.port, schema)
              const far = yield* connect(port, schema)
              const call = makeCall()
              const { struck } = yield* proxy.arm(trouble, { bytes: bytesOf(call), before })
              const first = yield* Effect.forkScoped(Effect.exit(call.call(near)))
              yield* struck
              // what execute asks the database itself has no limit but the network's
              if (what !== "the write") yield* Fiber.await(first)
              yield* proxy.heal
              const exit = yield* Fiber.join(first)
              // only a write that is late for nobody gets through
              assert.strictEqual(Exit.isFailure(exit), what !== "the write" || trouble !== "stall")
              if (Exit.isFailure(exit)) {
                const { _tag: tag, message } = Cause.squash(exit.cause) as {
                  readonly _tag: string
                  readonly message: string
                }
                assert.strictEqual(tag, what === "the write" ? "SqlError" : "EffectStoreError", message)
                if (what === "the commit") assert.include(message, "both there, or both not: the next call finds out")
              }
              const insist = Effect.retry(call.call(near), { schedule: Schedule.spaced("50 millis"), times: 100 })
              assert.strictEqual(yield* insist, call.result)
              assert.strictEqual(yield* call.call(far), call.result)
              assert.deepStrictEqual(yield* far.sql`SELECT note FROM notes`.values, [[call.note]])
              assert.deepInclude({ ...(yield* far.store.get(call.key)) }, { status: "recorded", doubt: "none" })
            }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
          30_000
        )
      }
    }
  }
})
