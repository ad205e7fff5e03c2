/**
 * Transactional calls on SQLite in memory, and what they do where a database keeps them waiting.
 */
import { Effect } from "effect"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { transactionalCases, worldOf } from "../transactional/cases.ts"

transactionalCases(
  "SQLite",
  true,
  Effect.gen(function*() {
    const sql = yield* SqliteClient.make({ filename: ":memory:" })
    yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
    return yield* worldOf(sql, {})
  })
)
