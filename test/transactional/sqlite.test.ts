import { Effect } from "effect"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { worldOf } from "./world.ts"
import { transactionalProcesses } from "./processes.ts"

transactionalProcesses(
  "SQLite",
  true,
  Effect.gen(function*() {
    const database = `${yield* temporaryDirectory}/program.sqlite`
    const sql = yield* SqliteClient.make({ filename: database })
    yield* sql`CREATE TABLE notes (note TEXT NOT NULL)`
    return { ...(yield* worldOf(sql, {})), database }
  })
)
