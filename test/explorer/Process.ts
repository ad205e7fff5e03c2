/**
 * A simulated process: what it takes of the world to run the real program step by step, without real time. A process that
 * crashed, or is frozen, runs nothing: its replies and timers are kept from it.
 */
import type { IEffectStore } from "chamvi-effect"
import { type Clock, Duration, Effect, type Fiber, type Scheduler, Scope } from "effect"

/** A 53-bit hash of a text, seeded by another hash. */
export const mix = (text: string, seed = 0): number => {
  let a = 0xdeadbeef ^ (seed >>> 0)
  let b = 0x41c6ce57 ^ Math.floor(seed / 4294967296)
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 2654435761)
    b = Math.imul(b ^ code, 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return 4294967296 * (2097151 & b) + (a >>> 0)
}

/** Runs the tasks of fibers when it is told to. */
class StepScheduler implements Scheduler.Scheduler {
  readonly executionMode = "sync"
  private tasks: Array<() => void> = []

  shouldYield(_fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return false
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return {
      scheduleTask: (task) => void this.tasks.push(task),
      flush: () => this.drain()
    }
  }

  drain(): void {
    while (this.tasks.length > 0) {
      const { tasks } = this
      this.tasks = []
      tasks.forEach((task) => task())
    }
  }
}

export interface Timer {
  readonly at: number
  readonly fire: () => void
}

const nameIn = <A>(names: Array<A>, item: A): number => {
  const name = names.indexOf(item)
  return name >= 0 ? name : names.push(item) - 1
}

/** What a process has, or had, of a key. */
class Hold {
  /** Until when it knows, or could know, that its claim is its own. */
  leaseUntil = -1
  /** The last that it was granted. */
  token = 0
  /** The last grant that it was told of. */
  toldToken = 0
  /** Whether a renewal of it was told that the claim is another's by now. */
  toldLost = false
  private readonly tokens: Array<number> = []
  private readonly claimIds: Array<string> = []

  /** What a token is called: to the process it is no more than a name. */
  tokenName(token: number): number {
    return nameIn(this.tokens, token)
  }

  claimIdName(claimId: string): number {
    return nameIn(this.claimIds, claimId)
  }

  /** The name of a token that the process was granted. */
  ownToken(token: number): number {
    return this.tokens.indexOf(token)
  }

  ownClaimId(claimId: string): number {
    return this.claimIds.indexOf(claimId)
  }
}

export class Process {
  readonly index: number
  readonly name: string
  readonly scheduler = new StepScheduler()
  readonly timers: Array<Timer> = []
  readonly clock: Clock.Clock
  crashed = false
  frozen = false
  /** Whether a change came while it was frozen. */
  missed = false
  /** Stands for the state of all its fibers: they are a function of what the process was told, and at which intervals. */
  history = 0
  /** The same, word for word and with the times of the world. */
  exactHistory = 0
  /** When it was told last. */
  notedAt = 0
  /** Its store's life: `open`, then `closing` while the layer's finalizers run, then `closed`. */
  life: "open" | "closing" | "closed" = "open"
  /** In which its store was made. */
  readonly scope = Scope.makeUnsafe()
  /** Kinds of trouble that it was in since its store began to close. */
  troubledAtClose = 0
  /** Its claims, by key. */
  private readonly holds = new Map<string, Hold>()
  /** Who waits for changes of a key. */
  readonly watchers = new Set<() => void>()
  readonly counts = new Map<string, number>()
  store!: IEffectStore

  private readonly now: () => number

  constructor(index: number, now: () => number) {
    this.index = index
    this.name = `P${index}`
    this.now = now
    this.notedAt = now()
    const { timers } = this
    // each process has clocks of its own, hours away from the ledger's and from those of the others
    const wall = () => now() + (index % 2 === 0 ? 1 : -1) * (index + 1) * 40_000_000
    const nanos = (millis: number) => BigInt(Math.round(millis * 1e6))
    const monotonic = () => nanos(now() + (index + 1) * 700_000)
    this.clock = {
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanosUnsafe: () => nanos(wall()),
      currentTimeNanos: Effect.sync(() => nanos(wall())),
      monotonicTimeNanosUnsafe: monotonic,
      monotonicTimeNanos: Effect.sync(monotonic),
      sleep: (duration) =>
        Effect.callback<void>((resume) => {
          const timer = { at: now() + Duration.toMillis(duration), fire: () => resume(Effect.void) }
          timers.push(timer)
          return Effect.sync(() => {
            const at = timers.indexOf(timer)
            if (at >= 0) timers.splice(at, 1)
          })
        })
    }
  }

  get runs(): boolean {
    return !this.crashed && !this.frozen
  }

  /** Notes what the process is told, without and with what makes no difference to it; all that it does follows from it. */
  note(event: string, exactly = event): void {
    const now = this.now()
    this.history = mix(`${event} after ${now - this.notedAt}`, this.history)
    this.exactHistory = mix(`${exactly} at ${now}`, this.exactHistory)
    this.notedAt = now
  }

  hold(key: string): Hold {
    let hold = this.holds.get(key)
    if (hold === undefined) {
      hold = new Hold()
      this.holds.set(key, hold)
    }
    return hold
  }

  count(kind: string): number {
    const count = (this.counts.get(kind) ?? 0) + 1
    this.counts.set(kind, count)
    return count
  }

  /** When its next timer is due. */
  get nextTimer(): number {
    return this.timers.reduce((least, { at }) => Math.min(least, at), Infinity)
  }

  /** Fires the timers that are due, in order. */
  fire(now: number): void {
    let due = this.nextTimer
    if (due > now) return
    this.note("timers")
    while (due <= now) {
      const at = this.timers.findIndex((timer) => timer.at === due)
      this.timers.splice(at, 1)[0]!.fire()
      this.scheduler.drain()
      due = this.nextTimer
    }
  }
}
