/**
 * The world of one point: a remote and a ledger of its own, and the processes that live in it.
 */
import { Cause, Clock, Context, Deferred, Effect, Exit, Fiber, Layer, References, Scope } from "effect"
import { EffectEvent, type Flags } from "../../EffectEvent.ts"
import { EffectStore } from "../../EffectStore.ts"
import type { EffectStoreError } from "../../errors.ts"
import { type RunOptions, ToolContext } from "../../ToolContext.ts"
import { sleepReally } from "../law.ts"
import { LabClock } from "./LabClock.ts"
import { LabProcess } from "./LabProcess.ts"
import { Mark } from "./mark.ts"
import { type CrashCall, CrashLabError } from "./report.ts"
import type { Hooks, Subject } from "./subject.ts"

/** How a call ended, and what the lab needs to know of it beside. */
export interface CallEnd extends CrashCall {
  /** Whether it succeeded. */
  readonly done: boolean
  readonly cause?: unknown
}

/** A call that was begun. */
export interface Call {
  readonly process: LabProcess
  readonly event: () => EffectEvent | undefined
  readonly ended: Effect.Effect<Exit.Exit<unknown, unknown>>
  /** Makes its caller leave. */
  readonly interrupt: () => void
}

/** What a lab was given, all with the services of the world. */
export interface Plan {
  readonly subject: Subject<never>
  readonly world: Layer.Layer<never, unknown>
  readonly store: Layer.Layer<EffectStore, unknown>
  readonly run: RunOptions
  /** Which points to try. */
  readonly only: (point: string) => boolean
  /** Whether time is never skipped, since other processes do not know of it. */
  readonly inRealTime: boolean
  /** How long the remote is made to lag, in milliseconds. */
  readonly lag: number | undefined
  readonly count: (key: string) => Effect.Effect<number, unknown>
  readonly reset: Effect.Effect<unknown, unknown> | undefined
  readonly crowd: ((entries: number) => Effect.Effect<unknown, unknown>) | undefined
  readonly plant: ((marker: string, key: string) => Effect.Effect<unknown, unknown>) | undefined
  readonly loseReply: Effect.Effect<unknown, unknown> | undefined
}

const real = Clock.Clock.defaultValue()

/** The time of what is no process of the lab. */
const timeOf = ({ inRealTime }: Plan, clock: LabClock): Clock.Clock => inRealTime ? real : clock.of()

const allFlags: ReadonlyArray<keyof Flags> = [
  "takenOver",
  "executedInDoubt",
  "claimLost",
  "recordFailed",
  "inputChanged"
]

export const killed: CallEnd = { outcome: "killed", flags: [], done: false }

export const isInDoubt = (end: CrashCall | undefined): boolean => end?.outcome === "inDoubt"

/** The part that a report has. */
export const callOf = ({ error, flags, outcome }: CallEnd): CrashCall => ({ outcome, flags, error })

export const endOf = (exit: Exit.Exit<unknown, unknown>, event: EffectEvent | undefined): CallEnd => ({
  outcome: event?.outcome ?? "unknown",
  flags: allFlags.filter((flag) => event?.[flag]),
  error: event?.error,
  done: Exit.isSuccess(exit),
  cause: Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
})

export class World {
  readonly clock: LabClock
  readonly plan: Plan
  /** The keys that were claimed. */
  readonly keys = new Set<string>()
  readonly ends: Array<CallEnd> = []
  /** Whether the remote lags. */
  lagging = false
  /** Asks the check of the last call once more. */
  recheck: Effect.Effect<unknown, unknown> | undefined = undefined
  private readonly processes: Array<LabProcess> = []
  private readonly calls: Array<Call> = []
  private readonly context: Context.Context<never>
  private readonly ledger: EffectStore["Service"]
  private readonly prefix = globalThis.crypto.randomUUID().slice(0, 8)
  private readonly claimed = new Set<string>()
  private appliedAt = -Infinity

  constructor(plan: Plan, clock: LabClock, context: Context.Context<EffectStore>) {
    this.plan = plan
    this.clock = clock
    this.context = context as Context.Context<never>
    this.ledger = Context.get(context, EffectStore)
  }

  /** A process that has just been started. */
  process(): LabProcess {
    const process = new LabProcess({
      clock: this.clock,
      ledger: this.ledger,
      nameOf: (key) => {
        this.keys.add(key)
        return `${this.prefix} ${key}`
      },
      keys: this.claimed
    })
    this.processes.push(process)
    return process
  }

  /** Comes to a mark in a fiber of the world itself, a server's: it works for the process that was started last. */
  mark(name: string): Effect.Effect<void> {
    return Effect.suspend(() => this.processes.at(-1)?.border(`at ${name}`) ?? Effect.void)
  }

  private hooksOf(process: LabProcess): Hooks {
    return {
      process,
      applied: () => {
        this.appliedAt = this.clock.now()
      },
      lags: () => this.lagging && this.clock.now() < this.appliedAt + (this.plan.lag ?? 0),
      asked: (check, services) => {
        const context = Context.add(services, Clock.Clock, this.clock.of())
        this.recheck = Effect.scoped(Effect.provideContext(check, context))
      }
    }
  }

