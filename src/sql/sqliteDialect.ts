/**
 * The ledger in SQLite's words.
 *
 * A row is found by the SHA-256 of its key: a short blob makes a small index, whatever the keys look like, and SQLite's
 * collations and type conversions cannot make two keys one. The key itself stands beside it and is compared when read.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { hash } from "node:crypto"
import type { ListFilter } from "../store/IEffectStore.ts"
import type { Query, SingleStatements } from "./dialect.ts"
import type { Source } from "./changes.ts"
import type { SqlExecutor } from "./executor.ts"
import type { Migrations } from "./migrate.ts"
import { quoted } from "./names.ts"
import { columns, doubts, grantColumns, lookColumns } from "./rows.ts"

const digest = (key: string): Uint8Array => hash("sha256", key, "buffer")

/** Milliseconds as a whole number that every expression of SQLite can hold. */
const millis = (value: number): number => Math.max(0, Math.min(Math.ceil(value), 2 ** 52))

// SQLite's clock stands still during one step, so that a statement may ask it several times
const databaseClock = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"

const literals = (values: ReadonlyArray<string>): string => values.map((value) => `'${value}'`).join(", ")

/** The names of what the ledger makes, quoted. */
interface Names {
  readonly table: string
  readonly floor: string
  readonly removed: string
}

const namesOf = (table: string): Names => ({
  table: quoted(table),
  floor: quoted(`${table}_floor`),
  removed: quoted(`${table}_removed`)
})

const migrate = (statements: ReadonlyArray<string>) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  )

const migrationsOf = ({ floor, removed, table }: Names) => ({
  "1_ledger": migrate([
    `CREATE TABLE ${table} (
      id INTEGER PRIMARY KEY,
      digest BLOB NOT NULL UNIQUE,
      key TEXT NOT NULL,
      tool TEXT NOT NULL,
      run_id TEXT NOT NULL,
      status TEXT NOT NULL,
      doubt TEXT NOT NULL,
      token INTEGER NOT NULL,
      claim_id TEXT NOT NULL,
      attempt INTEGER NOT NULL,
      taken_over INTEGER NOT NULL,
      owner TEXT NOT NULL,
      process TEXT,
      lease_end INTEGER NOT NULL,
      fingerprint TEXT NOT NULL,
      earlier_seen_at INTEGER,
      earlier_fingerprint TEXT,
      result TEXT,
      outcome TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      seen_at INTEGER NOT NULL
    ) STRICT`,
    `CREATE TABLE ${floor} (id INTEGER PRIMARY KEY CHECK (id = 1), token INTEGER NOT NULL) STRICT`,
    `INSERT INTO ${floor} (id, token) VALUES (1, 0)`,
    // a trigger, so that tokens do not come back either after somebody deletes rows by hand
    `CREATE TRIGGER ${removed} AFTER DELETE ON ${table}
      WHEN OLD.token > (SELECT token FROM ${floor})
      BEGIN UPDATE ${floor} SET token = OLD.token; END`
  ])
})

