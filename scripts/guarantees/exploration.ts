/**
 * What the exploration of `npm test` finds: the orders of the requests of two processes, with one trouble at any point.
 */
import type { Trouble } from "../../test/explorer/choices.ts"
import { explore } from "../../test/explorer/explore.ts"
import { type Kind, kinds } from "../../test/explorer/Remote.ts"
import { describeFinding } from "../../test/explorer/replay.ts"
import { scenario } from "../../test/explorer/scenarios.ts"

export interface Explored {
  readonly orders: number
  /** The most applications that the remote had, as long as no live holder outlived its lease. */
  readonly most: number
  /** The same where one did. */
  readonly mostAfterLostLease: number
}

interface Bounds {
  /** Kinds of trouble. Default: all. */
  readonly trouble?: ReadonlySet<Trouble>
  /** How often time may pass. Default: as often as in the tests. */
  readonly mostTicks?: number
}

const run = (kind: Kind, { mostTicks = 8, trouble }: Bounds = {}): Explored => {
  let most = 0
  let mostAfterLostLease = 0
  const at = scenario("checked", "two", { kind, name: kind.name, mostTicks })
  const { complete, finding, schedules } = explore(at, {
    faults: 1,
    trouble,
    look: ({ account, subjects }) => {
      for (const { remote: { applications } } of subjects.values()) {
        if (account.lostLeases > 0) mostAfterLostLease = Math.max(mostAfterLostLease, applications.length)
        else most = Math.max(most, applications.length)
      }
    }
  })
  if (finding !== undefined) throw new Error(describeFinding(finding))
  if (!complete) throw new Error(`the exploration of ${kind.name} is not complete`)
  return { orders: schedules, most, mostAfterLostLease }
}

const same = (kind: Kind): string => JSON.stringify({ ...kind, name: "" })

const known = new Map<string, Explored>()

/** Every order with one trouble at any point, as in `npm test`. A broken promise is an error. */
export const explored = (kind: Kind): Explored => {
  const name = same(kind)
  const before = known.get(name)
  if (before !== undefined) return before
  const now = run(kind)
  known.set(name, now)
  return now
}

/** How often the effect is applied where a process freezes for longer than its lease, with its request on the way. */
export const mostAfterFreeze = (kind: Kind): number => {
  const all = Object.values(kinds).find((one) => same(one) === same(kind))
  // freezing alone is less to walk through
  const { mostAfterLostLease } = all === undefined
    ? run(kind, { trouble: new Set(["freeze"]), mostTicks: 4 })
    : explored(all)
  if (mostAfterLostLease === 0) throw new Error(`no lease was lost: ${kind.name}`)
  return mostAfterLostLease
}

/** Which orders there are depends on details of the program; how many, about, does not. */
export const about = (orders: number): string => {
  const unit = 10 ** (String(orders).length - 1)
  return (Math.floor(orders / unit) * unit).toLocaleString("en")
}
