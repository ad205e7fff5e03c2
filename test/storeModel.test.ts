/**
 * The model that stores are held to: that it finds what is wrong, tells it in few calls, and tells it again; and that
 * stores whose clocks nobody moves pass it too.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution, EffectStore } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { StoreClock, storeModel, storeModelInRealTime, type StoreModelOptions } from "chamvi-effect/testing"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { asks, type Fault, grants, onlySays, renumbered, replace, resolves, shows } from "./storeFaults/fault.ts"
import { fencing } from "./storeFaults/fencing.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

const Moved = Layer.succeed(StoreClock, { advance: (milliseconds) => TestClock.adjust(milliseconds) })

const broken = (fault: Fault) =>
  Layer.effect(EffectStore, Effect.map(EffectStore, fault)).pipe(Layer.provide(Layer.fresh(EffectStore.layerMemory)))

/** What the model says of a store with the fault, or "" where it finds nothing. */
const verdictOn = (fault: Fault, options?: StoreModelOptions) =>
  Effect.match(Effect.provide(storeModel(options), Layer.merge(broken(fault), Moved)), {
    onSuccess: () => "",
    onFailure: ({ message }) => message
  })

const callsIn = (verdict: string): number => verdict.match(/^ {2}\d+\. /gm)?.length ?? 0

const replayIn = (verdict: string): string => JSON.parse(/\(replay: (".*")\)/.exec(verdict)?.[1] ?? `""`)

/** Each with the number of calls in which it can be told. */
const faults: Readonly<Record<string, readonly [calls: number, fault: Fault]>> = {
  "a lease that ends a millisecond late": [3, asks("claim", ({ lease }) => ({ lease: lease === 0 ? 0 : lease + 1 }))],
  "a takeover without doubt": [2, grants(({ takenOver }) => takenOver ? { doubt: "none" } : {})],
  "a claim that does not look at the tool": [
    2,
    asks("claim", (_, { row }) => row === undefined ? {} : { tool: row.tool })
  ],
  "a release that believes a stale token": [
    4,
    asks("release", ({ token }, { row }) => row !== undefined && token < row.token ? { token: row.token } : {})
  ],
  "a failed attempt that clears a doubt": [
    4,
    asks("release", ({ verdict }, { row }) => ({ cleared: verdict === "tried" && row?.doubt === "inDoubt" }))
  ],
  "a resolution that leaves the claim its token": [
    3,
    resolves((resolution, { row }, right) =>
      row?.status === "held" && resolution._tag === "Unknown" ? Effect.succeed("ok") : right(resolution)
    )
  ],
  "a result undefined that is none": [
    3,
    resolves((resolution, _, right) =>
      right(
        resolution._tag === "Applied" && resolution.result?.value === undefined
          ? EffectResolution.applied()
          : resolution
      )
    )
  ],
  "a renewal that is only said": [2, onlySays("renew", (_, { row }) => row?.status === "held")],
  "tokens that begin again": [
    4,
    fencing["no token of a removed row comes back"]!["tokens that begin again after a removal"]!
  ],
  "tokens in no order": [4, renumbered((token) => token ^ 2, (token) => token ^ 2)],
  "a third attempt that looks like the second": [6, shows(({ attempt }) => ({ attempt: Math.min(2, attempt) }))],
  "a call that dies": [
    3,
    replace("renew", (item, { row }, right) => row?.status === "released" ? Effect.die("no such claim") : right(item))
  ],
  "a list that forgets what is done": [
    3,
    (store) => ({ ...store, list: (filter) => store.list({ status: "held", ...filter }) })
  ]
}

describe("the model of a store", () => {
  for (const [name, [calls, fault]] of Object.entries(faults)) {
    it.effect(`finds ${name}, and tells it in few calls`, () =>
      Effect.gen(function*() {
        const verdict = yield* verdictOn(fault)
        assert.notStrictEqual(verdict, "")
        assert.isAtMost(callsIn(verdict), calls, verdict)
      }))
  }

  it.effect("tells a failure again from the text that it gave, and no more once it is mended", () =>
    Effect.gen(function*() {
      const fault = faults["a failed attempt that clears a doubt"]![1]
      const first = yield* verdictOn(fault)
      const replay = replayIn(first)
      assert.isAbove(replay.length, 0)
      assert.strictEqual(yield* verdictOn(fault, { replay }), first)
      assert.strictEqual(yield* verdictOn((store) => store, { replay }), "")
    }))

  it.effect("tries other sequences for another seed", () =>
    Effect.gen(function*() {
      const sequences = yield* Effect.forEach([1, 2], (seed) => {
        const asked: Array<unknown> = []
        return Effect.map(
          verdictOn(asks("claim", ({ key: _, ...request }) => void asked.push(request)), { seed, runs: 5 }),
          () => JSON.stringify(asked)
        )
      })
      assert.notStrictEqual(sequences[0], sequences[1])
    }))
})

describe("the model of a store whose clock nobody moves", () => {
  const onFile = Layer.unwrap(Effect.gen(function*() {
    return SqliteEffectStore.layer({ filename: `${yield* temporaryDirectory}/ledger.sqlite`, mode: "fast" })
  }))

  it.live("is kept by the store in memory", () =>
    Effect.provide(storeModelInRealTime({ runs: 15 }), EffectStore.layerMemory))

  it.live("is kept by a SQLite file", () => Effect.provide(storeModelInRealTime({ runs: 15 }), onFile))

  it.live("is kept by a store that treats the items of a batch late, and the first one last", () => {
    const backwards: Fault = (store) => ({
      ...store,
      claim: (requests) =>
        Effect.map(
          Effect.forEach(requests.toReversed(), (request, index) =>
            Effect.delay(store.claim([request]), index === 0 ? 0 : 2)),
          (replies) =>
            replies.flat().toReversed()
        )
    })
    return Effect.provide(storeModelInRealTime({ runs: 20 }), broken(backwards))
  })

  const seen: Readonly<Record<string, readonly [calls: number, fault: Fault]>> = {
    "a takeover without doubt": [5, faults["a takeover without doubt"]![1]],
    "a renewal that is only said": [5, faults["a renewal that is only said"]![1]],
    "a remaining time that is a guess": [5, (store) => ({
      ...store,
      claim: (requests) =>
        Effect.map(
          store.claim(requests),
          (replies) =>
            replies.map((reply) => reply._tag === "Held" && reply.remaining > 0 ? { ...reply, remaining: 5 } : reply)
        )
    })],
    // a row is old a millisecond after its change: the shorter the sequence, the less often that much passes in it
    "a prune that removes nothing": [15, (store) => ({ ...store, prune: () => Effect.succeed(0) })]
  }
  for (const [name, [calls, fault]] of Object.entries(seen)) {
    it.live(`finds ${name}`, () =>
      Effect.gen(function*() {
        const failure = yield* Effect.flip(Effect.provide(storeModelInRealTime(), broken(fault)))
        assert.strictEqual(failure._tag, "LawViolation")
        assert.isAtMost(callsIn(failure.message), calls, failure.message)
      }))
  }
})
