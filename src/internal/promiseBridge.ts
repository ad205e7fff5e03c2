/**
 * The border between the AI SDK's Promises and Effect: running an Effect for a call that has an `AbortSignal`, and making
 * an Effect of whatever a hook answers.
 *
 * All Promises, `AbortSignal`s and `try`s of ranks 0 to 3 live here.
 */
import { Cause, type Context, Effect, type Exit, Predicate, type Scope, Stream } from "effect"
import { forkGently, type GentleFiber } from "./gentleInterrupt.ts"
import { lastOf, type OnValue } from "./lastValue.ts"

/**
 * Runs `effect` as one call, with a Scope of its own.
 *
 * The effect starts uninterruptible. What an abort may cut is marked with `Effect.interruptible`, as `hookAnswer` marks a
 * hook: what comes after the hook (encoding its value, recording it) then never costs the value.
 *
 * - An aborted `signal` runs nothing: the promise rejects with the signal's reason.
 * - An abort during the call interrupts it at its next interruptible point. The promise settles after its finalizers and
 *   its Scope are done, and rejects with the signal's reason.
 * - A value is never dropped: an effect that finishes although the signal is aborted resolves.
 * - A failure rejects with the identical value, and so do defects and thrown exceptions.
 */
export const runCall = <R>(context: Context.Context<R>) => {
  const fork = forkGently(context)
  return <A, E>(
    effect: Effect.Effect<A, E, R | Scope.Scope>,
    signal?: AbortSignal,
    started?: (call: GentleFiber<A, E>) => void
  ): Promise<A> => {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const call = fork(Effect.scoped(effect) as Effect.Effect<A, E, R>)
      const { fiber, interrupt } = call
      started?.(call)
      const settle = (exit: Exit.Exit<A, E>): void => {
        if (exit._tag === "Success") resolve(exit.value)
        else reject(rejectionOf(context, exit.cause, signal))
      }
      // most calls have ended here; adding and removing a listener would cost more than all the rest
      const ended = fiber.pollUnsafe()
      if (ended !== undefined) return settle(ended)
      if (signal === undefined) return void fiber.addObserver(settle)
      fiber.addObserver((exit) => {
        signal.removeEventListener("abort", interrupt)
        settle(exit)
      })
      if (signal.aborted) interrupt()
      else signal.addEventListener("abort", interrupt)
    })
  }
}

const rejectionOf = (context: Context.Context<never>, cause: Cause.Cause<unknown>, signal: AbortSignal | undefined) => {
  if (!signal?.aborted || !Cause.hasInterrupts(cause)) return Cause.squash(cause)
  // the reason of the abort takes the place of the interruption; a finalizer that died must not vanish with it
  if (!Cause.hasInterruptsOnly(cause)) {
    Effect.runForkWith(context)(Effect.logWarning("A call was aborted, and its cleanup failed", cause))
  }
  return signal.reason
}

/**
 * A Promise-based call of the AI SDK as an Effect. `make` gets a signal that aborts when the calling fiber is interrupted,
 * or when `foreign` does; `stop` aborts it too.
 *
 * An interrupt is done when `drained` is: the work that the call has started has then ended. The promise itself is not
 * waited for, since a model that ignores its signal would hold up the interrupt for as long as it likes.
 */
export const fromAbortable = <A>(options: {
  readonly make: (signal: AbortSignal, stop: () => void) => PromiseLike<A>
  readonly foreign: AbortSignal | undefined
  readonly drained: () => Promise<unknown>
}): Effect.Effect<A, unknown> =>
  Effect.callback<A, unknown>((resume) => {
    const controller = new AbortController()
    const stop = (): void => controller.abort()
    const signal = options.foreign === undefined
      ? controller.signal
      : AbortSignal.any([options.foreign, controller.signal])
    attempt(() => options.make(signal, stop)).then(
      (value) => resume(Effect.succeed(value)),
      (error: unknown) => resume(Effect.fail(error))
    )
    return Effect.promise(() => {
      stop()
      return options.drained()
    })
  })

// an exception that is thrown before there is a promise counts as its rejection
const attempt = async <A>(make: () => PromiseLike<A>): Promise<A> => make()

/**
 * What a hook answered, as an Effect: a value is a success, a Promise is awaited, an Effect is run, and of a `Stream` or
 * an async iterable the last value counts (`undefined` if there is none).
 *
 * An exception that `evaluate` throws and a Promise that rejects are failures with the identical value. An Effect that
 * succeeds with another Effect is a defect: the inner one would never run.
 *
 * The user's part is marked as interruptible, and nothing else: run from an uninterruptible region, a value that the hook
 * has returned is not lost any more.
 *
 * What the Effect of a hook needs is not visible here: run it with the services that its types asked for.
 *
 * A Promise cannot be interrupted, and what it does may still come. With `stop`, whoever waits for one waits until it has
 * settled: the signal tells it to hurry, its value counts, and a rejection after the signal says nothing about what it did.
 *
 * `onValue` is for a hook that streams: it is told every value of the Stream or async iterable, and the one value of any
 * other answer.
 */
