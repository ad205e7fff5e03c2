/**
 * Bugs in the statements for Postgres, each convicted by the law that it breaks.
 */
import { assert, it } from "@effect/vitest"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { StoreClock } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { describe } from "vitest"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { type Bug, isConvicted, seeding } from "../support/seeded.ts"

const bugs: Readonly<Record<string, Bug>> = {
  "a claim that is granted although the key is held": {
    law: "a held key is refused, with its tool, its owner and the rest of its lease",
    changes: [[/THEN f\.lease_end - \(.*?\) END/, "THEN 0 END"], [/ OR e\.lease_end <= \([^)]*\)/, " OR true"]]
  },
  "a claim that is granted to another tool": {
    law: "a key belongs to its tool, while it is held, after its lease, released and recorded",
    changes: [["f.tool", "$3::text"]]
  },
  "a lease that ends a millisecond late": {
    law: "a lease is over at its very end",
    changes: [["THEN f.lease_end - (", "THEN 1 + f.lease_end - ("]]
  },
  "a repeated claimId that gets a second token": {
    law: "a repeated claimId is answered with the same grant, and a new lease",
    changes: [["CASE WHEN e.status = 'held' AND e.claim_id = $5::text THEN e.token", "CASE WHEN false THEN e.token"]]
  },
  "a takeover without doubt": {
    law: "a takeover is in doubt, and says when the earlier attempt can last have lived and with which input",
    changes: [["THEN 'inDoubt' ELSE e.doubt END", "THEN 'none' ELSE e.doubt END"]]
  },
  "a takeover with the token of the earlier claim": {
    law: "tokens of a key grow over releases and takeovers",
    changes: [[/GREATEST\(e\.token \+ 1, nextval\(.*?\)\)/, "e.token"]]
  },
  "a takeover that counts from the earlier claim's last renewal": {
    law: "a takeover is in doubt, and says when the earlier attempt can last have lived and with which input",
    changes: [[/CASE e\.status WHEN 'held' THEN LEAST\(.*?\) ELSE e\.seen_at END/, "e.seen_at"]]
  },
  "a completion with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [[/(SET status = 'recorded'.*?)AND e\.token = \$2::int8 AND/s, "$1AND ($2::int8 > 0) AND"]]
  },
  "a completion of a released claim": {
    law: "after a release its token can neither complete nor renew",
    changes: [[/(SET status = 'recorded'.*?)AND e\.status = 'held'/s, "$1"]]
  },
  "a release with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [[/(SET status = 'released'.*?)AND e\.token = \$2::int8 AND/s, "$1AND ($2::int8 > 0) AND"]]
  },
  "a renewal with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [[/(SET lease_end = .*?)AND e\.token = \$2::int8 AND/s, "$1AND ($2::int8 > 0) AND"]]
  },
  "a release that clears the doubt of an earlier attempt": {
    law: `a key that was "inDoubt", released "tried", is "inDoubt"`,
    changes: [[/ OR \(e\.doubt = 'inDoubt' AND NOT \$\d::boolean\)/, ""]]
  },
  "retention that drops keys in doubt": {
    law: "prune removes what is recorded or released and old, exactly",
    changes: [[/ AND [eo]\.doubt <> 'inDoubt'/, ""]]
  }
}

describe.skipIf(noPostgres)("a bug in the statements for Postgres", () => {
  for (const [name, { changes, law }] of Object.entries(bugs)) {
    it.live(`is convicted: ${name}`, () =>
      Effect.gen(function*() {
        const { change, missed } = seeding(changes)
        const schema = yield* freshSchema
        const clock = `"${schema}".test_clock`
        const Store = Layer.unwrap(Effect.gen(function*() {
          const sql = yield* SqlClient.SqlClient
          yield* sql.unsafe(`CREATE SCHEMA "${schema}"`)
          yield* sql.unsafe(`CREATE TABLE ${clock} AS SELECT 1700000000000::int8 AS now`)
          const buggy = new Proxy(sql, {
            get: (target, name) =>
              name === "unsafe"
                ? (text: string, params: ReadonlyArray<unknown>) => target.unsafe(change(text), params)
                : Reflect.get(target, name)
          })
          return Layer.merge(
            SqlEffectStore.layer({ schema, now: `(SELECT now FROM ${clock})` }),
            Layer.succeed(StoreClock, {
              advance: (milliseconds) =>
                Effect.asVoid(Effect.orDie(sql.unsafe(`UPDATE ${clock} SET now = now + ${milliseconds}`)))
            })
          ).pipe(Layer.provide(Layer.succeed(SqlClient.SqlClient, buggy)))
        })).pipe(Layer.provide(pool({ maxConnections: 4 })))
        yield* isConvicted(law, Store)
        assert.deepStrictEqual(missed(), [])
      }).pipe(Effect.scoped))
  }
})
