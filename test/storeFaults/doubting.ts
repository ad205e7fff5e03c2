/** What can be wrong with what a key says about its earlier attempts. */
import { Effect } from "effect"
import type { Doubt, Verdict } from "../../src/EffectRecord.ts"
import { EffectResolution } from "../../src/EffectResolution.ts"
import { asks, type Fault, type Faults, grants, resolves, shows } from "./fault.ts"

type Wrong = readonly [verdict: Verdict, cleared: boolean]

/** How a release goes wrong in one case, and what comes of it there. */
const cases: ReadonlyArray<
  readonly [before: Doubt, verdict: Verdict, right: Doubt, ifCleared: Doubt, wrong: Wrong, wrongIfCleared: Wrong]
> = [
  ["none", "clean", "none", "none", ["tried", false], ["tried", false]],
  ["none", "tried", "tried", "tried", ["clean", false], ["clean", true]],
  ["none", "inDoubt", "inDoubt", "inDoubt", ["tried", false], ["tried", true]],
  ["tried", "clean", "tried", "none", ["clean", true], ["clean", false]],
  ["tried", "tried", "tried", "tried", ["inDoubt", false], ["clean", true]],
  ["tried", "inDoubt", "inDoubt", "inDoubt", ["tried", false], ["clean", true]],
  ["inDoubt", "clean", "inDoubt", "none", ["clean", true], ["clean", false]],
  ["inDoubt", "tried", "inDoubt", "tried", ["tried", true], ["tried", false]],
  ["inDoubt", "inDoubt", "inDoubt", "inDoubt", ["tried", true], ["clean", true]]
]

const releasing = (before: Doubt, verdict: Verdict, cleared: boolean, [wrong, clears]: Wrong): Fault =>
  asks("release", (item, { row }) =>
    // the first attempt is the one that the law prepares its key with
    row !== undefined && row.attempt > 1 && row.doubt === before && item.verdict === verdict && item.cleared === cleared
      ? { verdict: wrong, cleared: clears }
      : {})

const releases: Faults = Object.fromEntries(
  cases.flatMap(([before, verdict, right, ifCleared, wrong, wrongIfCleared]) => [
    [`a key that was "${before}", released "${verdict}", is "${right}"`, {
      [`a release of "${before}" as "${verdict}" that is taken for another`]: releasing(before, verdict, false, wrong)
    }],
    [`a key that was "${before}", released "${verdict}" after a believed no, is "${ifCleared}"`, {
      [`a believed no on "${before}", released "${verdict}", that is taken for another release`]: releasing(
        before,
        verdict,
        true,
        wrongIfCleared
      )
    }]
  ])
)

const otherwise = (before: Doubt, verdict: Verdict, taken: Verdict): Fault =>
  releasing(before, verdict, false, [taken, false])

const speaksOfItself = (doubt: Doubt): Fault =>
  grants(({ earlier, takenOver, ...grant }, { fingerprint }) =>
    grant.doubt === doubt && !takenOver ? { earlier: { age: earlier!.age, fingerprint } } : {}
  )

/** The row of a key that was resolved as unknown shows when its holder claimed it. */
const takenForDead: Fault = (store) => {
  const seen = new Map<string, number>()
  return shows(({ key, status }) => status === "released" && seen.has(key) ? { seenAt: seen.get(key)! } : {})({
    ...store,
    resolve: (key, resolution) =>
      Effect.flatMap(Effect.orDie(store.get(key)), (row) => {
        if (row?.status === "held") seen.set(key, row.seenAt)
        return store.resolve(key, resolution)
      })
  })
}

const stillHeardOf: Fault = grants((grant, _, { row }) =>
  row?.status === "released" && row.attempt === 2 && grant.doubt === "none"
    ? { earlier: { age: 0, fingerprint: row.fingerprint } }
    : {}
)

const cleared = "a key that was \"inDoubt\", released \"clean\" after a believed no, is \"none\""

