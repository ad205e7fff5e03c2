/**
 * A store that fails, stalls, loses replies or dies, on purpose: by a plan, or by a seed. For tests of what a program does
 * in trouble that a healthy store never makes.
 *
 * @since 0.1.0
 */
import { Context, Data, Deferred, type Duration, Effect, Layer, type Scope, Stream } from "effect"
import { EffectStore, type EffectTransactions, type IEffectStore } from "../EffectStore.ts"
import { EffectStoreError } from "../errors.ts"
import { own } from "../store/lifetime.ts"
import { decider, type FaultKind, type FaultOptions, type FaultyOperation } from "./faultyStore/plan.ts"

export type { FaultKind, FaultOptions, FaultyOperation, PlannedFault } from "./faultyStore/plan.ts"

/**
 * How a store is faulty.
 *
 * @category models
 * @since 0.1.0
 */
export interface FaultyStoreOptions extends FaultOptions {
  /** How long stalled operations and late ones take, on the clock of their fiber. Default: a minute. */
  readonly stall?: Duration.Input | undefined
}

/**
 * A fault that happened.
 *
 * @category models
 * @since 0.1.0
 */
export interface HappenedFault {
  /** Which one of all operations it was; the first one is 1. */
  readonly nth: number
  readonly operation: FaultyOperation
  readonly keys: ReadonlyArray<string>
  readonly fault: FaultKind
}

/** What a fault does before and after the operation. */
interface Around {
  readonly before: Effect.Effect<unknown, EffectStoreError>
  readonly after: Effect.Effect<unknown, EffectStoreError>
}

const healthy: Around = { before: Effect.void, after: Effect.void }

