/**
 * The simulated remote: what it holds, and how each kind of tool speaks to it.
 */
import type { WhenInDoubt } from "chamvi-effect"

/** All times of a simulated world, in milliseconds. */
export const times = { lease: 900, storeTimeout: 250, recordTimeout: 250, waitFor: 2_000 } as const

/**
 * A kind of tool, and what is promised for it.
 */
export interface Kind {
  readonly name: string
  /** Whether it has a true `alreadyApplied`. */
  readonly checks: boolean
  readonly whenInDoubt: WhenInDoubt
  /** Whether the remote applies a key once, however often it is asked to. */
  readonly honoursKey: boolean
  /** How long the remote hides an application from the check; the tool's `settle` is as long. */
  readonly lag: number
  /** Whether `execute` cannot be cut. */
  readonly uninterruptible: boolean
}

const base: Kind = {
  name: "",
  checks: false,
  whenInDoubt: "execute",
  honoursKey: false,
  lag: 0,
  uninterruptible: false
}

export const kinds = {
  checked: { ...base, name: "a true alreadyApplied", checks: true },
  strict: { ...base, name: "no check, whenInDoubt fail", whenInDoubt: "fail" },
  default: { ...base, name: "no check, whenInDoubt execute" },
  honours: { ...base, name: "a remote that honours the key", honoursKey: true },
  lagging: { ...base, name: "a check that lags, with settle", checks: true, lag: 150 },
  uncut: { ...base, name: "no check, whenInDoubt fail, uninterruptible", whenInDoubt: "fail", uninterruptible: true }
} as const satisfies { readonly [name: string]: Kind }

export type KindName = keyof typeof kinds

/** One application, as the remote's own log has it. */
export interface Applied {
  readonly value: string
  readonly tool: string
  readonly process: number
  readonly at: number
  /** Whether its process held no lease any more when the request arrived. */
  readonly late: boolean
}

export class Remote {
  readonly applications: Array<Applied> = []
  private readonly kind: Kind

  constructor(kind: Kind) {
    this.kind = kind
  }

  /** The request to apply arrives. Each application has a result of its own, so that a replay can be told from it. */
  apply(application: Omit<Applied, "value">): string {
    const first = this.applications[0]
    if (this.kind.honoursKey && first !== undefined) return first.value
    const value = `${application.tool} ${this.applications.length + 1}`
    this.applications.push({ ...application, value })
    return value
  }

  /** What the remote answers to the question whether the effect is there. */
  find(now: number): string | undefined {
    return this.applications.find(({ at }) => at + this.kind.lag <= now)?.value
  }
}
