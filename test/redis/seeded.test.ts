/**
 * Bugs in the scripts of Redis, each convicted by the law that it breaks.
 */
import { assert, it } from "@effect/vitest"
import { RedisEffectStore } from "chamvi-effect/RedisEffectStore"
import { StoreClock } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { hash, randomUUID } from "node:crypto"
import { describe } from "vitest"
import * as scripts from "../../src/redis/scripts.ts"
import { redisIsThere, RedisLayer } from "../support/redis.ts"
import { type Bug, isConvicted, seeding } from "../support/seeded.ts"

const bySha = new Map(
  Object.values(scripts).flatMap((lua) => typeof lua === "string" ? [[hash("sha1", lua), lua] as const] : [])
)

const bugs: Readonly<Record<string, Bug>> = {
  "a claim that is granted although the key is held": {
    law: "a held key is refused, with its tool, its owner and the rest of its lease",
    changes: [["row[1] ~= tool or remaining > 0", "row[1] ~= tool"]]
  },
  "a claim that is granted to another tool": {
    law: "a key belongs to its tool, while it is held, after its lease, released and recorded",
    changes: [["row[1] ~= tool or remaining > 0", "remaining > 0"]]
  },
  "a lease that ends a millisecond early": {
    law: "a lease holds at its last millisecond",
    changes: [["remaining > 0", "remaining > 1"]]
  },
  "a repeated claimId that gets a second token": {
    law: "a repeated claimId is answered with the same grant, and a new lease",
    changes: [["if held and row[5] == claim and row[1] == tool then", "if false then"]]
  },
  "a takeover without doubt": {
    law: "a takeover is in doubt, and says when the earlier attempt can last have lived and with which input",
    changes: [["row[3], row[7] = 'inDoubt', 1", "row[7] = 1"]]
  },
  "a takeover with the token of the earlier claim": {
    law: "tokens of a key grow over releases and takeovers",
    changes: [["row[4] + 1, claim", "row[4], claim"]]
  },
  "a first token that knows nothing of removals": {
    law: "no token of a removed row comes back",
    changes: [["local token = math.max(micros, rest + 1)", "local token = 1"]]
  },
  "a completion with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [["or row[4] ~= tonumber(ARGV[2]) or status == 'released' then", "or status == 'released' then"]]
  },
  "a completion of a released claim": {
    law: "after a release its token can neither complete nor renew",
    changes: [["or status == 'released' then return {'lost'}", "then return {'lost'}"]]
  },
  "a second completion that overwrites the first": {
    law: "complete, repeated with one token, answers ok and keeps the first record",
    changes: [["if status == 'recorded' then return {'ok'} end", ""]]
  },
  "a release with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [["or row[4] ~= tonumber(ARGV[2]) or status == 'recorded' then", "or status == 'recorded' then"]]
  },
  "a renewal with a stale token": {
    law: "a stale token can neither complete nor release nor renew, and changes nothing",
    changes: [["or row[4] ~= tonumber(ARGV[2]) or status ~= 'held' then", "or status ~= 'held' then"]]
  },
  "a release that clears the doubt of an earlier attempt": {
    law: `a key that was "inDoubt", released "clean", is "inDoubt"`,
    changes: [["if verdict == 'inDoubt' or before == 'inDoubt' then", "if verdict == 'inDoubt' then"], [
      "row[3] = before",
      "row[3] = 'none'"
    ]]
  },
  "a failing attempt that the row never speaks of": {
    law: "an attempt that failed is the one that the row speaks of",
    changes: [["local looked = verdict == 'clean' or", "local looked = verdict ~= 'inDoubt' or"]]
  },
  "a believed no that clears nothing": {
    law: `a key that was "inDoubt", released "clean" after a believed no, is "none"`,
    changes: [["if cleared then before = 'none' end", ""]]
  },
  "retention that drops keys in doubt": {
    law: "prune removes what is recorded or released and old, exactly",
    changes: [["row[3] == 'inDoubt' or row[15]", "row[15]"]]
  },
  "a record that wakes nobody": {
    law: "a record wakes all who wait for the key",
    changes: [[/(wake\(ARGV\[6\]\))/, ""]]
  }
}

describe.skipIf(!redisIsThere)("a bug in the scripts of Redis", () => {
  it.layer(RedisLayer, { excludeTestServices: true, timeout: 30_000 })((it) => {
    for (const [name, { changes, law }] of Object.entries(bugs)) {
      it.effect(`is convicted: ${name}`, () =>
        Effect.gen(function*() {
          const redis = yield* Redis
          const { change, missed } = seeding(changes)
          const buggy: Redis["Service"] = {
            ...redis,
            send: (command, ...args) => {
              const lua = command === "EVALSHA" ? bySha.get(args[0]!) : undefined
              return lua === undefined
                ? redis.send(command, ...args)
                : redis.send("EVAL", change(lua), ...args.slice(1))
            }
          }
          let now = 1_700_000_000_000
          const advance = (milliseconds: number) => Effect.sync(() => void (now += milliseconds))
          const store = Layer.merge(
            RedisEffectStore.layer({ prefix: `test:${randomUUID()}:`, now: () => now }),
            Layer.succeed(StoreClock, { advance })
          ).pipe(Layer.provide(Layer.succeed(Redis, buggy)))
          yield* isConvicted(law, store)
          assert.deepStrictEqual(missed(), [])
        }))
    }
  })
})