/** The claim's rule, as `EffectRecord.claim` states it: a row that is there is changed only where it can be claimed. */
const claimSql = ({ floor, table }: Names, now: string): string => {
  const repeated = "(e.status = 'held' AND e.claim_id = excluded.claim_id)"
  const unlessRepeated = (column: string, otherwise: string) =>
    `${column} = CASE WHEN ${repeated} THEN e.${column} ELSE ${otherwise} END`
  // the attempt before, where it may have applied something
  const earlier = (column: string, value: string) =>
    `${column} = CASE WHEN ${repeated} THEN e.${column}
      WHEN e.status = 'released' AND e.doubt = 'none' THEN NULL ELSE ${value} END`
  // who did not release may have lived until the end of its lease
  const lastAlive = "CASE e.status WHEN 'held' THEN min(e.lease_end, excluded.seen_at) ELSE e.seen_at END"
  return `INSERT INTO ${table} AS e (
    digest, key, tool, run_id, status, doubt, token, claim_id, attempt, taken_over, owner, process, lease_end,
    fingerprint, created_at, updated_at, seen_at
  ) VALUES (
    ?, ?, ?, ?, 'held', 'none', (SELECT token FROM ${floor}) + 1, ?, 1, 0, ?, ?, ${now} + ?,
    ?, ${now}, ${now}, ${now}
  )
  ON CONFLICT (digest) DO UPDATE SET
    ${unlessRepeated("run_id", "excluded.run_id")},
    ${unlessRepeated("doubt", "CASE WHEN e.status = 'held' THEN 'inDoubt' ELSE e.doubt END")},
    ${unlessRepeated("token", "e.token + 1")},
    ${unlessRepeated("attempt", "e.attempt + 1")},
    ${unlessRepeated("taken_over", "e.status = 'held'")},
    ${unlessRepeated("owner", "excluded.owner")},
    ${unlessRepeated("fingerprint", "excluded.fingerprint")},
    ${earlier("earlier_seen_at", lastAlive)},
    ${earlier("earlier_fingerprint", "e.fingerprint")},
    status = 'held',
    claim_id = excluded.claim_id,
    process = excluded.process,
    lease_end = excluded.lease_end,
    updated_at = excluded.updated_at,
    seen_at = excluded.seen_at
  WHERE e.tool = excluded.tool
    AND e.doubt IN (${literals(doubts)})
    AND (
      e.status = 'released'
      OR (e.status = 'held' AND (e.claim_id = excluded.claim_id OR e.lease_end <= excluded.seen_at OR e.process = ?))
    )
  RETURNING ${grantColumns.join(", ")}`
}

/** The release's rule, as `EffectRecord.release` states it. */
const releaseSql = ({ table }: Names, now: string): string => {
  const looked =
    "WHEN ? IN ('clean', CASE doubt WHEN 'inDoubt' THEN 'tried' END) AND ? = 0 AND earlier_seen_at IS NOT NULL"
  return `UPDATE ${table} SET
    status = 'released',
    doubt = CASE ? WHEN 'inDoubt' THEN 'inDoubt'
      WHEN 'tried' THEN CASE WHEN ? = 0 AND doubt = 'inDoubt' THEN 'inDoubt' ELSE 'tried' END
      ELSE CASE WHEN ? = 0 THEN doubt ELSE 'none' END END,
    seen_at = CASE ${looked} THEN earlier_seen_at ELSE ${now} END,
    fingerprint = CASE ${looked} THEN earlier_fingerprint ELSE fingerprint END,
    taken_over = 0,
    process = NULL,
    lease_end = ${now},
    earlier_seen_at = NULL,
    earlier_fingerprint = NULL,
    updated_at = ${now}
  WHERE digest = ? AND token = ? AND status = 'held'
  RETURNING 1`
}

const conditions = (filter: ListFilter): ReadonlyArray<readonly [condition: string, value: string | number]> => {
  const all = [
    ["run_id = ?", filter.runId],
    ["tool = ?", filter.tool],
    ["status = ?", filter.status],
    ["doubt = ?", filter.doubt],
    ["updated_at >= ?", filter.updatedSince],
    ["updated_at < ?", filter.updatedBefore]
  ] as const
  return all.flatMap(([condition, value]) => value === undefined ? [] : [[condition, value] as const])
}

