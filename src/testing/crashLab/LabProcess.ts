/**
 * A process of a lab: a store object of its own over the common ledger, and hooks that the lab can kill, hold or cut at
 * their borders.
 *
 * A process that was killed does nothing more: its requests never leave, its timers never fire, and its hooks never go on.
 */
import { Clock, Deferred, Effect, Stream } from "effect"
import type { ClaimReply, ClaimRequest } from "../../EffectRecord.ts"
import type { EffectTransactions, IEffectStore, LedgerInTransaction } from "../../EffectStore.ts"
import { EffectStoreError } from "../../errors.ts"
import type { LabClock, Sleeper } from "./LabClock.ts"

/** What a lab does at a border that a process comes to. */
type Action = (process: LabProcess) => Effect.Effect<void>

/** Kills the process at the border. */
export const kill: Action = (process) => process.die

/** A claim that the process holds, under the name that the ledger knows. */
interface Hold {
  readonly key: string
  readonly token: number
  readonly lease: number
}

const real = Clock.Clock.defaultValue()

/** A process that comes to a border and stands still. */
export interface Freeze {
  /** It stands still. */
  readonly reached: Effect.Effect<void>
  /** Its timers fire again, and it still stands at the border. */
  readonly wake: Effect.Effect<void>
  /** It goes on. */
  readonly goOn: Effect.Effect<unknown>
}

/** What belongs to the world that a process lives in. */
export interface Surroundings {
  readonly clock: Pick<LabClock, "sign">
  readonly ledger: IEffectStore
  /** What the ledger knows a key by: a point must not meet the rows of another. */
  readonly nameOf: (key: string) => string
  /** Every key that was claimed. */
  readonly keys: Set<string>
  /** The lease of every claim, in milliseconds, instead of the tool's own. */
  readonly lease?: number | undefined
}

export class LabProcess implements Sleeper {
  readonly store: IEffectStore
  /** The borders that it came to, in order. */
  readonly trace: Array<string> = []
  /** What `execute` ends with instead of its result. */
  executeEndsWith: Effect.Effect<never, unknown> | undefined = undefined
  readonly died = Deferred.makeUnsafe<void>()
  private readonly end = Deferred.makeUnsafe<void>()
  private life: "running" | "dead" | "gone" = "running"
  private isFrozen = false
  private inTransaction = false
  private works = 0
  private readonly holds = new Map<string, Hold>()
  private readonly actions = new Map<string, Action>()
  private readonly around: Surroundings

  constructor(around: Surroundings) {
    this.around = around
    this.store = this.storeOver(around.ledger)
  }

  /** Whether its timers fire. */
  get runs(): boolean {
    return this.alive && !this.isFrozen
  }

  get isBusy(): boolean {
    return this.runs && this.works > 0
  }

  private get alive(): boolean {
    return this.life === "running"
  }

  /** What happens when the process comes to a border for the first time. */
  at(border: string, action: Action): void {
    this.actions.set(border, action)
  }

  /** Ends when the process comes to a border. */
  signalAt(border: string): Effect.Effect<void> {
    const reached = Deferred.makeUnsafe<void>()
    this.at(border, () => Effect.asVoid(Deferred.succeed(reached, undefined)))
    return Deferred.await(reached)
  }

