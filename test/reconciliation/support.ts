/**
 * What the tests of the reconciliation share: calls without ceremony, hooks that wait at a gate, stores that misbehave,
 * and the check that nothing is left over.
 */
import { assert } from "@effect/vitest"
import {
  applyOnce,
  type ApplyOnceOptions,
  EffectEvent,
  EffectStore,
  EffectStoreError,
  type IEffectStore,
  type SettingsOptions
} from "chamvi-effect"
import { Cause, Deferred, type Duration, Effect, Exit, type Fiber, Logger, type Schema, Stream } from "effect"
import { registryOf } from "../../src/reconciliation/Registry.ts"

/** A fresh ledger in memory. */
export const memory: Effect.Effect<IEffectStore> = Effect.provide(EffectStore, EffectStore.layerMemory)

/** The same ledger as another process has it: under an object of its own, and so with a registry of its own. */
export const anotherProcess = (store: IEffectStore): IEffectStore => ({ ...store })

export interface CallOptions extends SettingsOptions {
  readonly key?: string
  readonly tool?: string
  readonly runId?: string
  readonly input?: unknown
  readonly settle?: Duration.Input
  readonly schema?: Schema.Codec<unknown, unknown>
  /** Answers a value, a Promise or an Effect, as JavaScript may. */
  readonly alreadyApplied?: (key: string) => unknown
  readonly execute?: (key: string) => unknown
}

/** `applyOnce` of key "k" on a store; hooks and results without types. */
export const call = (store: IEffectStore, options: CallOptions = {}): Effect.Effect<unknown, unknown> =>
  Effect.provideService(
    applyOnce(
      { key: "k", tool: "t", execute: () => Effect.succeed("done"), ...options } as ApplyOnceOptions<
        string,
        unknown,
        never,
        unknown,
        never
      >
    ),
    EffectStore,
    store
  )

export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

/** Lets everything happen that needs no time to pass. */
export const turns: Effect.Effect<void> = Effect.asVoid(Effect.repeat(Effect.yieldNow, { times: 40 }))

/** Whether the fiber has ended. */
export const ended = (fiber: Fiber.Fiber<unknown, unknown>): boolean => fiber.pollUnsafe() !== undefined

/** An `execute` that counts its runs. */
export const counting = (...result: readonly [unknown?]) => {
  const hook = {
    runs: 0,
    execute: () =>
      Effect.sync(() => {
        hook.runs++
        return result.length === 0 ? "done" : result[0]
      })
  }
  return hook
}

/** An `execute` that waits for its gate; `entered` is done once it runs, `cut` counts its interruptions. */
export const gated = () => {
  const gate = Deferred.makeUnsafe<unknown, unknown>()
  const entered = Deferred.makeUnsafe<void>()
  const hook = {
    runs: 0,
    cut: 0,
    gate,
    entered: Deferred.await(entered),
    open: (...result: readonly [unknown?]) => Deferred.succeed(gate, result.length === 0 ? "done" : result[0]),
    execute: () =>
      Effect.suspend(() => {
        hook.runs++
        Deferred.doneUnsafe(entered, Effect.void)
        return Deferred.await(gate)
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => void hook.cut++)))
  }
  return hook
}

/** A fiber's failure. */
export const failureOf = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<unknown> =>
  Effect.map(
    Effect.exit(effect),
    (exit) => Exit.isFailure(exit) ? Cause.squash(exit.cause) : assert.fail(`it succeeded with ${String(exit.value)}`)
  )

export const tagOf = (failure: unknown): unknown => (failure as { readonly _tag?: unknown })._tag

/** Asserts that the call fails with the tagged error, and answers it. */
export const failsWith = <A, E>(effect: Effect.Effect<A, E>, tag: string) =>
  Effect.map(failureOf(effect), (failure) => {
    assert.strictEqual(tagOf(failure), tag, String(failure))
    return failure as { readonly [field: string]: unknown }
  })

export const isInterrupted = <A, E>(exit: Exit.Exit<A, E>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

export const down = (operation: string) => Effect.fail(new EffectStoreError({ operation, problem: "it is down" }))

/** The operation happens, and its reply is lost. */
export const losingReply = <A>(operation: string, effect: Effect.Effect<A, EffectStoreError>) =>
  Effect.andThen(effect, down(operation))

/** Collects the events of the calls in `effect`. */
export const withEvents = (events: Array<EffectEvent>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, EffectEvent.Listener, (event) => Effect.sync(() => void events.push(event)))

/** Collects what is logged in `effect`, as "level: text", and the cause, if there is one. */
export const withLogs = (lines: Array<string>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(
    effect,
    Logger.layer([
      Logger.make(({ cause, logLevel, message }) => {
        const texts = [message].flat().map(String)
        if (cause.reasons.length > 0) texts.push(String(Cause.squash(cause)))
        lines.push(`${logLevel}: ${texts.join(" ")}`)
      })
    ])
  )

/** What the event says, short: the outcome and the flags that are set. */
export const told = ({ error: ____, key: _, outcome, runId: __, tool: ___, ...flags }: EffectEvent): string =>
  [outcome, ...Object.entries(flags).flatMap(([name, value]) => value ? [name] : [])].join(" ")

/** Nothing is left of any call: not in the processes, not in the ledger. */
export const assertIdle = Effect.fnUntraced(function*(...stores: ReadonlyArray<IEffectStore>) {
  for (const store of stores) {
    const { applications, unanswered, unreleased, unwritten } = registryOf(store)
    assert.deepStrictEqual([...applications.keys()], [], "applications")
    assert.deepStrictEqual([...unanswered.keys()], [], "unanswered")
    assert.deepStrictEqual([...unreleased.keys()], [], "unreleased")
    assert.deepStrictEqual([...unwritten.keys()], [], "unwritten")
    const held = yield* Stream.runCollect(store.list({ status: "held" }))
    assert.deepStrictEqual(Array.from(held, ({ key }) => key), [], "held")
  }
})
