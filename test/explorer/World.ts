/**
 * A simulated world: processes that run the real program over one store and one remote. Each request of a process to
 * either waits here until somebody decides what becomes of it; nothing else moves by itself.
 *
 * What may be decided, and at which price, is in `choices.ts`.
 */
import { type ApplyOnceOptions, EffectEvent, EffectResolution, EffectStore } from "chamvi-effect"
import { Clock, Context, Effect, Exit, Random, References, Scheduler, Scope } from "effect"
import { own } from "../../src/store/lifetime.ts"
import {
  type Account,
  type Caller,
  type CallerPlan,
  exitOf,
  key,
  keyOf,
  type Operation,
  type OperationKind,
  type Scenario,
  toolOf
} from "./model.ts"
import { Process } from "./Process.ts"
import { times } from "./Remote.ts"
import { storeOf } from "./simulatedStore.ts"
import { Subject } from "./Subject.ts"

const firstDouble: Context.Service.Shape<typeof Random.Random> = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0.5 }

interface Request<A> {
  readonly kind: OperationKind
  readonly says: string
  readonly onlyReads: () => boolean
  readonly perform: () => A
  readonly means: (reply: A) => string
  readonly told?: (reply: A) => void
  /** Whether it is gone with its fiber, unless it has arrived. */
  readonly cuttable: boolean
}

export class World {
  now = 1_000
  readonly processes: Array<Process> = []
  readonly callers = new Map<string, Caller>()
  readonly events: Array<EffectEvent & { readonly process: number }> = []
  operations: Array<Operation> = []
  readonly account: Account = { crashes: 0, cuts: 0, lostLeases: 0, ticks: 0, faults: 0 }
  readonly scenario: Scenario
  /** What a process did that it must never do. */
  readonly wrongs: Array<string> = []
  readonly subjects: ReadonlyMap<string, Subject>
  private readonly contexts: Array<Context.Context<EffectStore>> = []
  /** Microtasks of the program, where there are any. */
  private microtasks: Array<() => void> = []

  constructor(scenario: Scenario) {
    this.scenario = scenario
    const keys = new Set([key, ...scenario.callers.map(keyOf)])
    this.subjects = new Map(Array.from(keys, (key) => [key, new Subject(key, scenario)]))
    const processes = Math.max(...scenario.callers.map(({ process }) => process)) + 1
    for (let i = 0; i < processes; i++) this.newProcess()
  }

  subject(key: string): Subject {
    return this.subjects.get(key)!
  }

  newProcess(): Process {
    const process = new Process(this.processes.length, () => this.now)
    process.store = storeOf(this, process)
    this.processes.push(process)
    this.contexts.push(this.contextOf(process))
    if (this.scenario.closes === true) {
      Effect.runSyncWith(this.contexts[process.index]!)(Scope.provide(own(process.store), process.scope))
    }
    return process
  }

  /** Runs what can run without a decision. */
  drain(): void {
    do {
      const { microtasks } = this
      this.microtasks = []
      microtasks.forEach((task) => task())
      for (const process of this.processes) if (process.runs) process.scheduler.drain()
    } while (this.microtasks.length > 0)
  }

  /** Runs a part of the program, and all that follows from it without a decision. */
  run(part: () => void): void {
    if (this.scenario.batch !== true) {
      part()
      return this.drain()
    }
    const real = globalThis.queueMicrotask
    globalThis.queueMicrotask = (task) => void this.microtasks.push(task)
    try {
      part()
      this.drain()
    } finally {
      globalThis.queueMicrotask = real
    }
  }

  start(plan: CallerPlan, process = this.processes[plan.process]!): void {
    const together = [plan, ...this.scenario.callers.filter(({ startsWith }) => startsWith === plan.name)]
    this.run(() => together.forEach((plan) => this.call(plan, process)))
  }

  private call(plan: CallerPlan, process: Process): void {
    const { applyOnce } = this.scenario.program
    const subject = this.subject(keyOf(plan))
    const options = this.optionsOf(plan, process)
    process.note(`start ${toolOf(plan)} ${keyOf(plan)} ${plan.input}`, `start ${plan.name}`)
    const fiber = Effect.runForkWith(this.contexts[process.index]!)(applyOnce(options))
    const caller: Caller = { plan, process, fiber, interrupted: false, appliedAtEnd: 0 }
    fiber.addObserver(() => {
      caller.appliedAtEnd = subject.remote.applications.length
    })
    this.callers.set(plan.name, caller)
  }