  /** Freezes the process at a border. */
  freezeAt(border: string): Freeze {
    const reached = Deferred.makeUnsafe<void>()
    const gate = Deferred.makeUnsafe<void>()
    this.at(border, () => {
      this.isFrozen = true
      return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate))
    })
    const wake = Effect.sync(() => {
      this.isFrozen = false
    })
    return { reached: Deferred.await(reached), wake, goOn: Effect.andThen(wake, Deferred.succeed(gate, undefined)) }
  }

  /** Dies, here and now. The database rolls back what a transaction has not committed. */
  get die(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.life = "dead"
      if (this.inTransaction) return Effect.die("killed")
      Deferred.doneUnsafe(this.died, Effect.void)
      return this.stopped
    })
  }

  /** What a process does that is dead: it waits for the end of the point, and whatever it was at ends with it. */
  private readonly stopped: Effect.Effect<never> = Effect.suspend(() =>
    Effect.andThen(Deferred.await(this.end), Effect.interrupt)
  )

  /** Ends what is left of the process, whatever it waits for. */
  get finish(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.life = "gone"
      return Effect.asVoid(Deferred.succeed(this.end, undefined))
    })
  }

  /** Lets the leases of all its claims end, as if so much time had passed on the store's clock. */
  get endLeases(): Effect.Effect<void, EffectStoreError> {
    return Effect.suspend(() => {
      const held = Array.from(this.holds.values())
      return Effect.forEach(
        held,
        ({ key, token }) => onRealTime(this.around.ledger.renew([{ key, token, lease: 0 }])),
        { discard: true }
      )
    })
  }

  /** How long the process waits at most until it sees that a claim is lost, in milliseconds. */
  get heartbeat(): number {
    return Math.max(0, ...Array.from(this.holds.values(), ({ lease }) => lease / 3))
  }

  /** Comes to a border, at which whatever is planned for it happens. */
  border(name: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.around.clock.sign()
      if (!this.alive) return this.stopped
      this.trace.push(name)
      const action = this.actions.get(name)
      this.actions.delete(name)
      return action === undefined ? Effect.void : action(this)
    })
  }

  /** Counts `work` as work, for as long as it runs. */
  atWork<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.ensuring(
      Effect.suspend(() => {
        this.works++
        return work
      }),
      Effect.sync(() => this.works--)
    )
  }

  /** Runs `work` between its two borders. */
  within<A, E, R>(name: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return this.atWork(Effect.andThen(
      this.border(`before ${name}`),
      Effect.tap(work, () => this.border(`after ${name}`))
    ))
  }

  /** The same for a Stream. */
  streamWithin<A, E, R>(name: string, stream: Stream.Stream<A, E, R>): Stream.Stream<A, E, R> {
    const pass = (border: Effect.Effect<void>) => Stream.drain(Stream.fromEffect(border))
    return Stream.ensuring(
      Stream.suspend(() => {
        this.works++
        return Stream.concat(
          Stream.concat(pass(this.border(`before ${name}`)), stream),
          pass(this.border(`after ${name}`))
        )
      }),
      Effect.sync(() => this.works--)
    )
  }

  private operation<A, E>(name: string, ask: Effect.Effect<A, E>): Effect.Effect<A, E | EffectStoreError> {
    return Effect.suspend((): Effect.Effect<A, E | EffectStoreError> =>
      this.life === "gone"
        ? Effect.fail(new EffectStoreError({ operation: name, problem: "the process has ended" }))
        : this.within(name, ask)
    )
  }

  private storeOver(ledger: IEffectStore): IEffectStore {
    const { nameOf } = this.around
    const named = <Item extends { readonly key: string }>(items: ReadonlyArray<Item>): ReadonlyArray<Item> =>
      items.map((item) => ({ ...item, key: nameOf(item.key) }))
    const forget = (items: ReadonlyArray<{ readonly key: string }>) =>
      items.forEach(({ key }) => this.holds.delete(key))
    return {
      ...ledger,
      claim: (requests) => this.operation("claim", this.claiming(named(requests), ledger.claim)),
      complete: (items) =>
        this.operation(
          "record",
          Effect.tap(onRealTime(ledger.complete(named(items))), () => Effect.sync(() => forget(named(items))))
        ),
      release: (items) =>
        this.operation(
          "release",
          Effect.tap(onRealTime(ledger.release(named(items))), () => Effect.sync(() => forget(named(items))))
        ),
      renew: (items) => this.operation("renew", onRealTime(ledger.renew(named(items)))),
      get: (key) => this.operation("get", onRealTime(ledger.get(nameOf(key)))),
      resolve: (key, resolution) => this.operation("resolve", onRealTime(ledger.resolve(nameOf(key), resolution))),
      remove: (key) => this.operation("remove", onRealTime(ledger.remove(nameOf(key)))),
      changes: (key) => ledger.changes(nameOf(key)),
      transactions: ledger.transactions && this.transactionsOver(ledger.transactions)
    }
  }

  private claiming(
    asked: ReadonlyArray<ClaimRequest>,
    claim: IEffectStore["claim"]
  ): Effect.Effect<ReadonlyArray<ClaimReply>, EffectStoreError> {
    const requests = asked.map((request) => ({ ...request, lease: this.around.lease ?? request.lease }))
    requests.forEach(({ key }) => this.around.keys.add(key))
    return Effect.tap(onRealTime(claim(requests)), (replies) =>
      Effect.sync(() =>
        replies.forEach((reply, i) => {
          const { key, lease } = requests[i]!
          if (reply._tag === "Claimed") this.holds.set(key, { key, token: reply.token, lease })
        })
      ))
  }

  private transactionsOver(transactions: EffectTransactions): EffectTransactions {
    const { keys, nameOf } = this.around
    const ledgerOf = (ledger: LedgerInTransaction): LedgerInTransaction => ({
      claim: (request) => {
        keys.add(nameOf(request.key))
        return this.operation("claim", ledger.claim({ ...request, key: nameOf(request.key) }))
      },
      complete: (item) => this.operation("record", ledger.complete({ ...item, key: nameOf(item.key) }))
    })
    const run: EffectTransactions["run"] = (work) => {
      const ended = Effect.suspend(() => {
        this.inTransaction = false
        // the death came in the middle, and the rollback is done
        if (this.life === "dead") Deferred.doneUnsafe(this.died, Effect.void)
        return this.alive ? Effect.void : this.stopped
      })
      const worked = Effect.suspend(() => {
        this.inTransaction = true
        // also while it begins and commits
        return this.atWork(transactions.run((ledger) => work(ledgerOf(ledger))))
      })
      return this.border("before begin").pipe(
        Effect.andThen(Effect.onExit(worked, () => ended)),
        Effect.tap(() => this.border("after commit"))
      )
    }
    return { ...transactions, run }
  }
}

/** The ledger's own time is real: connections, servers and files are. */
const onRealTime = <A, E>(ask: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.provideService(ask, Clock.Clock, real)
