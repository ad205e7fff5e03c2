/**
 * The ledger in Postgres's words, but for the statements of who claims.
 *
 * **Details**
 *
 * All parameters but digests are sent as text and cast where they stand, so that one statement is prepared once, whatever
 * its values are.
 *
 * The clock of leases is `statement_timestamp()`: when the statement reached the database. It is one value in all parts of
 * a statement, and a statement that had to wait for a row's lock is not late with it, but early: it takes over only what
 * was free when it came, and a lease that it writes ends no sooner than its holder believes, who counts from before.
 */
import type { EffectRecord } from "../../EffectRecord.ts"
import type { ListFilter } from "../../store/IEffectStore.ts"
import type { Query, Statements } from "../dialect.ts"
import { columns, doubts, statuses } from "../rows.ts"
import { literal, type Names } from "./names.ts"
import { digestOf } from "./text.ts"

export const databaseClock = "floor(extract(epoch FROM statement_timestamp()) * 1000)::int8"

/** Milliseconds as a whole number that bigint can hold, and add to. */
export const millis = (value: number): string => value > 0 ? String(Math.min(Math.ceil(value), 2 ** 52)) : "0"

/** The next token, or a part of an expression that takes it. */
export const nextToken = ({ tokens }: Names): string => `nextval(${literal(tokens)}::regclass)`

/** Tells those who listen, if anybody waits for the row. */
export const notice = ({ channel }: Names, row: string): string =>
  `CASE WHEN ${row}.awaited THEN pg_notify(${literal(channel)}, encode(${row}.digest, 'hex')) IS NULL END`

const optional = (value: string | number | undefined): string | null => value === undefined ? null : String(value)

const selected = (row: string): string => columns.map((column) => `${row}.${column}`).join(", ")

/** Numbers the parameters of a statement whose conditions vary. */
const makeParameters = () => {
  const params: Array<unknown> = []
  return { params, add: (value: unknown, type: string): string => `$${params.push(value)}::${type}` }
}

/** A value of a closed set as a literal, so that the planner sees which index it needs; anything else is a parameter. */
const member = (values: ReadonlyArray<string>, value: string, add: (value: unknown, type: string) => string): string =>
  values.includes(value) ? literal(value) : add(value, "text")

const listOf = ({ table }: Names) => (filter: ListFilter, after: string | undefined, limit: number): Query => {
  const { add, params } = makeParameters()
  const where: Array<string> = []
  if (after !== undefined) {
    const [createdAt, id] = after.split(" ")
    where.push(`(e.created_at, e.id) > (${add(createdAt, "int8")}, ${add(id, "int8")})`)
  }
  if (filter.runId !== undefined) {
    const runId = add(filter.runId, "text")
    where.push(`left(e.run_id, 64) = left(${runId}, 64) AND e.run_id = ${runId}`)
  }
  if (filter.tool !== undefined) where.push(`e.tool = ${add(filter.tool, "text")}`)
  if (filter.status !== undefined) where.push(`e.status = ${member(statuses, filter.status, add)}`)
  if (filter.doubt !== undefined) {
    where.push(`e.doubt = ${member(doubts, filter.doubt, add)}`)
    // a record leaves no doubt: this is what the index of open keys is told by
    if (filter.doubt !== "none") where.push("e.status <> 'recorded'")
  }
  if (filter.updatedSince !== undefined) where.push(`e.updated_at >= ${add(String(filter.updatedSince), "float8")}`)
  if (filter.updatedBefore !== undefined) where.push(`e.updated_at < ${add(String(filter.updatedBefore), "float8")}`)
  const condition = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`
  return {
    sql: `SELECT e.created_at || ' ' || e.id, ${selected("e")} FROM ${table} AS e ${condition}
      ORDER BY e.created_at, e.id LIMIT ${add(String(limit), "int8")}`,
    params
  }
}

export const statementsOf = (names: Names, now: string): Statements => {
  const { table } = names
  const prunable = (row: string) =>
    `${row}.status IN ('released', 'recorded') AND ${row}.doubt <> 'inDoubt' AND ${row}.updated_at < ${now} - $1::int8`
  const text = {
    get: `SELECT ${selected("e")}, ${now} FROM ${table} AS e WHERE e.digest = $1`,
    // the new token is the old one and one more: the sequence keeps ahead of it
    replace: `UPDATE ${table} AS e SET status = $2::text, doubt = $3::text, token = $4::int8, taken_over = $5::boolean,
      lease_end = $6::int8, earlier_seen_at = $7::int8, earlier_fingerprint = $8::text, result = $9::text,
      outcome = $10::text, updated_at = $11::int8, seen_at = $12::int8
      WHERE e.digest = $1 AND e.status = $13::text AND e.token = $14::int8 AND e.lease_end = $15::int8
        AND e.updated_at = $16::int8 AND e.result IS NOT DISTINCT FROM $17::text
      RETURNING ${nextToken(names)}, ${notice(names, "e")}`,
    remove: `DELETE FROM ${table} AS e WHERE e.digest = $1 RETURNING ${notice(names, "e")}`,
    // rows that somebody works on are left for the next time
    prune: `WITH old AS MATERIALIZED (
        SELECT o.digest FROM ${table} AS o WHERE ${prunable("o")} AND o.created_at < ${now} - $1::int8
        ORDER BY o.created_at, o.id LIMIT $2::int8 FOR UPDATE SKIP LOCKED
      )
      DELETE FROM ${table} AS e USING old WHERE e.digest = old.digest AND ${prunable("e")} RETURNING 1`
  }
  return {
    get: (key) => ({ sql: text.get, params: [digestOf(key)] }),
    replace: (previous: EffectRecord, next: EffectRecord) => ({
      sql: text.replace,
      params: [
        digestOf(previous.key),
        next.status,
        next.doubt,
        String(next.token),
        next.takenOver ? "true" : "false",
        String(next.leaseEnd),
        optional(next.earlier?.seenAt),
        optional(next.earlier?.fingerprint),
        optional(next.result),
        optional(next.outcome),
        String(next.updatedAt),
        String(next.seenAt),
        previous.status,
        String(previous.token),
        String(previous.leaseEnd),
        String(previous.updatedAt),
        optional(previous.result)
      ]
    }),
    list: listOf(names),
    remove: (key) => ({ sql: text.remove, params: [digestOf(key)] }),
    prune: (olderThan, limit) => ({ sql: text.prune, params: [millis(olderThan), String(limit)] })
  }
}
