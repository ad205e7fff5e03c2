/**
 * Interruption that never loses a value.
 *
 * Effect drops the value of `Effect.uninterruptible(x)` when an interrupt is already pending at the end of `x`: the
 * work is done, and nobody learns its result. For a side effect that must not be repeated this is the worst outcome.
 * Here the interrupt is held back by us, not by the fiber: the fiber starts uninterruptible, marks the parts that may be
 * cut with `Effect.interruptible`, and gets the interrupt only at a moment at which it is interruptible.
 *
 * Such a moment is found without polling: at the request itself (a fiber that waits in an interruptible region is cut at
 * once) and, while the fiber runs, by a wrapper around its `Scheduler`, which the run loop asks before every operation.
 */
import { Context, Effect, Fiber, Scheduler } from "effect"

/**
 * A fiber together with the gentle way to stop it.
 */
export interface GentleFiber<A, E> {
  readonly fiber: Fiber.Fiber<A, E>
  /** Asks for interruption; it arrives at the fiber's next interruptible point, or never. Safe to repeat. */
  readonly interrupt: () => void
}

type AnyFiber = Fiber.Fiber<unknown, unknown>

// `interruptible` is a field of every fiber, but not of the public interface. Without it the interrupt is sent at once,
// which is Effect's own behaviour.
const isInterruptible = (fiber: AnyFiber): boolean =>
  (fiber as AnyFiber & { readonly interruptible?: boolean }).interruptible !== false

// Fibers that an interrupt reaches only where they wait.
const patient = new WeakSet<AnyFiber>()

class GentleScheduler implements Scheduler.Scheduler {
  readonly base: Scheduler.Scheduler
  readonly preventYield: boolean
  readonly executionMode: "sync" | "async"
  readonly requested = new Set<AnyFiber>()
  private readonly watched = new WeakSet<AnyFiber>()

  constructor(base: Scheduler.Scheduler, preventYield: boolean) {
    this.base = base
    this.preventYield = preventYield
    this.executionMode = base.executionMode
  }

  shouldYield(fiber: AnyFiber): boolean {
    if (this.requested.size !== 0 && this.requested.has(fiber) && isInterruptible(fiber)) {
      if (!patient.has(fiber)) {
        this.requested.delete(fiber)
        fiber.interruptUnsafe()
        // "yes" puts the operation at hand aside; the interrupt takes its place before it could start
        return true
      }
      this.watch(fiber)
    }
    return this.preventYield ? false : this.base.shouldYield(fiber)
  }

  // the task runs when the fiber does not: it has ended, or waits
  private watch(fiber: AnyFiber): void {
    if (this.watched.has(fiber)) return
    this.watched.add(fiber)
    fiber.currentDispatcher.scheduleTask(() => {
      this.watched.delete(fiber)
      if (this.requested.has(fiber) && isInterruptible(fiber)) {
        this.requested.delete(fiber)
        fiber.interruptUnsafe()
      }
    }, 0)
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return this.base.makeDispatcher()
  }
}

// One wrapper per scheduler, so that contexts that share a scheduler also share the wrapper.
const yielding = new WeakMap<Scheduler.Scheduler, GentleScheduler>()
const unyielding = new WeakMap<Scheduler.Scheduler, GentleScheduler>()

const wrapperOf = (base: Scheduler.Scheduler, preventYield: boolean): GentleScheduler => {
  const wrappers = preventYield ? unyielding : yielding
  let wrapper = wrappers.get(base)
  if (wrapper === undefined) {
    wrapper = new GentleScheduler(base, preventYield)
    wrappers.set(base, wrapper)
  }
  return wrapper
}

/**
 * The context with the scheduler that gentle interrupts need. Contexts that are used again can be prepared with it once;
 * `forkGently` leaves a prepared context as it is.
 */
export const gentleContext = <R>(context: Context.Context<R>): Context.Context<R> => {
  const scheduler = Context.get(context, Scheduler.Scheduler)
  const preventYield = Context.get(context, Scheduler.PreventSchedulerYield)
  if (scheduler instanceof GentleScheduler && !preventYield) return context
  const base = scheduler instanceof GentleScheduler ? scheduler.base : scheduler
  const wrapped = Context.add(context, Scheduler.Scheduler, wrapperOf(base, preventYield))
  // a run loop that may not yield never asks its scheduler; the wrapper answers "no" in its place
  return preventYield ? Context.add(wrapped, Scheduler.PreventSchedulerYield, false) : wrapped
}

/**
 * Runs `effect` as a root fiber that starts uninterruptible. The parts of it that may be cut are marked with
 * `Effect.interruptible`. What the effect does before it first waits has happened when this returns.
 *
 * Once the interrupt has arrived it stays with the fiber, as ever in Effect: what runs after the cut part goes on, but
 * every further `Effect.interruptible` in it ends at once.
 */
export const forkGently = <R>(context: Context.Context<R>) => {
  const prepared = gentleContext(context)
  const scheduler = Context.get(prepared, Scheduler.Scheduler) as GentleScheduler
  const run = Effect.runForkWith(prepared)
  return <A, E>(effect: Effect.Effect<A, E, R>): GentleFiber<A, E> => {
    const fiber = run(effect, { uninterruptible: true })
    const interrupt = (): void => {
      if (fiber.pollUnsafe() !== undefined) return
      const running = patient.has(fiber) && Fiber.getCurrent() === fiber
      if (isInterruptible(fiber) && !running) {
        fiber.interruptUnsafe()
      } else if (!scheduler.requested.has(fiber)) {
        scheduler.requested.add(fiber)
        fiber.addObserver(() => {
          scheduler.requested.delete(fiber)
        })
      }
    }
    return { fiber, interrupt }
  }
}

/**
 * Lets gentle interrupts come to the fiber only where it waits: what it computes between two waits is not cut. For values
 * that are on their way through code that is not ours.
 */
export const setPatient = (fiber: AnyFiber, is: boolean): void => void (is ? patient.add(fiber) : patient.delete(fiber))

/** Whether an interrupt was asked for and has not arrived yet. */
export const isAsked = (fiber: AnyFiber): boolean => {
  const scheduler = fiber.getRef(Scheduler.Scheduler)
  return scheduler instanceof GentleScheduler && scheduler.requested.has(fiber)
}
