/**
 * Transactional calls on SQLite in memory.
 */
import { Effect } from "effect"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { transactionalCases } from "../transactional/cases.ts"
import { worldOf } from "../transactional/world.ts"

transactionalCases(
  "SQLite",
  true,
  Effect.gen(function*() {
    const sql = yield* SqliteClient.make({ filename: ":memory:" })
    yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
    return yield* worldOf(sql, {})
  })
)
