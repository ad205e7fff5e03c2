/**
 * A claim in one statement and one round trip: it reads the row, makes one where there is none, or takes the row over
 * where its state allows, and answers what it did and what it had read.
 *
 * **Details**
 *
 * - A record is only read: no row is locked or written, and the transaction gets no number that would have to be flushed.
 *   (`ON CONFLICT DO UPDATE ... WHERE` would lock and write the row of every replay.)
 * - The rule of `EffectRecord.claim` stands in the conditions of the update, which the database checks again on the row's
 *   newest version if it had to wait for it. Where somebody else was faster, nothing is granted and what was read looks
 *   free: then the claim is asked again.
 */
import { doubts, grantColumns, lookColumns } from "../rows.ts"
import { literal, type Names } from "./names.ts"
import { nextToken } from "./statements.ts"

/** The request's values as expressions of SQL. */
type Request = Readonly<
  Record<"digest" | "key" | "tool" | "runId" | "claimId" | "owner" | "lease" | "fingerprint", string>
>

const stored = [
  "digest",
  "id",
  "key",
  "tool",
  "run_id",
  "status",
  "doubt",
  "token",
  "claim_id",
  "attempt",
  "taken_over",
  "owner",
  "lease_end",
  "fingerprint",
  "created_at",
  "updated_at",
  "seen_at"
]

const inserted = (request: Request, token: string, now: string): string =>
  [
    request.digest,
    token,
    request.key,
    request.tool,
    request.runId,
    "'held'",
    "'none'",
    token,
    request.claimId,
    "1",
    "false",
    request.owner,
    `${now} + ${request.lease}`,
    request.fingerprint,
    now,
    now,
    now
  ].join(", ")

const looked = (row: string, now: string): string =>
  lookColumns.map((column) =>
    column === "remaining"
      ? `CASE WHEN ${row}.status = 'held' THEN ${row}.lease_end - ${now} END AS remaining`
      : column === "process"
      ? "NULL AS process"
      : `${row}.${column}`
  ).join(", ")

const granted = (row: string): string => grantColumns.map((column) => `${row}.${column}`).join(", ")

const claimable = (request: Request, now: string): string =>
  `e.key = ${request.key} AND e.tool = ${request.tool} AND e.doubt IN (${doubts.map(literal).join(", ")}) AND (
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
  return `${unlessRepeated("run_id", request.runId)},
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

/** What a claim's row answers: the columns of the grant, or NULLs, and those of `Look`, or NULLs. */
export const grantWidth = grantColumns.length

/** One request. Parameters: digest, key, tool, run, claim id, owner, lease, fingerprint. */
export const claimOne = (names: Names, now: string): string => {
  const request: Request = {
    digest: "$1",
    key: "$2::text",
    tool: "$3::text",
    runId: "$4::text",
    claimId: "$5::text",
    owner: "$6::text",
    lease: "$7::int8",
    fingerprint: "$8::text"
  }
  return `WITH found AS MATERIALIZED (
      SELECT ${looked("f", now)} FROM ${names.table} AS f WHERE f.digest = $1
    ), made AS (
      INSERT INTO ${names.table} AS e (${stored.join(", ")})
      SELECT ${inserted(request, "n.token", now)}
      FROM (SELECT ${nextToken(names)} AS token WHERE NOT EXISTS (SELECT FROM found)) AS n
      ON CONFLICT (digest) DO NOTHING
      RETURNING ${granted("e")}
    ), taken AS (
      UPDATE ${names.table} AS e SET ${taken(names, request, now)}
      WHERE e.digest = $1 AND ${claimable(request, now)}
      RETURNING ${granted("e")}
    )
    SELECT g.*, f.* FROM (SELECT) AS one
      LEFT JOIN (SELECT * FROM made UNION ALL SELECT * FROM taken) AS g ON true
      LEFT JOIN found AS f ON true`
}

/**
 * Many requests, of which no two have one key. Parameters: arrays of the values of `claimOne`. Answers the number of the
 * request, counted from 1, before the columns of `claimOne`.
 *
 * New rows are numbered in the order of their requests, which is that of lists; they are made, and old ones are locked, in
 * the order of their digests, so that two such statements cannot wait for each other.
 */
export const claimMany = (names: Names, now: string): string => {
  const request: Request = {
    digest: "i.digest",
    key: "i.key",
    tool: "i.tool",
    runId: "i.run_id",
    claimId: "i.claim_id",
    owner: "i.owner",
    lease: "i.lease::int8",
    fingerprint: "i.fingerprint"
  }
  return `WITH input AS MATERIALIZED (
      SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
        WITH ORDINALITY AS i (digest, key, tool, run_id, claim_id, owner, lease, fingerprint, n)
    ), found AS MATERIALIZED (
      SELECT i.n, ${looked("f", now)} FROM input AS i JOIN ${names.table} AS f ON f.digest = i.digest
    ), made AS (
      INSERT INTO ${names.table} AS e (${stored.join(", ")})
      SELECT ${inserted(request, "i.token", now)}
      FROM (
        SELECT i.*, ${nextToken(names)} AS token FROM (
          SELECT i.* FROM input AS i WHERE NOT EXISTS (SELECT FROM found AS f WHERE f.n = i.n) ORDER BY i.n
        ) AS i
      ) AS i
      ORDER BY i.digest
      ON CONFLICT (digest) DO NOTHING
      RETURNING e.digest, ${granted("e")}
    ), locked AS MATERIALIZED (
      SELECT e.digest FROM ${names.table} AS e JOIN input AS i ON e.digest = i.digest
      WHERE ${claimable(request, now)} ORDER BY e.digest FOR NO KEY UPDATE OF e
    ), taken AS (
      UPDATE ${names.table} AS e SET ${taken(names, request, now)}
      FROM input AS i
      WHERE e.digest = i.digest AND e.digest IN (SELECT digest FROM locked) AND ${claimable(request, now)}
      RETURNING e.digest, ${granted("e")}
    )
    SELECT i.n, ${granted("g")}, ${lookColumns.map((column) => `f.${column}`).join(", ")} FROM input AS i
      LEFT JOIN (SELECT * FROM made UNION ALL SELECT * FROM taken) AS g ON g.digest = i.digest
      LEFT JOIN found AS f ON f.n = i.n`
}
