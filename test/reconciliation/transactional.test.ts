/**
 * Transactional calls on SQLite in memory.
 */
import { describe } from "@effect/vitest"
import { Effect } from "effect"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { transactionalCases } from "../transactional/cases.ts"
import { worldOf } from "../transactional/world.ts"

const open = Effect.gen(function*() {
  const sql = yield* SqliteClient.make({ filename: ":memory:" })
  yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
  return yield* worldOf(sql, {})
})

describe("A transactional call on SQLite", () => {
  transactionalCases(open)
})
