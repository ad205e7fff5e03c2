/**
 * A simulated world: processes that run the real program over one store and one remote. Each request of a process to
 * either waits here until somebody decides what becomes of it; nothing else moves by itself.
 *
 * What may be decided, and at which price, is in `choices.ts`.
 */
import {
  type ApplyOnceOptions,
  EffectEvent,
  EffectResolution,
  EffectStore,
  type EffectStoreError,
  type IEffectStore
} from "chamvi-effect"
import { Clock, Context, Effect, Random, References, Scheduler, Stream } from "effect"
import { type Ledger, makeLedger } from "./Ledger.ts"
import {
  type Account,
  type Caller,
  type CallerPlan,
  exitOf,
  key,
  type Operation,
  type OperationKind,
  type Scenario
} from "./model.ts"
import { mix, Process } from "./Process.ts"
import { Remote, times } from "./Remote.ts"

const firstDouble: Context.Service.Shape<typeof Random.Random> = { nextIntUnsafe: () => 0, nextDoubleUnsafe: () => 0.5 }

export class World {
  now = 1_000
  readonly ledger: Ledger
  readonly remote: Remote
  readonly processes: Array<Process> = []
  readonly callers = new Map<string, Caller>()
  readonly events: Array<EffectEvent & { readonly process: number }> = []
  operations: Array<Operation> = []
  readonly account: Account = { crashes: 0, cuts: 0, lostLeases: 0, ticks: 0, faults: 0 }
  readonly scenario: Scenario
  /** What a process did that it must never do. */
  readonly wrongs: Array<string> = []
  /** What a claimId is called in every world. */
  private readonly claimIds = new Map<string, string>()
  /** Who was granted a token. */
  private readonly holders = new Map<number, Process>()

  constructor(scenario: Scenario) {
    this.scenario = scenario
    this.remote = new Remote(scenario.kind)
    const ledger = makeLedger()
    this.ledger = scenario.ledgerFault === undefined ? ledger : scenario.ledgerFault(ledger)
    const processes = Math.max(...scenario.callers.map(({ process }) => process)) + 1
    for (let i = 0; i < processes; i++) this.newProcess()
  }

  newProcess(): Process {
    const process = new Process(this.processes.length, () => this.now)
    process.store = this.storeOf(process)
    this.processes.push(process)
    return process
  }

  /** Runs what can run without a decision. */
  drain(): void {
    for (const process of this.processes) if (process.runs) process.scheduler.drain()
  }

  start(plan: CallerPlan, process = this.processes[plan.process]!): Caller {
    const { kind, program } = this.scenario
    const tool = plan.tool ?? "tool"
    const remote = <A>(name: OperationKind, perform: () => A): Effect.Effect<A, unknown> =>
      this.request(process, name, perform, true)
    const apply = remote("apply", () => {
      if (process.toldLost && !kind.uninterruptible) this.wrongs.push(`${process.name} goes on without its claim`)
      return this.remote.apply({ tool, process: process.index, at: this.now, late: this.now >= process.leaseUntil })
    })
    const check = remote("check", () => this.remote.find(this.now))
    const options: ApplyOnceOptions<string, unknown, never, unknown, never> = {
      key,
      tool,
      ...times,
      whenInDoubt: kind.whenInDoubt,
      settle: kind.lag > 0 ? kind.lag : undefined,
      alreadyApplied: kind.checks
        ? () => Effect.map(check, (found) => found === undefined ? undefined : EffectResolution.applied(found))
        : undefined,
      execute: () => {
        if (this.now > process.leaseUntil - times.lease / 3) {
          this.wrongs.push(`${process.name} starts to execute with less than a third of its lease`)
        }
        return kind.uninterruptible ? Effect.uninterruptible(apply) : apply
      }
    }
    process.note(`start ${plan.name} at ${this.now}`)
    const fiber = Effect.runForkWith(this.contextOf(process))(program.applyOnce(options))
    const caller: Caller = { plan, process, fiber, interrupted: false, appliedAtEnd: 0 }
    fiber.addObserver(() => {
      caller.appliedAtEnd = this.remote.applications.length
    })
    this.callers.set(plan.name, caller)
    this.drain()
    return caller
  }

