/**
 * The published laws on every store of the library, each law on a store of its own.
 */
import { it } from "@effect/vitest"
import { EffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { StoreClock, storeLaws } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { DatabaseSync } from "node:sqlite"
import { describe } from "vitest"
import * as SqliteClient from "../src/SqliteClient.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

/** The clock of the SQL stores: a table that the test writes. */
const now = "(SELECT now FROM test_clock)"
const table = "CREATE TABLE test_clock (now INTEGER NOT NULL); INSERT INTO test_clock VALUES (1700000000000)"

const Memory = Layer.merge(
  EffectStore.layerMemory,
  Layer.succeed(StoreClock, { advance: (milliseconds) => TestClock.adjust(milliseconds) })
)

const ClientClock = Layer.effect(
  StoreClock,
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    for (const statement of table.split("; ")) yield* sql.unsafe(statement)
    return { advance: (milliseconds: number) => Effect.orDie(sql`UPDATE test_clock SET now = now + ${milliseconds}`) }
  })
)

const OverClient = Layer.provideMerge(SqlEffectStore.layer({ now }), ClientClock).pipe(
  Layer.provide(SqliteClient.layer({ filename: ":memory:" }))
)

const onFile = (mode: "durable" | "fast") =>
  Layer.unwrap(Effect.gen(function*() {
    const filename = `${yield* temporaryDirectory}/ledger.sqlite`
    const mover = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (handle) => Effect.sync(() => handle.close())
    )
    mover.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; ${table}`)
    return Layer.merge(
      SqliteEffectStore.layer({ filename, mode, now }),
      Layer.succeed(StoreClock, {
        advance: (milliseconds) => Effect.sync(() => mover.exec(`UPDATE test_clock SET now = now + ${milliseconds}`))
      })
    )
  }))

const stores = {
  "EffectStore.layerMemory": Memory,
  "SqlEffectStore over a SQLite client": OverClient,
  "SqliteEffectStore, durable": onFile("durable"),
  "SqliteEffectStore, fast": onFile("fast")
}

for (const [name, layer] of Object.entries(stores)) {
  describe(name, () => {
    for (const [title, law] of Object.entries(storeLaws)) {
      it.effect(title, () => Effect.provide(law, Layer.fresh(layer)))
    }
  })
}