/**
 * What was done to the store of a program, and the end of it.
 *
 * **Details**
 *
 * `layer` decorates the store that it finds, and reports as this service. `decorate` does the same to a store in hand, for
 * `wrapToolsForRun`, or for several processes on one ledger, each with faults of its own.
 *
 * Batches are one operation, in transactions each step is one. A transaction that `comeLate`s runs when its caller has
 * given up; a step of it that does so only fails.
 *
 * **Example** (A record whose reply is lost is written, and nothing is applied twice)
 *
 * ```ts
 * import { applyOnce, EffectStore } from "chamvi-effect"
 * import { FaultyStore } from "chamvi-effect/testing"
 * import { Effect, Layer } from "effect"
 *
 * let applied = 0
 * const greet = applyOnce({ key: "greet:ada", execute: () => Effect.sync(() => `hello ${++applied}`) })
 *
 * const program = Effect.gen(function*() {
 *   const greetings = [yield* greet, yield* greet]
 *   const faulty = yield* FaultyStore
 *   return [...greetings, ...(yield* faulty.report).map(({ fault, operation }) => `${operation}: ${fault}`)]
 * })
 *
 * const Store = FaultyStore.layer({ plan: [{ operation: "complete", fault: "loseReply" }] }).pipe(
 *   Layer.provide(EffectStore.layerMemory)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Store)) // => ["hello 1", "hello 1", "complete: loseReply"]
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class FaultyStore extends Context.Service<FaultyStore, {
  /** The faults that happened, in order. */
  readonly report: Effect.Effect<ReadonlyArray<HappenedFault>>
  /** How many operations there were, the healthy ones too. */
  readonly operations: Effect.Effect<number>
  /** The store is well from now on: no more faults, and what is stalled or late happens now. */
  readonly mend: Effect.Effect<void>
}>()("chamvi-effect/testing/FaultyStore") {
  /**
   * The store of the context, made faulty. When the layer closes, operations that were still to come late never happen.
   */
  static layer(options: FaultyStoreOptions): Layer.Layer<EffectStore | FaultyStore, never, EffectStore> {
    return Layer.effectContext(
      Effect.gen(function*() {
        const { faulty, store } = yield* FaultyStore.decorate(yield* EffectStore, options)
        yield* own(store)
        return Context.make(EffectStore, store).pipe(Context.add(FaultyStore, faulty))
      })
    )
  }

  /**
   * A store that passes its operations on to `store`, with faults, until the scope closes: what was still to come late never
   * happens then.
   */
  static readonly decorate: (
    store: IEffectStore,
    options: FaultyStoreOptions
  ) => Effect.Effect<
    { readonly store: IEffectStore; readonly faulty: FaultyStore["Service"] },
    never,
    Scope.Scope
  > = Effect.fnUntraced(function*(store, { stall = "1 minute", ...options }) {
    const scope = yield* Effect.scope
    const decide = yield* decider(options)
    const mended = yield* Deferred.make<void>()
    const report: Array<HappenedFault> = []
    let count = 0

    const late = Effect.interruptible(Effect.raceFirst(Effect.sleep(stall), Deferred.await(mended)))

    const around = (
      operation: FaultyOperation,
      keys: ReadonlyArray<string>,
      happens: Effect.Effect<unknown, unknown>
    ): Around => {
      const nth = ++count
      const fault = decide(operation)
      if (fault === undefined || Deferred.isDoneUnsafe(mended)) return healthy
      report.push({ nth, operation, keys, fault })
      const failure = Effect.fail(
        new EffectStoreError({
          operation,
          problem: `FaultyStore: ${fault}`,
          ...(keys[0] === undefined ? {} : { key: keys[0] })
        })
      )
      const death = Effect.die(new StoreDied({ operation, nth }))
      switch (fault) {
        case "fail":
          return { ...healthy, before: failure }
        case "loseReply":
          return { ...healthy, after: failure }
        case "die":
          return { ...healthy, before: death }
        case "dieAfter":
          return { ...healthy, after: death }
        case "stall":
          return { ...healthy, before: late }
        case "stallReply":
          return { ...healthy, after: late }
        case "comeLate": {
          const comes = Effect.ignoreCause(Effect.andThen(late, happens))
          return { ...healthy, before: Effect.andThen(Effect.forkIn(comes, scope), failure) }
        }
      }
    }

    const faulted = <A, E>(
      operation: FaultyOperation,
      keys: ReadonlyArray<string>,
      ask: () => Effect.Effect<A, E>,
      comesLate = true
    ): Effect.Effect<A, E | EffectStoreError> =>
      Effect.suspend(() => {
        const happens = Effect.suspend(ask)
        const { after, before } = around(operation, keys, comesLate ? happens : Effect.void)
        return Effect.andThen(before, Effect.tap(happens, after))
      })

    const faultedStream = <A, E>(
      operation: FaultyOperation,
      keys: ReadonlyArray<string>,
      values: Stream.Stream<A, E>
    ): Stream.Stream<A, E | EffectStoreError> =>
      Stream.suspend(() => {
        const { after, before } = around(operation, keys, Effect.void)
        const only = (effect: Effect.Effect<unknown, EffectStoreError>) => Stream.drain(Stream.fromEffect(effect))
        return Stream.concat(only(before), Stream.concat(values, only(after)))
      })

    const keysOf = (items: ReadonlyArray<{ readonly key: string }>) => items.map(({ key }) => key)

    const { transactions } = store
    const decorated: IEffectStore = {
      batch: store.batch,
      claim: (requests) => faulted("claim", keysOf(requests), () => store.claim(requests)),
      complete: (items) => faulted("complete", keysOf(items), () => store.complete(items)),
      release: (items) => faulted("release", keysOf(items), () => store.release(items)),
      renew: (items) => faulted("renew", keysOf(items), () => store.renew(items)),
      get: (key) => faulted("get", [key], () => store.get(key)),
      list: (filter) => faultedStream("list", [], store.list(filter)),
      resolve: (key, resolution) => faulted("resolve", [key], () => store.resolve(key, resolution)),
      remove: (key) => faulted("remove", [key], () => store.remove(key)),
      prune: (options) => faulted("prune", [], () => store.prune(options)),
      changes: (key) => faultedStream("changes", [key], store.changes(key)),
      ...transactions === undefined ? {} : { transactions: inTransactions(transactions, faulted) }
    }
    const faulty: FaultyStore["Service"] = {
      report: Effect.sync(() => [...report]),
      operations: Effect.sync(() => count),
      mend: Effect.asVoid(Deferred.succeed(mended, undefined))
    }
    return { store: decorated, faulty }
  })
}

/** What a store dies of, on purpose. */
class StoreDied extends Data.TaggedError("StoreDied")<{ readonly operation: FaultyOperation; readonly nth: number }> {
  override get message(): string {
    return `FaultyStore: ${this.operation}, which is operation ${this.nth}, was to die.`
  }
}

const inTransactions = (
  transactions: EffectTransactions,
  faulted: <A, E>(
    operation: FaultyOperation,
    keys: ReadonlyArray<string>,
    ask: () => Effect.Effect<A, E>,
    comesLate?: boolean
  ) => Effect.Effect<A, E | EffectStoreError>
): EffectTransactions => ({
  ...transactions,
  run: (work) => {
    // what comes late would come when the transaction is over
    const step = <A>(operation: FaultyOperation, key: string, ask: () => Effect.Effect<A, EffectStoreError>) =>
      faulted(operation, [key], ask, false)
    return faulted(
      "transaction",
      [],
      () =>
        transactions.run((ledger) =>
          work({
            claim: (request) => step("claim", request.key, () => ledger.claim(request)),
            complete: (item) => step("complete", item.key, () => ledger.complete(item))
          })
        )
    )
  }
})
