/**
 * The store against the state machine of `EffectRecord`: random histories, the same for every store, in which each reply
 * and each row must be what the machine says.
 *
 * Tokens are the store's own affair as long as they grow: the machine's row takes the number over that the store gave.
 */
import { Duration, Effect } from "effect"
import type { ClaimReply, EffectRecord, Step } from "../../EffectRecord.ts"
import * as Machine from "../../EffectRecord.ts"
import type { EffectRecordError, EffectStoreError } from "../../errors.ts"
import { EffectResolution } from "../../EffectResolution.ts"
import { fail, law, type Laws, type LawViolation, resultOf, same, type Subject } from "../law.ts"

/** A small generator of numbers: the histories must be the same everywhere. */
const randomOf = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5 | 0
    return ((state ^ (state >>> 13)) >>> 0) % below
  }
}

const resolutions = [
  { resolution: EffectResolution.applied(1), json: "1" },
  { resolution: EffectResolution.applied(), json: undefined },
  { resolution: EffectResolution.applied(undefined), json: undefined },
  { resolution: EffectResolution.notApplied, json: undefined },
  { resolution: EffectResolution.unknown, json: undefined }
]

const verdicts = ["clean", "tried", "inDoubt"] as const
const outcomes = ["executed", "reconciled"] as const

type Broken = LawViolation | EffectStoreError | EffectRecordError

type Operation = (key: string, item: { readonly key: string; readonly token: number }) => Effect.Effect<void, Broken>

const history = Effect.fnUntraced(function*(subject: Subject, seed: number, steps: number) {
  const { advance, fresh, store } = subject
  const random = randomOf(seed)
  const pick = <A>(choices: ReadonlyArray<A>): A => choices[random(choices.length)]!
  const keys = [fresh(), fresh()]
  const rows = new Map<string, EffectRecord>()
  const tokens = new Map<string, Array<number>>(keys.map((key) => [key, [1]]))
  // the store's time, once a row has shown it
  let now = (yield* subject.row((yield* subject.held()).key)).createdAt
  const trace: Array<string> = []

  const put = (key: string, [next]: Step<unknown>) => {
    if (next !== undefined) rows.set(key, next)
  }

  const agree = <A>(actual: A, expected: A) =>
    Effect.catchTag(
      same(`step ${trace.length}`, actual, expected),
      "LawViolation",
      (violation) =>
        fail(
          `${violation.what} of history ${seed} (${trace.slice(-12).join("; ")})`,
          violation.expected,
          violation.actual
        )
    )

  const claim = Effect.fnUntraced(function*(key: string) {
    const request = {
      key,
      tool: pick(["a", "a", "a", "b"]),
      runId: pick(["r1", "r2"]),
      owner: pick(["o1", "o2"]),
      claimId: pick(["c1", "c2", "c3"]),
      lease: pick([0, 5, 10]),
      fingerprint: pick(["f1", "f2"])
    }
    trace.push(`claim ${request.tool} ${request.claimId} ${request.lease}`)
    const before = rows.get(key)
    const [next, expected] = Machine.claim(before, request, now, 0)
    const reply: ClaimReply = (yield* store.claim([request]))[0]!
    if (expected._tag !== "Claimed" || reply._tag !== "Claimed") {
      yield* agree(reply, expected)
      return
    }
    yield* agree({ ...reply, token: 0 }, { ...expected, token: 0 })
    const known = tokens.get(key)!
    const repeated = before !== undefined && expected.token === before.token
    if (repeated) yield* agree(reply.token, before.token)
    else if (known.length > 1 && reply.token <= Math.max(...known)) {
      return yield* fail("a new token", `more than ${Math.max(...known)}`, reply.token)
    }
    known.push(reply.token)
    rows.set(key, { ...next!, token: reply.token })
  })

  const operations: ReadonlyArray<Operation> = [
    claim,
    claim,
    claim,
    Effect.fnUntraced(function*(key, item) {
      const complete = {
        ...item,
        result: resultOf(random(9)),
        outcome: pick(outcomes),
        fingerprint: pick(["f1", "f2"])
      }
      trace.push(`complete ${item.token}`)
      const step = Machine.complete(rows.get(key), complete, now)
      yield* agree((yield* store.complete([complete]))[0], step[1])
      put(key, step)
    }),
    Effect.fnUntraced(function*(key, item) {
      const release = { ...item, verdict: pick(verdicts), cleared: random(4) === 0 }
      trace.push(`release ${item.token} ${release.verdict} ${release.cleared}`)
      const step = Machine.release(rows.get(key), release, now)
      yield* agree((yield* store.release([release]))[0], step[1])
      put(key, step)
    }),
    Effect.fnUntraced(function*(key, item) {
      const renew = { ...item, lease: pick([0, 5, 10]) }
      trace.push(`renew ${item.token} ${renew.lease}`)
      const step = Machine.renew(rows.get(key), renew, now)
      yield* agree((yield* store.renew([renew]))[0], step[1])
      put(key, step)
    }),
    Effect.fnUntraced(function*(key) {
      if (random(4) > 0) return
      const { json, resolution } = pick(resolutions)
      trace.push(`resolve ${resolution._tag} ${String(json)}`)
      const step = Machine.resolve(rows.get(key), resolution, json, now)
      yield* agree(yield* store.resolve(key, resolution), step[1])
      put(key, step)
    }),
    Effect.fnUntraced(function*(key) {
      if (random(6) > 0) return
      trace.push("remove")
      yield* agree(yield* store.remove(key), rows.delete(key))
    }),
    Effect.fnUntraced(function*() {
      if (random(6) > 0) return
      const olderThan = pick([0, 5])
      trace.push(`prune ${olderThan}`)
      yield* store.prune({ olderThan: Duration.millis(olderThan) })
      for (const [key, row] of rows) if (Machine.isPrunable(row, now - olderThan)) rows.delete(key)
    }),
    Effect.fnUntraced(function*() {
      const milliseconds = pick([1, 4, 5, 6])
      trace.push(`advance ${milliseconds}`)
      yield* advance(milliseconds)
      now += milliseconds
    })
  ]

  for (let step = 0; step < steps; step++) {
    const key = pick(keys)
    const known = tokens.get(key)!
    // mostly the newest token, sometimes a stale one
    const token = random(4) === 0 ? pick(known) : rows.get(key)?.token ?? known.at(-1)!
    yield* pick(operations)(key, { key, token })
    const expected = rows.get(key)
    const actual = yield* store.get(key)
    yield* agree(actual, expected)
  }
})

export const agreeing: Laws = Object.fromEntries(
  Array.from({ length: 8 }, (_, index) => [
    `random history ${index + 1}: every reply and every row is what the state machine of EffectRecord says`,
    law(function*(subject) {
      yield* history(subject, 1_000 + index, 300)
    })
  ])
)