const makeStatements = (names: Names, now: string = databaseClock): SingleStatements => {
  const { table } = names
  const text = {
    look: `SELECT ${lookColumns.slice(0, -1).join(", ")},
      CASE WHEN status = 'held' THEN lease_end - ${now} END FROM ${table} WHERE digest = ?`,
    claim: claimSql(names, now),
    complete: `UPDATE ${table} SET status = 'recorded', doubt = 'none', result = ?, outcome = ?, fingerprint = ?,
      process = NULL, earlier_seen_at = NULL, earlier_fingerprint = NULL, updated_at = ${now}, seen_at = ${now}
      WHERE digest = ? AND token = ? AND status = 'held' RETURNING 1`,
    release: releaseSql(names, now),
    renew: `UPDATE ${table} SET lease_end = ${now} + ?, updated_at = ${now}, seen_at = ${now}
      WHERE digest = ? AND token = ? AND status = 'held' RETURNING 1`,
    fence: `SELECT status, token FROM ${table} WHERE digest = ?`,
    get: `SELECT ${columns.join(", ")}, ${now} FROM ${table} WHERE digest = ?`,
    replace: `UPDATE ${table} SET status = ?, doubt = ?, token = ?, taken_over = ?, lease_end = ?,
      earlier_seen_at = ?, earlier_fingerprint = ?, result = ?, outcome = ?, updated_at = ?, seen_at = ?, process = NULL
      WHERE digest = ? AND status = ? AND token = ? AND lease_end = ? AND updated_at = ? AND result IS ? RETURNING 1`,
    remove: `DELETE FROM ${table} WHERE digest = ? RETURNING 1`,
    prune: `DELETE FROM ${table} WHERE id IN (
        SELECT id FROM ${table}
        WHERE status IN ('released', 'recorded') AND doubt <> 'inDoubt' AND updated_at < ${now} - ? LIMIT ?
      ) RETURNING 1`,
    sign: `SELECT status || ' ' || token || ' ' || (result IS NULL) , CASE WHEN status = 'held' THEN process END
      FROM ${table} WHERE digest = ?`
  }
  const byKey = (sql: string) => (key: string): Query => ({ sql, params: [digest(key)] })
  return {
    look: byKey(text.look),
    claim: ({ claimId, deadProcess, fingerprint, key, lease, owner, process, runId, tool }) => ({
      sql: text.claim,
      params: [digest(key), key, tool, runId, claimId, owner, process, millis(lease), fingerprint, deadProcess]
    }),
    complete: ({ fingerprint, key, outcome, result, token }) => ({
      sql: text.complete,
      params: [result, outcome, fingerprint, digest(key), token]
    }),
    release: ({ cleared, key, token, verdict }) => {
      const clears = cleared ? 1 : 0
      return {
        sql: text.release,
        params: [verdict, clears, clears, verdict, clears, verdict, clears, digest(key), token]
      }
    },
    renew: ({ key, lease, token }) => ({ sql: text.renew, params: [millis(lease), digest(key), token] }),
    fence: byKey(text.fence),
    get: byKey(text.get),
    replace: (previous, next) => ({
      sql: text.replace,
      params: [
        next.status,
        next.doubt,
        next.token,
        next.takenOver ? 1 : 0,
        next.leaseEnd,
        next.earlier?.seenAt ?? null,
        next.earlier?.fingerprint ?? null,
        next.result ?? null,
        next.outcome ?? null,
        next.updatedAt,
        next.seenAt,
        digest(previous.key),
        previous.status,
        previous.token,
        previous.leaseEnd,
        previous.updatedAt,
        previous.result ?? null
      ]
    }),
    list: (filter, after, limit) => {
      const where = [["id > ?", after === undefined ? 0 : Number(after)] as const, ...conditions(filter)]
      return {
        sql: `SELECT id, ${columns.join(", ")} FROM ${table} WHERE ${
          where.map(([condition]) => condition).join(" AND ")
        } ORDER BY id LIMIT ?`,
        params: [...where.map(([, value]) => value), limit]
      }
    },
    remove: byKey(text.remove),
    prune: (olderThan, limit) => ({ sql: text.prune, params: [millis(olderThan), limit] }),
    sign: byKey(text.sign),
    version: { sql: "SELECT (SELECT data_version FROM pragma_data_version), total_changes()", params: [] }
  }
}

/** What is asked of a ledger under the name `table`; `now` replaces the clock by another expression of SQL. */
export const statements = (table: string, now: string | undefined): SingleStatements =>
  makeStatements(namesOf(table), now)

/** SQLite 3.42 or newer. */
export const migrations = (table: string): Migrations => migrationsOf(namesOf(table))

/** Where changes are seen in SQLite. */
export const source = (executor: SqlExecutor, { sign, version }: SingleStatements): Source => ({
  look: (keys) =>
    Effect.forEach(keys, (key) =>
      Effect.map(executor.read(sign(key)), ([row]) => ({
        sign: row === undefined ? "" : String(row[0]),
        process: typeof row?.[1] === "string" ? row[1] : undefined
      }))),
  version: Effect.map(executor.read(version), String)
})
