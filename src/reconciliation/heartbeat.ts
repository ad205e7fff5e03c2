/**
 * Keeps claims alive: one fiber per store and clock renews all of them, each at a third of its lease.
 *
 * The fiber is armed at the end of the scheduler's turn in which a claim was granted, so that an effect that ends within
 * it costs no timer, and it stops with its last claim, so that nothing keeps a process alive.
 */
import { Clock, Context, Duration, Effect, type Fiber } from "effect"
import type { IEffectStore } from "../store/IEffectStore.ts"
import { monotonicMillis } from "./bounded.ts"
import type { Registry } from "./Registry.ts"

/** A granted claim, for as long as this process wants to keep it. */
export interface Lease {
  readonly key: string
  readonly token: number
  /** Milliseconds. */
  readonly duration: number
  /** When the request that last set the lease's end was sent, on the process's monotonic clock. */
  sentAt: number
  /** When to renew it next. */
  dueAt: number
  /** Whether the result is being recorded: what the store does not renew then is recorded already, or will be refused. */
  recording: boolean
  readonly onLost: () => void
}

export class Heartbeats {
  private readonly store: IEffectStore
  private readonly clock: Clock.Clock
  private readonly leases = new Set<Lease>()
  private beating: { readonly fiber: Fiber.Fiber<void>; readonly nextAt: number } | undefined
  private armed = false

  constructor(store: IEffectStore, clock: Clock.Clock) {
    this.store = store
    this.clock = clock
  }

  add(lease: Lease, fiber: Fiber.Fiber<unknown, unknown>): void {
    this.leases.add(lease)
    // Stryker disable next-line ConditionalExpression: arming twice does nothing that arming once does not
    if (this.armed) return
    // Stryker disable next-line BooleanLiteral: the same
    this.armed = true
    fiber.currentDispatcher.scheduleTask(() => {
      this.armed = false
      this.arm()
    }, 0)
  }

  delete(lease: Lease): void {
    this.leases.delete(lease)
    if (this.leases.size > 0 || this.beating === undefined) return
    this.beating.fiber.interruptUnsafe()
    this.beating = undefined
  }

  private arm(): void {
    if (this.leases.size === 0) return
    const nextAt = Math.min(...Array.from(this.leases, (lease) => lease.dueAt))
    if (this.beating !== undefined) {
      if (this.beating.nextAt <= nextAt) return
      this.beating.fiber.interruptUnsafe()
    }
    // whole milliseconds: a clock may end a sleep of less than one at once, and the beat would be polled for
    const wait = Duration.millis(Math.ceil(nextAt - monotonicMillis(this.clock)))
    const context = Context.make(Clock.Clock, this.clock) as Context.Context<never>
    const fiber = Effect.runForkWith(context)(Effect.andThen(this.clock.sleep(wait), this.beat))
    this.beating = { fiber, nextAt }
  }

  private readonly beat: Effect.Effect<void> = Effect.suspend(() => {
    const now = monotonicMillis(this.clock)
    const due = Array.from(this.leases).filter((lease) => lease.dueAt <= now)
    // a slow store must not be asked twice for the same beat
    due.forEach((lease) => {
      lease.dueAt = now + Math.max(1, lease.duration / 3)
    })
    this.beating = undefined
    this.arm()
    if (due.length === 0) return Effect.void
    const items = due.map(({ duration, key, token }) => ({ key, token, lease: duration }))
    const asked = Effect.catchCause(Effect.suspend(() => this.store.renew(items)), () => Effect.void)
    return Effect.map(asked, (replies: unknown) => {
      due.forEach((lease, i) => this.settle(lease, Array.isArray(replies) ? replies[i] : undefined, now))
      this.arm()
    })
  })

  private settle(lease: Lease, reply: unknown, sentAt: number): void {
    if (!this.leases.has(lease)) return
    if (reply === "ok") {
      lease.sentAt = sentAt
    } else if (reply === "lost") {
      this.delete(lease)
      if (!lease.recording) lease.onLost()
    } else {
      // sooner than the next beat: two thirds of the lease are left for it
      lease.dueAt = Math.min(lease.dueAt, sentAt + Math.max(1, lease.duration / 9))
    }
  }
}

export const heartbeatsOf = (registry: Registry, clock: Clock.Clock): Heartbeats => {
  let heartbeats = registry.heartbeats.get(clock)
  if (heartbeats === undefined) {
    heartbeats = new Heartbeats(registry.store, clock)
    registry.heartbeats.set(clock, heartbeats)
  }
  return heartbeats
}