  private optionsOf(
    plan: CallerPlan,
    process: Process
  ): ApplyOnceOptions<string, unknown, EffectStore, unknown, never> {
    const { kind, program } = this.scenario
    const { key, remote } = this.subject(keyOf(plan))
    const tool = toolOf(plan)
    const hold = process.hold(key)
    const hook = { says: `${key} ${tool} ${plan.input}`, cuttable: true }
    const apply: Effect.Effect<string, unknown> = this.request(process, {
      ...hook,
      kind: "apply",
      onlyReads: () => false,
      perform: () => {
        if (hold.toldLost && !kind.uninterruptible) this.wrongs.push(`${process.name} goes on without its claim`)
        const late = this.now >= hold.leaseUntil || (process.crashed && this.scenario.seesDeath === true)
        return remote.apply({ tool, input: plan.input ?? "", process: process.index, at: this.now, late })
      },
      means: (value) => value
    })
    const check = this.request(process, {
      ...hook,
      kind: "check",
      onlyReads: () => true,
      perform: () => remote.find(this.now),
      means: (found) => JSON.stringify(found) ?? "none"
    })
    const options: ApplyOnceOptions<string, unknown, EffectStore, unknown, never> = {
      key,
      tool,
      ...times,
      input: plan.input,
      onInputChange: plan.onInputChange,
      whenInDoubt: kind.whenInDoubt,
      settle: kind.lag > 0 ? kind.lag : undefined,
      alreadyApplied: kind.checks
        ? () =>
          Effect.map(check, (found) => {
            if (found === undefined) return undefined
            return found.value === undefined ? EffectResolution.applied() : EffectResolution.applied(found.value)
          })
        : undefined,
      execute: () => {
        if (process.life === "closed") this.wrongs.push(`${process.name} starts to execute after its store has closed`)
        if (this.now > hold.leaseUntil - times.lease / 3) {
          this.wrongs.push(`${process.name} starts to execute with less than a third of its lease`)
        }
        return kind.uninterruptible ? Effect.uninterruptible(apply) : apply
      }
    }
    if (!kind.reenters) return options
    const within = program.applyOnce({ ...options, execute: () => Effect.succeed("within itself") })
    const refused = Effect.matchEffect(within, {
      onSuccess: (value) => Effect.sync(() => this.wrongs.push(`a call within its own gave ${value}`)),
      onFailure: (error) =>
        (error as { readonly _tag?: unknown })._tag === "EffectReentrantError"
          ? Effect.void
          : Effect.sync(() => this.wrongs.push(`a call within its own failed with ${String(error)}`))
    })
    return { ...options, execute: (key) => Effect.andThen(refused, options.execute(key)) }
  }

  interrupt(caller: Caller): void {
    caller.interrupted = true
    // as long as another waits for the same, nothing is cut
    const others = [...this.callers.values()].some((other) =>
      other.process === caller.process && keyOf(other.plan) === keyOf(caller.plan) && other !== caller
      && !other.interrupted && exitOf(other) === undefined
    )
    if (!others) this.account.cuts++
    const own = [...this.callers.values()].filter(({ process }) => process === caller.process)
    caller.process.note(`interrupt ${own.indexOf(caller)}`, `interrupt ${caller.plan.name}`)
    this.run(() => caller.fiber.interruptUnsafe())
  }

  crash(process: Process): void {
    process.crashed = true
    this.account.crashes++
    process.watchers.clear()
    // what is under way in the network stays there; what has not left never will
    this.operations = this.operations.filter((operation) => operation.process !== process || operation.stage === "slow")
  }

  /** Closes the layer of the process's store. */
  close(process: Process): void {
    const { index } = process
    const runs = [...this.callers.values()].some((caller) => caller.process === process && exitOf(caller) === undefined)
    if (runs) this.account.cuts++
    process.life = "closing"
    process.note("close")
    this.run(() => {
      const fiber = Effect.runForkWith(this.contexts[process.index]!)(Scope.close(process.scope, Exit.void))
      fiber.addObserver(() => this.closed(this.processes[index]!))
    })
  }

  private closed(process: Process): void {
    process.life = "closed"
    // a hook that cannot be cut is waited for no longer than a record
    const works = this.scenario.kind.uninterruptible
      && this.operations.some(({ kind, process: by }) => by === process && kind === "apply")
    if (process.troubledAtClose > 0 || works) return
    for (const { key, ledger } of this.subjects.values()) {
      const row = ledger.row()
      if (row?.status === "held" && row.token === process.hold(key).toldToken) {
        this.wrongs.push(`${process.name} closed its store and still holds the key`)
      }
    }
  }

  thaw(process: Process): void {
    process.frozen = false
    this.run(() => {
      if (process.missed) this.wakeUp(process)
    })
  }