  interrupt(caller: Caller): void {
    caller.interrupted = true
    // as long as another waits for the same, nothing is cut
    const others = [...this.callers.values()].some((other) =>
      other.process === caller.process && other !== caller && !other.interrupted && exitOf(other) === undefined
    )
    if (!others) this.account.cuts++
    caller.process.note(`interrupt ${caller.plan.name} at ${this.now}`)
    caller.fiber.interruptUnsafe()
    this.drain()
  }

  crash(process: Process): void {
    process.crashed = true
    this.account.crashes++
    process.watchers.clear()
    // what is under way in the network stays there; what has not left never will
    this.operations = this.operations.filter((operation) => operation.process !== process || operation.stage === "slow")
  }

  thaw(process: Process): void {
    process.frozen = false
    if (process.missed) this.wakeUp(process)
    this.drain()
  }

  /** Lets time pass until something is due. */
  tick(): void {
    this.now = Math.max(this.now, this.nextDue)
    for (const process of this.processes) if (process.runs) process.fire(this.now)
    this.drain()
  }

  /** When the next timer of a running process, or the lease of one that does not run, is due. */
  get nextDue(): number {
    const row = this.ledger.row()
    const stands = this.processes.some(({ frozen, crashed }) => frozen && !crashed)
    const leaseEnd = stands && row?.status === "held" && row.leaseEnd > this.now ? row.leaseEnd : Infinity
    return this.processes.reduce(
      (least, process) => process.runs ? Math.min(least, process.nextTimer) : least,
      leaseEnd
    )
  }

  /** The operation of that name. */
  operation(label: string): Operation {
    return this.operations.find((operation) => operation.label === label)!
  }

  /** The request arrives. */
  arrive(operation: Operation): void {
    operation.reply = operation.perform()
    operation.stage = "answered"
    this.drain()
  }

  /** The process gets the answer: that of the store or remote, or a failure in its place. */
  answer(operation: Operation, failure?: unknown): void {
    // its arrival may have ended who waited for it
    if (!this.operations.includes(operation)) return
    this.operations = this.operations.filter((other) => other !== operation)
    if (operation.process.crashed) return
    const told = failure === undefined ? JSON.stringify(operation.reply) : `! ${JSON.stringify(failure)}`
    if (failure === undefined) operation.told?.()
    operation.process.note(`${operation.label} ${told} at ${this.now}`)
    operation.resume(failure === undefined ? Effect.succeed(operation.reply) : Effect.fail(failure))
    this.drain()
  }

  /** Forgets an operation whose answer never comes. */
  silence(operation: Operation): void {
    this.operations = this.operations.filter((other) => other !== operation)
  }

  /** Everything that the future depends on. */
  get state(): string {
    const operations = this.operations.map(({ label, reply, stage }) =>
      stage === "answered" ? `${label} ${JSON.stringify(reply)}` : `${label} ${stage}`
    ).sort()
    return JSON.stringify([
      this.now,
      this.rowState,
      this.remote.applications,
      this.processes.map((process) => this.processState(process)),
      operations,
      Array.from(this.callers.values(), (caller) => this.callerState(caller)).sort(),
      this.account
    ])
  }

  private get rowState(): unknown {
    const row = this.ledger.row()
    if (row === undefined) return undefined
    // nothing moves a record any more, whenever it was written
    if (row.status === "recorded") return [row.tool, row.token, row.result]
    return { ...row, claimId: this.claimIds.get(row.claimId), owner: "" }
  }

  private processState(process: Process): unknown {
    if (process.crashed) return "crashed"
    return this.isIdle(process)
      ? ["idle", process.frozen]
      : [process.history, process.frozen, process.missed, process.leaseUntil]
  }

