/**
 * The time of a lab: it passes as real time does, and where nobody works and everybody sleeps, it is skipped.
 */
import { Clock, Duration, Effect } from "effect"
import { sleepReally } from "../law.ts"

/** Who sleeps. Whoever does not run any more is never woken. */
export interface Sleeper {
  readonly runs: boolean
}

interface Timer {
  readonly at: number
  readonly owner: Sleeper
  readonly fire: () => void
}

const always: Sleeper = { runs: true }

const nanos = (millis: number): bigint => BigInt(Math.round(millis * 1e6))

/**
 * Turns of the event loop without a sign of work after which time is skipped. One too few does no harm: what is skipped are
 * waits, and never while a hook or the store is at work.
 */
const quietTurns = 5

export class LabClock {
  private readonly timers = new Set<Timer>()
  private readonly real = Clock.Clock.defaultValue()
  private skipped = 0
  private signs = 0

  /** Milliseconds of a clock that only moves forward. */
  now(): number {
    return Number(this.real.monotonicTimeNanosUnsafe()) / 1e6 + this.skipped
  }

  /** Something was done: time is not to be skipped yet. */
  sign(): void {
    this.signs++
  }

  /** Lets time pass at once. */
  advance(millis: number): void {
    this.skipped += millis
    this.sign()
  }

  /** Some turns of the event loop, in which whatever can run has run. */
  readonly turns: Effect.Effect<void> = Effect.repeat(sleepReally(1), { times: quietTurns })

  of(owner: Sleeper = always): Clock.Clock {
    const wall = () => Math.floor(this.real.currentTimeMillisUnsafe() + this.skipped)
    return {
      currentTimeMillisUnsafe: wall,
      currentTimeMillis: Effect.sync(wall),
      currentTimeNanosUnsafe: () => nanos(wall()),
      currentTimeNanos: Effect.sync(() => nanos(wall())),
      monotonicTimeNanosUnsafe: () => nanos(this.now()),
      monotonicTimeNanos: Effect.sync(() => nanos(this.now())),
      sleep: (duration) =>
        Effect.callback((resume) => {
          const timer: Timer = {
            at: this.now() + Duration.toMillis(duration),
            owner,
            fire: () => {
              this.timers.delete(timer)
              resume(Effect.void)
            }
          }
          this.timers.add(timer)
          this.sign()
          return Effect.sync(() => void this.timers.delete(timer))
        })
    }
  }

  /** Moves the time for as long as it is run. `isBusy` says whether somebody is at work. */
  drive(isBusy: () => boolean): Effect.Effect<never> {
    return Effect.suspend(() => {
      let quiet = 0
      let seen = this.signs
      const turn = Effect.sync(() => {
        const fired = this.fireDue()
        quiet = fired || isBusy() || seen !== this.signs ? 0 : quiet + 1
        seen = this.signs
        if (quiet >= quietTurns) this.skip()
      })
      // turns that only let others run are quick, and a long wait is a heartbeat after the other
      const next = Effect.suspend(() => isBusy() || this.waiting.length === 0 ? sleepReally(1) : Effect.yieldNow)
      return Effect.forever(Effect.andThen(next, turn))
    })
  }

  /** Lets time pass as it does, for as long as `work` takes. */
  during<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.raceFirst(work, this.drive(() => true))
  }

  private get waiting(): ReadonlyArray<Timer> {
    return Array.from(this.timers).filter(({ owner }) => owner.runs).toSorted((a, b) => a.at - b.at)
  }

  private fireDue(): boolean {
    const now = this.now()
    const due = this.waiting.filter(({ at }) => at <= now)
    // one of them may be the death of another's owner
    due.forEach(({ fire, owner }) => owner.runs && fire())
    return due.length > 0
  }

  private skip(): void {
    const [next] = this.waiting
    // who sleeps for ever is not waited for
    if (next === undefined || next.at === Infinity) return
    this.skipped += Math.max(0, next.at - this.now())
    this.fireDue()
  }
}
