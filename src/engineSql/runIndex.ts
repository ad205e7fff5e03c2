/**
 * The index of runs in a SQL database: one row a run.
 */
import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { EngineStoreError } from "../engine/errors.ts"
import { defaultLimit, type RunIndex, type RunRow } from "../engine/RunIndex.ts"
import { migrate } from "../sql/migrate.ts"

const table = "chamvi_runs"

/** What is never changed, or looked for, stands in columns; the rest is one text. */
type Data = Omit<RunRow, "runId" | "agent" | "status" | "input" | "createdAt" | "endedAt">

interface Row {
  readonly run_id: string
  readonly agent: string
  readonly status: RunRow["status"]
  readonly created_at: number | string
  readonly ended_at: number | string | null
  readonly version: number
  readonly input: string
  readonly data: string
}

const migrations = {
  "1_runs": Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`CREATE TABLE ${sql(table)} (
      run_id TEXT NOT NULL PRIMARY KEY,
      agent TEXT NOT NULL,
      status TEXT NOT NULL,
      created_at BIGINT NOT NULL,
      ended_at BIGINT,
      version BIGINT NOT NULL,
      input TEXT NOT NULL,
      data TEXT NOT NULL
    )`
    yield* sql`CREATE INDEX ${sql(`${table}_status`)} ON ${sql(table)} (status, agent, created_at)`
  })
}

const failure = (operation: string) => (cause: SqlError.SqlError) =>
  new EngineStoreError({ operation, problem: cause.reason.message ?? cause.message, cause })

const rowOf = (row: Row): RunRow => ({
  ...JSON.parse(row.data) as Data,
  runId: row.run_id,
  agent: row.agent,
  status: row.status,
  input: row.input,
  createdAt: Number(row.created_at),
  endedAt: row.ended_at === null ? undefined : Number(row.ended_at)
})

const dataOf = (
  { agent: _, createdAt: __, endedAt: ___, input: ____, runId: _____, status: ______, ...data }: RunRow
) => JSON.stringify(data satisfies Data)

/** The index in the database of the `SqlClient`. Its table is made, and kept up to date. */
export const make = Effect.gen(function*() {
  yield* Effect.mapError(
    migrate(table, migrations),
    (cause) => new EngineStoreError({ operation: "open its tables", problem: cause.problem, cause })
  )
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const runs = sql(table)

  const find = (runId: string) =>
    Effect.map(
      Effect.mapError(sql<Row>`SELECT * FROM ${runs} WHERE run_id = ${runId}`, failure("read a run")),
      ([row]) => row
    )

  const index: RunIndex = {
    insert: (row) =>
      Effect.flatMap(
        Effect.mapError(
          sql<{ readonly run_id: string }>`
            INSERT INTO ${runs} (run_id, agent, status, created_at, ended_at, version, input, data)
            VALUES (${row.runId}, ${row.agent}, ${row.status}, ${row.createdAt}, ${
            row.endedAt ?? null
          }, 1, ${row.input},
              ${dataOf(row)})
            ON CONFLICT (run_id) DO NOTHING RETURNING run_id`,
          failure("add a run")
        ),
        (added) => added.length > 0 ? Effect.undefined : index.get(row.runId)
      ),
    get: (runId) => Effect.map(find(runId), (row) => row && rowOf(row)),
    update: (runId, change) =>
      Effect.flatMap(find(runId), (found) => {
        const row = found && rowOf(found)
        const next = row && change(row)
        if (next === undefined) return Effect.succeed(row)
        return Effect.flatMap(
          Effect.mapError(
            sql<{ readonly run_id: string }>`
              UPDATE ${runs} SET status = ${next.status}, ended_at = ${next.endedAt ?? null}, version = version + 1,
                data = ${dataOf(next)}
              WHERE run_id = ${runId} AND version = ${found!.version} RETURNING run_id`,
            failure("change a run")
          ),
          // somebody else was faster: once more, on what they wrote
          (changed) => changed.length > 0 ? Effect.succeed(next) : index.update(runId, change)
        )
      }),
    list: ({ agent, endedBefore, limit, status }) => {
      const statuses = status === undefined || typeof status === "string" ? status : [...status]
      const conditions = [
        ...agent === undefined ? [] : [sql`agent = ${agent}`],
        ...statuses === undefined
          ? [sql`status <> 'pruning'`]
          : [typeof statuses === "string" ? sql`status = ${statuses}` : sql.in("status", statuses)],
        ...endedBefore === undefined ? [] : [sql`ended_at < ${endedBefore}`]
      ]
      const where = conditions.length === 0 ? sql`` : sql`WHERE ${sql.and(conditions)}`
      return Effect.map(
        Effect.mapError(
          sql<Row>`SELECT * FROM ${runs} ${where} ORDER BY created_at DESC, run_id LIMIT ${limit ?? defaultLimit}`,
          failure("list runs")
        ),
        (rows) => rows.map(rowOf)
      )
    },
    remove: (row, rest) =>
      sql.withTransaction(Effect.gen(function*() {
        const found = yield* find(row.runId)
        if (found?.status !== "pruning" || rowOf(found).incarnation !== row.incarnation) return false
        // who deletes it first keeps others, and a run that gets the id, from it until all is removed
        const deleted = yield* sql<{ readonly run_id: string }>`
          DELETE FROM ${runs} WHERE run_id = ${row.runId} AND version = ${found.version} RETURNING run_id`
        if (deleted.length === 0) return false
        yield* rest
        return true
      })).pipe(Effect.catchTag("SqlError", (error) => Effect.fail(failure("remove a run")(error))))
  }
  return index
})
