/**
 * What the SQLite store adds to its own statements: a claim and a record, and the one read of a replay, against the bare
 * statements on a file of their own.
 */
import { applyOnce, EffectStore } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Context, Effect, Layer, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import type { Query } from "../src/sql/dialect.ts"
import { defaultTable } from "../src/sql/names.ts"
import * as Sqlite from "../src/sql/sqliteDialect.ts"
import { type Case, measure, print } from "./harness.ts"

const result = { ok: true, text: "x".repeat(200) }
const statements = Sqlite.statements(defaultTable, undefined)
const keyOf = (n: number) => n.toString(16).padStart(64, "0")

let unique = 0

const bare = (filename: string, durable: boolean) => {
  const database = new DatabaseSync(filename)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${durable ? "FULL" : "NORMAL"}`)
  const prepared = new Map<string, ReturnType<DatabaseSync["prepare"]>>()
  const run = ({ params, sql }: Query) => {
    const statement = prepared.get(sql) ?? database.prepare(sql)
    prepared.set(sql, statement)
    return statement.all(...params as ReadonlyArray<SQLInputValue>)
  }
  return {
    close: () => database.close(),
    fresh: () => {
      const key = keyOf(++unique)
      const request = { key, tool: "t", runId: "r", owner: "o", claimId: key, lease: 30_000, fingerprint: key }
      const [claimed] = run(statements.claim({ ...request, process: null, deadProcess: null }))
      const token = Number(claimed?.["token"])
      const item = {
        key,
        token,
        result: JSON.stringify({ value: result }),
        outcome: "executed" as const,
        fingerprint: key
      }
      run(statements.complete(item))
      return key
    },
    replay: (key: string) => run(statements.look(key))
  }
}

const casesOf = (mode: "fast" | "durable", folder: string): Effect.Effect<ReadonlyArray<Case>, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const filename = join(folder, `${mode}.sqlite`)
    const store = Context.get(yield* Layer.build(SqliteEffectStore.layer({ filename, mode })), EffectStore)
    // the bare statements have a ledger of their own, made the same way
    const bareFile = join(folder, `${mode}-bare.sqlite`)
    yield* Effect.scoped(Layer.build(SqliteEffectStore.layer({ filename: bareFile, mode })))
    const floor = yield* Effect.acquireRelease(
      Effect.sync(() => bare(bareFile, mode === "durable")),
      (floor) => Effect.sync(() => floor.close())
    )
    const run = Effect.runPromiseWith(Context.make(EffectStore, store))
    const apply = (key: string) => run(applyOnce({ key, execute: () => Effect.succeed(result) }))
    const known = floor.fresh()
    const replayed = keyOf(++unique)
    yield* Effect.promise(() => apply(replayed))
    const parallel = (count: number, key: () => string) =>
      Promise.all(Array.from({ length: count }, () => apply(key())))
    const fresh = () => keyOf(++unique)
    const cases: ReadonlyArray<Case> = [
      { name: `SQLite ${mode}, bare fresh`, operations: 1, run: () => void floor.fresh() },
      { name: `SQLite ${mode}, store fresh alone`, operations: 1, run: () => apply(fresh()) },
      { name: `SQLite ${mode}, store fresh, 64 callers`, operations: 64, run: () => parallel(64, fresh) },
      { name: `SQLite ${mode}, bare replay`, operations: 1, run: () => void floor.replay(known) },
      { name: `SQLite ${mode}, store replay alone`, operations: 1, run: () => apply(replayed) }
    ]
    return cases
  })

export const benchStores = (rounds: number): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "chamvi-bench-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    for (const mode of ["fast", "durable"] as const) {
      const cases = yield* casesOf(mode, folder)
      const measured = yield* Effect.promise(() => measure(cases, rounds))
      const base = (name: string) => measured.find((row) => row.name.endsWith(name))
      print(
        `SQLite (${mode}): applyOnce against the store's bare statements`,
        measured.map((row) => ({
          ...row,
          base: row.name.includes("bare") ? undefined : base(row.name.includes("replay") ? "bare replay" : "bare fresh")
        }))
      )
    }
  })
