import { Cause, Clock, Duration, Effect, Exit, type Fiber, Option } from "effect"
import { EffectStoreError } from "../errors.ts"

/** Milliseconds of a clock that never jumps. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Anything else must not pass for a "lost" claim, after which nobody cares for the record. */
export const isFenced = (answer: unknown): boolean => answer === "ok" || answer === "lost"

/**
 * The store's answer for one key out of a batch of one, within `timeout` milliseconds; an `Exit` where it answers at once.
 *
 * **Details**
 *
 * A request that is on its way cannot be taken back: after the timeout it goes on, and `late` gets its answer. A store
 * that answers at once costs no timer. Whatever goes wrong is an `EffectStoreError`: a defect of the store too, and an
 * answer that is no reply.
 */
export const askStoreFrom = <A>(
  fiber: Fiber.Fiber<unknown, unknown>,
  operation: string,
  key: string,
  ask: () => Effect.Effect<ReadonlyArray<A>, EffectStoreError>,
  timeout: number,
  isReply: (answer: unknown) => boolean,
  late: (answer: A) => void = () => {}
): Effect.Effect<A, EffectStoreError> => {
  const request = Effect.runForkWith(fiber.context)(Effect.suspend(ask))
  const answered = request.pollUnsafe()
  return answered !== undefined
    ? firstOf(operation, key, answered, isReply)
    : waitFor(operation, key, request, fiber.getRef(Clock.Clock), timeout, isReply, late)
}

/**
 * `askStoreFrom` the fiber that runs it.
 */
export const askStore = <A>(
  operation: string,
  key: string,
  ask: () => Effect.Effect<ReadonlyArray<A>, EffectStoreError>,
  timeout: number,
  isReply: (answer: unknown) => boolean
): Effect.Effect<A, EffectStoreError> =>
  Effect.withFiber((fiber) => askStoreFrom(fiber, operation, key, ask, timeout, isReply))

/**
 * Waits for `effect`, for at most `timeout` milliseconds; then it goes on by itself.
 */
export const within = (effect: Effect.Effect<void>, timeout: number): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    Effect.callback((resume) => {
      const work = Effect.runForkWith(fiber.context)(effect)
      const timer = Effect.runFork(fiber.getRef(Clock.Clock).sleep(Duration.millis(timeout)))
      const done = (): void => {
        timer.interruptUnsafe()
        resume(Effect.void)
      }
      work.addObserver(done)
      timer.addObserver(done)
    })
  )

const waitFor = <A>(
  operation: string,
  key: string,
  request: Fiber.Fiber<ReadonlyArray<A>, EffectStoreError>,
  clock: Clock.Clock,
  timeout: number,
  isReply: (answer: unknown) => boolean,
  late: (answer: A) => void
): Effect.Effect<A, EffectStoreError> =>
  Effect.callback((resume) => {
    const timer = Effect.runFork(clock.sleep(Duration.millis(timeout)))
    let waiting = true
    request.addObserver((exit) => {
      if (waiting) {
        waiting = false
        timer.interruptUnsafe()
        resume(firstOf(operation, key, exit, isReply))
      } else {
        const answer = firstOf(operation, key, exit, isReply)
        if (Exit.isSuccess(answer)) late(answer.value)
      }
    })
    timer.addObserver(() => {
      if (!waiting) return
      waiting = false
      resume(Effect.fail(new EffectStoreError({ operation, key, problem: `no answer within ${timeout} ms` })))
    })
    return Effect.sync(() => timer.interruptUnsafe())
  })

const firstOf = <A>(
  operation: string,
  key: string,
  exit: Exit.Exit<ReadonlyArray<A>, EffectStoreError>,
  isReply: (answer: unknown) => boolean
): Exit.Exit<A, EffectStoreError> => {
  if (Exit.isSuccess(exit)) {
    const answer = Array.isArray(exit.value) ? (exit.value as ReadonlyArray<A>)[0] : undefined
    return isReply(answer)
      ? Exit.succeed(answer as A)
      : Exit.fail(new EffectStoreError({ operation, key, problem: "it did not answer one reply per item" }))
  }
  const failure = Cause.findErrorOption(exit.cause)
  return Exit.fail(
    Option.isSome(failure) && failure.value instanceof EffectStoreError
      ? failure.value
      : new EffectStoreError({ operation, key, problem: "it failed", cause: Cause.squash(exit.cause) })
  )
}