  private callerState({ fiber, plan, process }: Caller): string {
    const exit = fiber.pollUnsafe()
    const tells = this.events.some((event) =>
      event.process === process.index && (event.claimLost || event.recordFailed)
    )
    const ended = exit === undefined ? "runs" : exit._tag === "Success" ? String(exit.value) : "failed"
    return `${plan.name} ${ended} ${tells}`
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

  get hash(): number {
    return mix(this.state)
  }

  private contextOf(process: Process): Context.Context<EffectStore> {
    const index = process.index
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

  /** A request that waits for a decision. One that can be cut is gone with its fiber, unless it has arrived. */
  private request<A>(process: Process, kind: OperationKind, perform: () => A, cuttable: boolean, told?: () => void) {
    return Effect.callback<A>((resume) => {
      const operation: Operation = {
        label: `${process.name} ${kind} ${process.count(kind)}`,
        kind,
        process,
        perform,
        resume: resume as Operation["resume"],
        told,
        stage: "waiting",
        reply: undefined
      }
      this.operations.push(operation)
      return cuttable ? Effect.sync(() => this.silence(operation)) : undefined
    })
  }

  private storeOf(process: Process): IEffectStore {
    const { ledger } = this
    const batch =
      <Item, Reply>(kind: OperationKind, step: (item: Item, now: number) => Reply) =>
      (items: ReadonlyArray<Item>): Effect.Effect<ReadonlyArray<Reply>, EffectStoreError> =>
        this.request(process, kind, () => items.map((item) => step(item, this.now)), false)
    const unused = () => Effect.die(new Error("not simulated"))
    const wakes = <A extends ReadonlyArray<unknown>, B>(step: (...args: A) => B) => (...args: A): B => {
      const before = ledger.row()
      const reply = step(...args)
      if (ledger.row() !== before) this.wake()
      return reply
    }
    return {
      batch: false,
      claim: batch("claim", (request, now) => {
        const { claimId, lease } = request
        if (!this.claimIds.has(claimId)) this.claimIds.set(claimId, `${process.name} ${process.count("claimId")}`)
        const before = ledger.row()
        const reply = ledger.claim(request, now)
        if (reply._tag !== "Claimed") return reply
        if (before?.status === "held" && before.token !== reply.token) this.takenOver(before.token, process)
        this.holders.set(reply.token, process)
        process.leaseUntil = Math.max(process.leaseUntil, now + lease)
        process.token = reply.token
        process.toldLost = false
        return reply
      }),
      complete: batch("complete", wakes(ledger.complete)),
      release: batch("release", wakes(ledger.release)),
      renew: (items) => {
        let lost: number | undefined
        const renewed = () =>
          items.map((item) => {
            const reply = ledger.renew(item, this.now)
            if (reply === "ok") process.leaseUntil = Math.max(process.leaseUntil, this.now + item.lease)
            else lost = item.token
            return reply
          })
        return this.request(process, "renew", renewed, false, () => {
          process.toldLost ||= lost === process.token
        })
      },
      get: () => this.request(process, "get", () => ledger.row(), false),
      resolve: (_, resolution) =>
        this.request(process, "resolve", () => {
          const json = resolution._tag === "Applied" ? JSON.stringify(resolution.result?.value) : undefined
          return wakes(ledger.resolve)(resolution, json, this.now)
        }, false),
      list: () => Stream.die(new Error("not simulated")),
      remove: unused,
      prune: unused,
      changes: () =>
        Stream.fromEffectRepeat(Effect.callback<void>((resume) => {
          const notify = () => resume(Effect.void)
          process.watchers.add(notify)
          return Effect.sync(() => void process.watchers.delete(notify))
        }))
    }
  }

  private takenOver(token: number, by: Process): void {
    const holder = this.holders.get(token)
    if (holder === undefined) return
    if (!holder.crashed && this.now >= holder.leaseUntil) this.account.lostLeases++
    // a claim whose release is still on its way may be taken over, one that is forgotten must not be
    const releases = this.operations.some(({ kind, process }) => kind === "release" && process === by)
    if (holder === by && !releases) this.wrongs.push(`${by.name} takes its own claim over`)
  }

  private wake(): void {
    for (const process of this.processes) {
      if (process.runs) this.wakeUp(process)
      else process.missed = true
    }
  }

  private wakeUp(process: Process): void {
    const watchers = [...process.watchers]
    process.missed = false
    process.watchers.clear()
    if (watchers.length > 0) process.note(`woken at ${this.now}`)
    watchers.forEach((notify) => notify())
  }
}