  /** Begins a call in a process. */
  start(process: LabProcess, again = this.calls.length > 0): Call {
    let event: EffectEvent | undefined
    const context = this.context.pipe(
      Context.add(EffectStore, process.store),
      Context.add(Clock.Clock, this.clock.of(process)),
      Context.add(Mark, (name) => process.border(`at ${name}`)),
      Context.add(References.CurrentLoggers, new Set()),
      Context.add(EffectEvent.Listener, (told) =>
        Effect.sync(() => {
          event ??= told
        }))
    )
    const made = Effect.scoped(this.plan.subject.call(this.hooksOf(process), again))
    const fiber = Effect.runForkWith(context)(made)
    const call: Call = {
      process,
      event: () => event,
      ended: Fiber.await(fiber),
      interrupt: () => fiber.interruptUnsafe()
    }
    this.calls.push(call)
    return call
  }

  /** Waits for the end of a call, or for the death of its process; time passes meanwhile. */
  end({ ended, event, process }: Call): Effect.Effect<CallEnd, EffectStoreError> {
    const died = Effect.as(Deferred.await(process.died), killed)
    const lived = Effect.map(ended, (exit) => endOf(exit, event()))
    return Effect.tap(this.during(Effect.raceFirst(died, lived)), (end) => {
      this.ends.push(end)
      // what is dead stays so, and so much time passes that its claims are free
      return end === killed ? process.endLeases : Effect.void
    })
  }

  /** Makes a call, and waits for its end. */
  call(process: LabProcess, again?: boolean): Effect.Effect<CallEnd, EffectStoreError> {
    return Effect.suspend(() => this.end(this.start(process, again)))
  }

  /** Lets time pass while something is waited for. */
  during<A, E, R>(wait: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.raceFirst(wait, this.clock.drive(() => this.processes.some(({ isBusy }) => isBusy)))
  }

  /** Runs what was given for the remote. */
  given<A>(what: string, effect: Effect.Effect<A, unknown>): Effect.Effect<A, CrashLabError> {
    const { name } = this.plan.subject
    const context = this.context.pipe(
      Context.add(Clock.Clock, timeOf(this.plan, this.clock)),
      // what the test itself does is no step of a process
      Context.add(Mark, () => Effect.void)
    )
    return this.clock.during(Effect.provideContext(effect, context as Context.Context<never>)).pipe(
      Effect.catchCause((cause) =>
        Effect.fail(new CrashLabError({ tool: name, problem: `${what} failed`, cause: Cause.squash(cause) }))
      )
    )
  }

  /** Ends what still runs, before the remote and the ledger go. */
  get finish(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      yield* Effect.forEach(this.processes, (process) => process.finish, { discard: true })
      this.calls.forEach(({ interrupt }) => interrupt())
      const ended = Effect.forEach(this.calls, ({ ended }) => ended, { discard: true })
      // what cannot be interrupted is not waited for
      yield* Effect.raceFirst(ended, sleepReally("1 second"))
      const removed = Effect.forEach(this.claimed, (key) => this.ledger.remove(key), { discard: true })
      yield* Effect.provideService(Effect.ignoreCause(removed), Clock.Clock, real)
    })
  }
}

/** Opens the world of a point, until the scope closes. */
const open = Effect.fnUntraced(function*(
  plan: Plan
): Effect.fn.Return<World, CrashLabError, Scope.Scope> {
  const clock = new LabClock()
  const scope = yield* Scope.Scope
  // one for both, so that they share the layers that they have in common
  const memo = yield* Layer.makeMemoMap
  let world: World | undefined
  const mark = (name: string) => world?.mark(name) ?? Effect.void
  const failing = (what: string) => <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.catchCause(effect, (cause) =>
      Effect.fail(
        new CrashLabError({ tool: plan.subject.name, problem: `${what} cannot be built`, cause: Cause.squash(cause) })
      ))
  const remote = yield* Layer.buildWithMemoMap(plan.world, memo, scope).pipe(
    Effect.provideService(Clock.Clock, timeOf(plan, clock)),
    Effect.provideService(Mark, mark),
    (building) => clock.during(building),
    failing("its world")
  )
  const ledger = yield* Layer.buildWithMemoMap(plan.store, memo, scope).pipe(
    Effect.provideContext(remote),
    Effect.provideService(Clock.Clock, real),
    failing("its store")
  )
  const run = yield* Layer.buildWithMemoMap(ToolContext.layer(plan.run), memo, scope)
  const context = Context.mergeAll(
    yield* Effect.context(),
    remote,
    ledger,
    run,
    Context.make(Mark, mark) as Context.Context<never>
  )
  world = new World(plan, clock, context)
  yield* Effect.addFinalizer(() => world!.finish)
  return world
})

/** Runs something in a world of its own. */
export const inWorld = <A, R>(
  plan: Plan,
  use: (world: World) => Effect.Effect<A, CrashLabError, R>
): Effect.Effect<A, CrashLabError, Exclude<R, Scope.Scope>> =>
  Effect.scoped(
    Effect.flatMap(open(plan), (world) =>
      Effect.andThen(plan.reset === undefined ? Effect.void : world.given("reset", plan.reset), use(world)))
  )
