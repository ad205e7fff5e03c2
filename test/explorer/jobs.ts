/**
 * What `npm run prove` explores, and what it walks at random.
 */
import { allTrouble, type Trouble } from "./choices.ts"
import type { Scenario } from "./model.ts"
import { allKinds, type KindName, kinds } from "./Remote.ts"
import { type Cast, scenario } from "./scenarios.ts"

export interface Job {
  readonly name: string
  readonly at: Scenario
  readonly faults: number
  readonly trouble: ReadonlySet<Trouble>
}

const everyKind = Object.keys(allKinds) as ReadonlyArray<KindName>

const plainKinds = Object.keys(kinds) as ReadonlyArray<KindName>

/** The cheap ones first: what is left of their time is for the others. */
const byCost: ReadonlyArray<KindName> = ["strict", "uncut", "honours", "default", "checked", "lagging"]

const nameOf = (change: Partial<Scenario>): string =>
  Object.entries(change).filter(([, value]) => value === true).map(([name]) => `, ${name}`).join("")

const job = (kind: KindName, cast: Cast, faults: number, change: Partial<Scenario> = {}): Job => {
  const at = scenario(kind, cast, { mostTicks: faults > 1 ? 6 : 8, ...change })
  return { name: `${at.name}${nameOf(change)}, ${faults} of any`, at, faults, trouble: allTrouble }
}

/** Stores and casts that are rarer, with the kinds of tools to which they make a difference. */
const rare: ReadonlyArray<readonly [KindName, Cast, Partial<Scenario>?]> = [
  ...everyKind.map((kind) => [kind, "two", { closes: true }] as const),
  ...(["strict", "checked"] as const).map((kind) => [kind, "together", { closes: true }] as const),
  ...(["strict", "checked", "default", "lagging", "late"] as const).map((kind) =>
    [kind, "two", { seesDeath: true }] as const
  ),
  ...(["strict", "checked"] as const).map((kind) => [kind, "batched", { batch: true }] as const),
  ...(["changed", "changing"] as const).flatMap((cast) =>
    (["strict", "checked", "default"] as const).map((kind) => [kind, cast] as const)
  )
]

export const jobs: ReadonlyArray<Job> = [
  ...(["two", "together", "foreign", "strangers"] as const).flatMap((cast) =>
    everyKind.map((kind) => job(kind, cast, 1))
  ),
  ...rare.map(([kind, cast, change]) => job(kind, cast, 1, { mostTicks: 6, ...change })),
  ...(["restarted", "joined", "three"] as const).flatMap((cast) =>
    plainKinds.map((kind) => job(kind, cast, 1, { mostTicks: 6 }))
  ),
  ...byCost.map((kind) => job(kind, "together", 2)),
  ...byCost.map((kind) => job(kind, "two", 2))
]

/** Every cast that random schedules are taken of. */
export const walks: ReadonlyArray<Scenario> = [
  ...(["two", "joined", "restarted", "three", "foreign", "strangers"] as const).flatMap((cast) =>
    everyKind.map((kind) => scenario(kind, cast, { mostTicks: 12 }))
  ),
  ...(["joined", "three"] as const).flatMap((cast) =>
    everyKind.flatMap((kind) =>
      [{ closes: true }, { seesDeath: true }, { closes: true, seesDeath: true, batch: true }].map((change) => {
        const at = scenario(kind, cast, { mostTicks: 12, ...change })
        return { ...at, name: at.name + nameOf(change) }
      })
    )
  ),
  ...rare.map(([kind, cast, change = {}]) => {
    const at = scenario(kind, cast, { mostTicks: 12, ...change })
    return { ...at, name: at.name + nameOf(change) }
  })
]