export const hookAnswer = (
  hook: string,
  evaluate: () => unknown,
  stop?: Stoppable,
  onValue?: OnValue
): Effect.Effect<unknown, unknown> =>
  Effect.flatMap(
    Effect.interruptible(Effect.suspend(() => evaluated(evaluate))),
    (value) => settle(hook, value, stop, onValue)
  )

/** What can be asked to stop. */
export interface Stoppable {
  readonly signal: AbortSignal
}

const evaluated = (evaluate: () => unknown): Effect.Effect<unknown, unknown> => {
  try {
    const answer = evaluate()
    return Effect.isEffect(answer) ? answer as Effect.Effect<unknown, unknown> : Effect.succeed(answer)
  } catch (thrown) {
    return Effect.fail(thrown)
  }
}

type Kind = "value" | "effect" | "stream" | "iterable" | "promise"

/** A value that cannot be looked at (a revoked Proxy, a throwing getter) is a value, and no reason to run a hook again. */
const kindOf = (answer: unknown): Kind => {
  if (!Predicate.isObjectOrArray(answer) && typeof answer !== "function") return "value"
  try {
    // a tagged error is an Effect too; as the value of a success it is data
    if (Effect.isEffect(answer)) return answer instanceof Error ? "value" : "effect"
    if (Stream.isStream(answer)) return "stream"
    return isAsyncIterable(answer) ? "iterable" : Predicate.isPromiseLike(answer) ? "promise" : "value"
  } catch {
    return "value"
  }
}

const settle = (
  hook: string,
  answer: unknown,
  stop: Stoppable | undefined,
  onValue: OnValue | undefined
): Effect.Effect<unknown, unknown> => {
  switch (kindOf(answer)) {
    case "value":
      return onValue === undefined ? Effect.succeed(answer) : Effect.as(onValue(answer), answer)
    case "effect":
      return Effect.die(nested(hook))
    case "stream": {
      const last = lastOf(answer as unknown as Stream.Stream<unknown>, onValue)
      return onValue === undefined ? Effect.andThen(Effect.logWarning(unflagged(hook)), last) : last
    }
    case "iterable": {
      const iterable = answer as AsyncIterable<unknown>
      return stop === undefined
        ? lastOf(Stream.fromAsyncIterable(iterable, (error) => error), onValue)
        : lastHeld(iterable, stop, onValue)
    }
    case "promise": {
      const promise = answer as PromiseLike<unknown>
      const settled = stop === undefined
        ? Effect.interruptible(Effect.tryPromise({ try: () => promise, catch: (error) => error }))
        : untilSettled(() => promise, stop)
      return Effect.flatMap(settled, (value) => settle(hook, value, stop, onValue))
    }
  }
}

const untilSettled = <A>(make: () => PromiseLike<A>, stop: Stoppable): Effect.Effect<A, unknown> =>
  Effect.uninterruptible(
    Effect.callback((resume) => {
      attempt(make).then(
        (value) => resume(Effect.succeed(value)),
        (error: unknown) => resume(stop.signal.aborted ? Effect.interrupt : Effect.fail(error))
      )
    })
  )

/** The last value of an iterable that is asked to stop between two values only. */
const lastHeld = (
  iterable: AsyncIterable<unknown>,
  stop: Stoppable,
  onValue: OnValue = () => Effect.void
): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    const iterator = iterable[Symbol.asyncIterator]()
    const end = untilSettled(async () => iterator.return?.(), stop)
    const pull = (last: unknown): Effect.Effect<unknown, unknown> =>
      Effect.flatMap(untilSettled(() => iterator.next(), stop), (next) =>
        next.done === true
          ? Effect.succeed(last)
          : stop.signal.aborted
          ? Effect.andThen(Effect.ignore(end), Effect.interrupt)
          : Effect.andThen(onValue(next.value), Effect.suspend(() => pull(next.value))))
    return pull(undefined)
  })

const isAsyncIterable = (value: object): value is AsyncIterable<unknown> =>
  Predicate.hasProperty(value, Symbol.asyncIterator) && Predicate.isFunction(value[Symbol.asyncIterator])

const nested = (hook: string) =>
  new TypeError(
    `${hook} answered an Effect inside of another Effect or Promise; the inner one would never run. `
      + `Use yield*, Effect.flatMap or Effect.flatten.`
  )

const unflagged = (hook: string) => `${hook} answered a Stream without "streaming: true": only its last value counts.`