  /** Lets time pass until something is due. */
  tick(): void {
    this.now = Math.max(this.now, this.nextDue)
    this.run(() => {
      for (const process of this.processes) if (process.runs) process.fire(this.now)
    })
  }

  /** When the next timer of a running process, or the lease of one that does not run, is due. */
  get nextDue(): number {
    const stands = this.processes.some(({ frozen, crashed }) => frozen && !crashed)
    let least = Infinity
    if (stands) {
      for (const { ledger } of this.subjects.values()) {
        const row = ledger.row()
        if (row?.status === "held" && row.leaseEnd > this.now) least = Math.min(least, row.leaseEnd)
      }
    }
    return this.processes.reduce((least, { nextTimer, runs }) => runs ? Math.min(least, nextTimer) : least, least)
  }

  /** The operation of that name. */
  operation(label: string): Operation {
    return this.operations.find((operation) => operation.label === label)!
  }

  /** The request arrives. */
  arrive(operation: Operation): void {
    this.run(() => {
      operation.reply = operation.perform()
      operation.stage = "answered"
    })
  }

  /** The process gets the answer: that of the store or remote, or a failure in its place. */
  answer(operation: Operation, failure?: unknown): void {
    // its arrival may have ended who waited for it
    if (!this.operations.includes(operation)) return
    this.silence(operation)
    const { label, process, reply } = operation
    if (process.crashed) return
    const told = failure === undefined ? operation.means(reply) : `! ${JSON.stringify(failure)}`
    const exactly = failure === undefined ? JSON.stringify(reply) : told
    if (failure === undefined) operation.told?.()
    process.note(`${label.slice(process.name.length)} ${told}`, `${label} ${exactly}`)
    this.run(() => operation.resume(failure === undefined ? Effect.succeed(reply) : Effect.fail(failure)))
  }

  /** Forgets an operation whose answer never comes. */
  silence(operation: Operation): void {
    this.operations = this.operations.filter((other) => other !== operation)
  }

  /** Whether nothing of the past is left in the process: then it does not matter how it came to that. */
  isIdle(process: Process): boolean {
    if (process.timers.length > 0 || this.operations.some((operation) => operation.process === process)) return false
    for (const caller of this.callers.values()) {
      if (caller.process === process && caller.fiber.pollUnsafe() === undefined) return false
    }
    const { applications, unanswered, unreleased, unwritten } = this.scenario.program.registryOf(process.store)
    return applications.size + unanswered.size + unreleased.size + unwritten.size === 0
  }

  private contextOf(process: Process): Context.Context<EffectStore> {
    const { index } = process
    return Context.make(EffectStore, process.store).pipe(
      Context.add(Scheduler.Scheduler, process.scheduler),
      Context.add(Clock.Clock, process.clock),
      Context.add(Random.Random, firstDouble),
      Context.add(References.CurrentLoggers, new Set()),
      Context.add(EffectEvent.Listener, (event) =>
        Effect.sync(() => {
          if (process.runs) this.events.push({ ...event, process: index })
        }))
    )
  }

  /** A request that waits for a decision. */
  request<A>(
    process: Process,
    { cuttable, kind, means, onlyReads, perform, says, told }: Request<A>
  ): Effect.Effect<A> {
    return Effect.callback<A>((resume) => {
      const operation: Operation = {
        label: `${process.name} ${kind} ${process.count(kind)}`,
        kind,
        process,
        says,
        onlyReads,
        perform,
        resume: resume as Operation["resume"],
        means: means as Operation["means"],
        told: told && (() => told(operation.reply as A)),
        stage: "waiting",
        reply: undefined
      }
      this.operations.push(operation)
      return cuttable ? Effect.sync(() => this.silence(operation)) : undefined
    })
  }

  /** A claim that nobody had released was granted to another. */
  takenOver(key: string, token: number, by: Process): void {
    const holder = this.subject(key).holders.get(token)
    if (holder === undefined) return
    if (!holder.crashed && this.now >= holder.hold(key).leaseUntil) this.account.lostLeases++
    // a claim whose release is still on its way may be taken over, one that is forgotten must not be
    const releases = this.operations.some(({ kind, process }) => kind === "release" && process === by)
    if (holder === by && !releases) this.wrongs.push(`${by.name} takes its own claim over`)
  }

  /** The row of a key has changed. */
  wake(): void {
    for (const process of this.processes) {
      if (process.runs) this.wakeUp(process)
      else if (process.watchers.size > 0) process.missed = true
    }
  }

  private wakeUp(process: Process): void {
    const watchers = [...process.watchers]
    process.missed = false
    process.watchers.clear()
    if (watchers.length > 0) process.note("woken")
    watchers.forEach((notify) => notify())
  }
}
