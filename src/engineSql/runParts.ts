/**
 * The parts of runs in a SQL database: a row for each batch, whose place in its run's log nobody takes twice.
 */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { EngineStoreError } from "../engine/errors.ts"
import type { RunParts } from "../engine/RunParts.ts"
import { migrate } from "../sql/migrate.ts"

const table = "chamvi_run_parts"

interface Row {
  /** `BIGINT` comes as a text from some drivers. */
  readonly seq: number | string
  readonly writer: string
  readonly marks: string
  readonly data: string
}

const migrations = {
  "1_parts": Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE ${sql(table)} (
      run_id TEXT NOT NULL,
      incarnation TEXT NOT NULL,
      seq BIGINT NOT NULL,
      writer TEXT NOT NULL,
      marks TEXT NOT NULL,
      data TEXT NOT NULL,
      PRIMARY KEY (run_id, incarnation, seq)
    )`
  })
}

const failure = (operation: string) => (cause: SqlError.SqlError) =>
  new EngineStoreError({ operation, problem: cause.reason.message ?? cause.message, cause })

/** The parts in the database of the `SqlClient`. Their table is made, and kept up to date. */
export const make = Effect.gen(function*() {
  yield* Effect.mapError(
    migrate(table, migrations),
    (cause) => new EngineStoreError({ operation: "open its tables", problem: cause.problem, cause })
  )
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const rows = sql(table)
  const parts: RunParts = {
    append: ({ incarnation, runId }, { data, marks, seq, writer }) =>
      sql`INSERT INTO ${rows} (run_id, incarnation, seq, writer, marks, data)
        VALUES (${runId}, ${incarnation}, ${seq}, ${writer}, ${marks}, ${data})
        ON CONFLICT (run_id, incarnation, seq) DO NOTHING RETURNING seq`.pipe(
        Effect.flatMap((added) =>
          added.length > 0
            ? Effect.succeed(true)
            // it may be ours: an answer that was lost
            : Effect.map(
              sql<Pick<Row, "writer">>`SELECT writer FROM ${rows}
                WHERE run_id = ${runId} AND incarnation = ${incarnation} AND seq = ${seq}`,
              ([row]) => row?.writer === writer
            )
        ),
        Effect.mapError(failure("add parts of a run"))
      ),
    read: ({ incarnation, runId }, after, limit) =>
      sql<Pick<Row, "seq" | "data">>`SELECT seq, data FROM ${rows}
        WHERE run_id = ${runId} AND incarnation = ${incarnation} AND seq > ${after} ORDER BY seq LIMIT ${limit}`.pipe(
        Effect.map((found) => found.map(({ data, seq }) => ({ seq: Number(seq), data }))),
        Effect.mapError(failure("read parts of a run"))
      ),
    marks: ({ incarnation, runId }) =>
      Effect.gen(function*() {
        const [newest] = yield* sql<{ readonly last: number | string | null }>`SELECT MAX(seq) AS last FROM ${rows}
          WHERE run_id = ${runId} AND incarnation = ${incarnation}`
        const found = yield* sql<Pick<Row, "marks">>`SELECT marks FROM ${rows}
          WHERE run_id = ${runId} AND incarnation = ${incarnation} AND marks <> '' AND seq <= ${
          Number(newest?.last ?? 0)
        } ORDER BY seq`
        return { last: Number(newest?.last ?? 0), marks: found.map(({ marks }) => marks) }
      }).pipe(Effect.mapError(failure("read parts of a run"))),
    remove: (runId) =>
      Effect.mapError(
        Effect.asVoid(sql`DELETE FROM ${rows} WHERE run_id = ${runId}`),
        failure("remove parts of a run")
      ),
    // a row for each word of a model would be more than a disk, or the reader's eye, can follow
    interval: "50 millis"
  }
  return parts
})