export const doubting: Faults = {
  ...releases,
  [cleared]: { ...releases[cleared], "a believed no that leaves the earlier attempt to be heard of": stillHeardOf },
  "a claim of a key that is \"none\" says nothing of earlier attempts": {
    "a claim that speaks of an attempt that did nothing": grants((grant, _, { row }) =>
      row?.status === "released" && grant.doubt === "none"
        ? { earlier: { age: 0, fingerprint: row.fingerprint } }
        : {}
    )
  },
  "a claim of a key that is \"tried\" says when the earlier attempt was seen, and its input": {
    "a claim that speaks of its own input, where an attempt failed": speaksOfItself("tried"),
    "a claim that does not say how old a failed attempt is": grants(({ doubt, earlier }) =>
      doubt === "tried" ? { earlier: { ...earlier!, age: 0 } } : {}
    )
  },
  "a claim of a key that is \"inDoubt\" says when the earlier attempt was seen, and its input": {
    "a claim that speaks of its own input, where an attempt is in doubt": speaksOfItself("inDoubt"),
    "a claim that says nothing of an attempt in doubt": grants(({ doubt, takenOver }) =>
      doubt === "inDoubt" && !takenOver ? { earlier: undefined } : {}
    )
  },
  "a claim that only looked leaves no trace: the row goes on speaking of the attempt before": {
    "a look that is taken for the attempt in doubt": otherwise("inDoubt", "clean", "inDoubt")
  },
  "an attempt that failed is the one that the row speaks of": {
    "a failed attempt that leaves the row speaking of the one before": otherwise("tried", "tried", "clean")
  },
  "an attempt that failed on a key in doubt leaves the row speaking of the one in doubt": {
    "a failed attempt that hides the one in doubt": otherwise("inDoubt", "tried", "inDoubt")
  },
  "a claim that was cut off is in doubt, whatever was before": {
    "a takeover that keeps what the row said": grants(({ takenOver }, _, { row }) =>
      takenOver && row!.doubt === "tried" ? { doubt: "tried" } : {}
    )
  },
  "a record ends every doubt": {
    "a record that stays in doubt": shows(({ attempt, status }) =>
      status === "recorded" && attempt > 1 ? { doubt: "inDoubt" } : {}
    )
  },
  "a key without a row cannot be resolved": {
    "a resolution of nothing": resolves((resolution, { row }, right) =>
      row === undefined ? Effect.succeed("ok") : right(resolution)
    )
  },
  "a live claim cannot be resolved": {
    "a live claim that a person overrules": resolves((resolution, { now, row }, right) =>
      row?.status === "held" && row.leaseEnd > now ? Effect.succeed("ok") : right(resolution)
    )
  },
  "a claim whose lease is over can be resolved, and its holder finds it lost": {
    "a resolution that waits for a holder whose lease is over": resolves((resolution, { row }, right) =>
      row?.status === "held" && resolution._tag === "NotApplied" ? Effect.succeed("held") : right(resolution)
    ),
    "a resolution that leaves the claim": resolves((resolution, { row }, right) =>
      row?.status === "held" && resolution._tag === "NotApplied" ? Effect.succeed("ok") : right(resolution)
    )
  },
  "a holder that records after a person resolved its key finds it lost, and the person's result stands": {
    "a resolution that the holder overrules": resolves((resolution, { row }, right) =>
      row?.status === "held" && row.leaseEnd - row.createdAt === 10 && resolution._tag === "Applied"
        ? Effect.succeed("ok")
        : right(resolution)
    )
  },
  "a key resolved as applied with a result is recorded with it, null and undefined too": {
    "a resolution without a result, where it is undefined": resolves((resolution, _, right) =>
      right(
        resolution._tag === "Applied" && resolution.result?.value === undefined
          ? EffectResolution.applied()
          : resolution
      )
    ),
    "a resolution without a result, where it is null": resolves((resolution, _, right) =>
      right(
        resolution._tag === "Applied" && resolution.result?.value === null ? EffectResolution.applied() : resolution
      )
    )
  },
  "a key resolved as applied without a result is recorded, and can be given the result later, once": {
    "a record that can never be given its result": resolves((resolution, { row }, right) =>
      row?.status === "recorded" ? Effect.succeed("recorded") : right(resolution)
    ),
    "a resolution without a result that has the result undefined": resolves((resolution, _, right) =>
      right(
        resolution._tag === "Applied" && resolution.result === undefined
          ? EffectResolution.applied(undefined)
          : resolution
      )
    )
  },
  "a record is never resolved otherwise": {
    "a record that can be undone": (store) => ({
      ...store,
      resolve: (key, resolution) =>
        Effect.flatMap(
          Effect.orDie(store.get(key)),
          (row) =>
            row?.outcome === "executed" && resolution._tag === "NotApplied"
              ? Effect.as(store.remove(key), "ok" as const)
              : store.resolve(key, resolution)
        )
    })
  },
  "a key resolved as unknown is in doubt": {
    "an unknown that is taken for a no": resolves((resolution, { row }, right) =>
      right(
        resolution._tag === "Unknown" && row?.status === "released" ? EffectResolution.notApplied : resolution
      )
    )
  },
  "a key resolved as unknown after its holder's lease speaks of that holder, who may have lived until the lease ended":
    {
      "a holder that is taken for dead since its claim": takenForDead
    },
  "a result that JSON cannot carry is not taken for a resolution": {
    "a result that is made fit for JSON": resolves((resolution, _, right) =>
      right(
        resolution._tag === "Applied" && typeof resolution.result?.value === "bigint"
          ? EffectResolution.applied(String(resolution.result.value))
          : resolution
      )
    )
  }
}
