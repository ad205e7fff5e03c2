/**
 * A simulated process: what it takes of the world to run the real program step by step, without real time. A process that
 * crashed, or is frozen, runs nothing: its replies and timers are kept from it.
 */
import type { IEffectStore } from "chamvi-effect"
import { type Clock, Duration, Effect, type Fiber, type Scheduler } from "effect"

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
  /** Stands for the state of all its fibers: they are a function of what the process was told, and when. */
  history = 0
  /** Until when it knows, or could know, that its claim is its own. */
  leaseUntil = -1
  /** The last that it was granted. */
  token = 0
  /** Whether a renewal of it was told that the claim is another's by now. */
  toldLost = false
  /** Who waits for changes of the key. */
  readonly watchers = new Set<() => void>()
  readonly counts = new Map<string, number>()
  store!: IEffectStore

  constructor(index: number, now: () => number) {
    this.index = index
    this.name = `P${index}`
    const { timers } = this
    this.clock = {
      currentTimeMillisUnsafe: now,
      currentTimeMillis: Effect.sync(now),
      currentTimeNanosUnsafe: () => BigInt(Math.round(now() * 1e6)),
      currentTimeNanos: Effect.sync(() => BigInt(Math.round(now() * 1e6))),
      monotonicTimeNanosUnsafe: () => BigInt(Math.round(now() * 1e6)),
      monotonicTimeNanos: Effect.sync(() => BigInt(Math.round(now() * 1e6))),
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

  /** Notes what the process is told; all that it does follows from it. */
  note(event: string): void {
    this.history = mix(event, this.history)
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
    this.note(`timers at ${now}`)
    while (due <= now) {
      const at = this.timers.findIndex((timer) => timer.at === due)
      this.timers.splice(at, 1)[0]!.fire()
      this.scheduler.drain()
      due = this.nextTimer
    }
  }
}
