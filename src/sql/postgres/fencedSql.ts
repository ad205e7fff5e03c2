/**
 * What only the holder of a claim may do, each in one statement, for one item or for many: `complete`, `release`, `renew`
 * as `EffectRecord` states them. Statements for many lock their rows in the order of the digests, so that two of them
 * cannot wait for each other.
 */
import type { Names } from "./names.ts"
import { notice } from "./statements.ts"

/** What a statement does to a row that is still held with the item's token. */
interface Fenced {
  /** The item's values after digest and token, by name and type; all are sent as text. */
  readonly values: Readonly<Record<string, string>>
  readonly set: (value: (name: string) => string) => string
  /** Whether those who wait for the key are told. */
  readonly tells: boolean
}

const complete = (now: string): Fenced => ({
  values: { result: "text", outcome: "text", fingerprint: "text" },
  set: (value) =>
    `status = 'recorded', doubt = 'none', result = ${value("result")}, outcome = ${value("outcome")},
      fingerprint = ${value("fingerprint")}, earlier_seen_at = NULL, earlier_fingerprint = NULL, updated_at = ${now},
      seen_at = ${now}`,
  tells: true
})

const release = (now: string): Fenced => ({
  values: { verdict: "text", cleared: "boolean" },
  set: (value) => {
    const verdict = value("verdict")
    const cleared = value("cleared")
    // the row goes on speaking of the attempt before, where this one only looked, or failed without anything applied and
    // left the doubt of that one as it was
    const looked = `(${verdict} = 'clean' OR (${verdict} = 'tried' AND e.doubt = 'inDoubt')) AND NOT ${cleared}
      AND e.earlier_seen_at IS NOT NULL`
    return `status = 'released',
      doubt = CASE WHEN ${verdict} = 'inDoubt' OR (e.doubt = 'inDoubt' AND NOT ${cleared}) THEN 'inDoubt'
        WHEN ${verdict} = 'tried' THEN 'tried' WHEN ${cleared} THEN 'none' ELSE e.doubt END,
      seen_at = CASE WHEN ${looked} THEN e.earlier_seen_at ELSE ${now} END,
      fingerprint = CASE WHEN ${looked} THEN e.earlier_fingerprint ELSE e.fingerprint END,
      taken_over = false, lease_end = ${now}, earlier_seen_at = NULL, earlier_fingerprint = NULL, updated_at = ${now}`
  },
  tells: true
})

const renew = (now: string): Fenced => ({
  values: { lease: "int8" },
  set: (value) => `lease_end = ${now} + ${value("lease")}, updated_at = ${now}, seen_at = ${now}`,
  tells: false
})

const told = (names: Names, { tells }: Fenced): string => tells ? `, ${notice(names, "e")}` : ""

/** One item: a row if it was done. Parameters: digest, token, and the values. */
const one = (names: Names, fenced: Fenced): string => {
  const order = Object.keys(fenced.values)
  const value = (name: string) => `$${order.indexOf(name) + 3}::${fenced.values[name]}`
  return `UPDATE ${names.table} AS e SET ${fenced.set(value)}
    WHERE e.digest = $1 AND e.token = $2::int8 AND e.status = 'held' RETURNING 1${told(names, fenced)}`
}

/** Many items of different keys: the numbers of those that were done, counted from 1. Parameters: arrays of `one`'s. */
const many = (names: Names, fenced: Fenced): string => {
  const order = Object.keys(fenced.values)
  const value = (name: string) => `i.${name}::${fenced.values[name]}`
  const held = "e.digest = i.digest AND e.token = i.token::int8 AND e.status = 'held'"
  return `WITH input AS MATERIALIZED (
      SELECT * FROM unnest($1::bytea[], $2::text[], ${order.map((_, index) => `$${index + 3}::text[]`).join(", ")})
        WITH ORDINALITY AS i (digest, token, ${order.join(", ")}, n)
    ), locked AS MATERIALIZED (
      SELECT e.digest FROM ${names.table} AS e JOIN input AS i ON ${held} ORDER BY e.digest FOR NO KEY UPDATE OF e
    )
    UPDATE ${names.table} AS e SET ${fenced.set(value)} FROM input AS i
    WHERE ${held} AND e.digest IN (SELECT digest FROM locked) RETURNING i.n${told(names, fenced)}`
}

/** The texts for one and for many. */
export const fencedSql = (names: Names, now: string) => {
  const both = (fenced: Fenced) => ({ one: one(names, fenced), many: many(names, fenced) })
  return {
    complete: both(complete(now)),
    release: both(release(now)),
    renew: both(renew(now)),
    /** Number, status and token of each row that there is. Parameter: an array of digests. */
    fences: `SELECT i.n, e.status, e.token FROM unnest($1::bytea[]) WITH ORDINALITY AS i (digest, n)
      JOIN ${names.table} AS e ON e.digest = i.digest`
  }
}
