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
  /** For how long the check can tell that the effect is there, and not its result. */
  readonly mute: number
  /** Whether `execute` cannot be cut. */
  readonly uninterruptible: boolean
  /** Whether `execute` calls for its own key first. */
  readonly reenters: boolean
}

const base: Kind = {
  name: "",
  checks: false,
  whenInDoubt: "execute",
  honoursKey: false,
  lag: 0,
  mute: 0,
  uninterruptible: false,
  reenters: false
}

export const kinds = {
  checked: { ...base, name: "a true alreadyApplied", checks: true },
  strict: { ...base, name: "no check, whenInDoubt fail", whenInDoubt: "fail" },
  default: { ...base, name: "no check, whenInDoubt execute" },
  honours: { ...base, name: "a remote that honours the key", honoursKey: true },
  lagging: { ...base, name: "a check that lags, with settle", checks: true, lag: 150 },
  uncut: { ...base, name: "no check, whenInDoubt fail, uninterruptible", whenInDoubt: "fail", uninterruptible: true }
} as const satisfies { readonly [name: string]: Kind }

/** Kinds with something rarer. */
export const rareKinds = {
  late: { ...base, name: "a check that lags for long, with settle", checks: true, lag: 700 },
  mute: { ...base, name: "a check that learns the result late", checks: true, mute: 400 },
  reentrant: { ...base, name: "an execute that calls for its own key", whenInDoubt: "fail", reenters: true }
} as const satisfies { readonly [name: string]: Kind }

export const allKinds = { ...kinds, ...rareKinds }

export type KindName = keyof typeof allKinds

/** One application, as the remote's own log has it. */
export interface Applied {
  readonly value: string
  readonly tool: string
  readonly input: string
  readonly process: number
  readonly at: number
  /** Whether its process held no claim any more when the request arrived. */
  readonly late: boolean
}

export class Remote {
  readonly applications: Array<Applied> = []
  private readonly kind: Kind
  private readonly key: string

  /** `key` stands in the results where it is not everybody's. */
  constructor(kind: Kind, key: string) {
    this.kind = kind
    this.key = key
  }

  /** The request to apply arrives. Each application has a result of its own, so that a replay can be told from it. */
  apply(application: Omit<Applied, "value">): string {
    const first = this.applications[0]
    if (this.kind.honoursKey && first !== undefined) return first.value
    const { input, tool } = application
    const value = [tool, this.key, input, this.applications.length + 1].filter((part) => part !== "").join(" ")
    this.applications.push({ ...application, value })
    return value
  }

  /** What the remote answers to the question whether the effect is there: nothing, that it is, or its result. */
  find(now: number): { readonly value: string | undefined } | undefined {
    const found = this.applications.find(({ at }) => at + this.kind.lag <= now)
    return found && { value: found.at + this.kind.mute <= now ? found.value : undefined }
  }
}
