/**
 * What a claim asks: `claim` makes the row of a new key, or reads the row that is there, in one statement; `take` takes a
 * row over that was read as free.
 *
 * **Details**
 *
 * - A record is only read: no row is locked or written, and the transaction gets no number that would have to be flushed.
 *   (`ON CONFLICT DO UPDATE ... WHERE` would lock and write the row of every replay.)
 * - What can be taken over stands in a statement of its own, since a statement costs by its length, and nearly all claims
 *   are of new keys or of records.
 * - The rule of `EffectRecord.claim` stands in the conditions of the update, which the database checks again on the row's
 *   newest version if it had to wait for it. Where somebody else was faster, nothing is granted, and the claim is asked
 *   again.
 * - Statements for many take arrays of the values of those for one, of requests of which no two have one key, and answer
 *   with the request's number, counted from 1. They make and lock rows in the order of their digests, so that two of them
 *   cannot wait for each other.
 */
import { doubts, grantColumns, lookColumns } from "../rows.ts"
import { literal, type Names } from "./names.ts"
import { nextToken } from "./statements.ts"

/** The request's values as expressions of SQL. */
type Request = Readonly<
  Record<"digest" | "key" | "tool" | "runId" | "claimId" | "owner" | "lease" | "fingerprint", string>
>

/** Parameters: digest, key, tool, run, claim id, owner, lease, fingerprint. */
const alone: Request = {
  digest: "$1",
  key: "$2::text",
  tool: "$3::text",
  runId: "$4::text",
  claimId: "$5::text",
  owner: "$6::text",
  lease: "$7::int8",
  fingerprint: "$8::text"
}

const among: Request = {
  digest: "i.digest",
  key: "i.key",
  tool: "i.tool",
  runId: "i.run_id",
  claimId: "i.claim_id",
  owner: "i.owner",
  lease: "i.lease::int8",
  fingerprint: "i.fingerprint"
}

const input = `input AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
      WITH ORDINALITY AS i (digest, key, tool, run_id, claim_id, owner, lease, fingerprint, n)
  )`

/** The new row, whose first token is its number in lists, too. */
const inserted = (request: Request, token: string, now: string): Readonly<Record<string, string>> => ({
  digest: request.digest,
  id: token,
  key: request.key,
  tool: request.tool,
  run_id: request.runId,
  status: "'held'",
  doubt: "'none'",
  token,
  claim_id: request.claimId,
  attempt: "1",
  taken_over: "false",
  owner: request.owner,
  lease_end: `${now} + ${request.lease}`,
  fingerprint: request.fingerprint,
  created_at: now,
  updated_at: now,
  seen_at: now
})

const insert = ({ table }: Names, row: Readonly<Record<string, string>>): string =>
  `INSERT INTO ${table} AS e (${Object.keys(row).join(", ")}) SELECT ${Object.values(row).join(", ")}`

/** The columns of `Look`. */
const looked = (now: string): string =>
  lookColumns.map((column) =>
    column === "remaining"
      ? `CASE WHEN f.status = 'held' THEN f.lease_end - ${now} END`
      : column === "process"
      ? "NULL::text"
      : `f.${column}`
  ).join(", ")

const claimable = (request: Request, now: string): string =>
  `e.digest = ${request.digest} AND e.key = ${request.key} AND e.tool = ${request.tool}
    AND e.doubt IN (${doubts.map(literal).join(", ")}) AND (
      e.status = 'released'
      OR (e.status = 'held' AND (e.claim_id = ${request.claimId} OR e.lease_end <= ${now}))
    )`

const taken = (names: Names, request: Request, now: string): string => {
  const repeated = `e.status = 'held' AND e.claim_id = ${request.claimId}`
  const unlessRepeated = (column: string, otherwise: string) =>
    `${column} = CASE WHEN ${repeated} THEN e.${column} ELSE ${otherwise} END`
  // the attempt before, where it may have applied something
  const earlier = (column: string, value: string) =>
    `${column} = CASE WHEN ${repeated} THEN e.${column}
      WHEN e.status = 'released' AND e.doubt = 'none' THEN NULL ELSE ${value} END`
  // who did not release may have lived until the end of its lease
  const lastAlive = `CASE e.status WHEN 'held' THEN LEAST(e.lease_end, ${now}) ELSE e.seen_at END`
  return `UPDATE ${names.table} AS e SET
    ${unlessRepeated("run_id", request.runId)},
    ${unlessRepeated("doubt", "CASE WHEN e.status = 'held' THEN 'inDoubt' ELSE e.doubt END")},
    ${unlessRepeated("token", `GREATEST(e.token + 1, ${nextToken(names)})`)},
    ${unlessRepeated("attempt", "e.attempt + 1")},
    ${unlessRepeated("taken_over", "e.status = 'held'")},
    ${unlessRepeated("owner", request.owner)},
    ${unlessRepeated("fingerprint", request.fingerprint)},
    ${earlier("earlier_seen_at", lastAlive)},
    ${earlier("earlier_fingerprint", "e.fingerprint")},
    status = 'held',
    claim_id = ${request.claimId},
    lease_end = ${now} + ${request.lease},
    updated_at = ${now},
    seen_at = ${now}`
}

const grants = grantColumns.map((column) => `e.${column}`).join(", ")

export const claimSql = (names: Names, now: string) => {
  const { table } = names
  const token = nextToken(names)
  const nulls = lookColumns.map(() => "NULL").join(", ")
  return {
    claim: {
      /** A row with the token of the new row, or with NULL and the columns of `Look`; none where somebody was faster. */
      one: `WITH made AS (
          ${insert(names, inserted(alone, "n.token", now))}
          FROM (SELECT ${token} AS token WHERE NOT EXISTS (SELECT FROM ${table} AS f WHERE f.digest = $1)) AS n
          ON CONFLICT (digest) DO NOTHING RETURNING e.token
        )
        SELECT m.token, ${nulls} FROM made AS m
        UNION ALL SELECT NULL, ${looked(now)} FROM ${table} AS f WHERE f.digest = $1`,
      /** A row for each request. New rows are numbered in the order of their requests, which is that of lists. */
      many: `WITH ${input}, made AS (
          ${insert(names, inserted(among, "i.token", now))}
          FROM (
            SELECT i.*, ${token} AS token FROM (
              SELECT i.* FROM input AS i
              WHERE NOT EXISTS (SELECT FROM ${table} AS f WHERE f.digest = i.digest) ORDER BY i.n
            ) AS i
          ) AS i
          ORDER BY i.digest
          ON CONFLICT (digest) DO NOTHING RETURNING e.digest, e.token
        )
        SELECT i.n, m.token, ${looked(now)} FROM input AS i
          LEFT JOIN made AS m ON m.digest = i.digest LEFT JOIN ${table} AS f ON f.digest = i.digest`
    },
    take: {
      /** The columns of the grant, if it is granted. */
      one: `${taken(names, alone, now)} WHERE ${claimable(alone, now)} RETURNING ${grants}`,
      /** A row for each grant. */
      many: `WITH ${input}, locked AS MATERIALIZED (
          SELECT e.digest FROM ${table} AS e JOIN input AS i ON ${claimable(among, now)}
          ORDER BY e.digest FOR NO KEY UPDATE OF e
        )
        ${taken(names, among, now)} FROM input AS i
        WHERE ${claimable(among, now)} AND e.digest IN (SELECT digest FROM locked) RETURNING i.n, ${grants}`
    }
  }
}
