import { Cause, Clock, Duration, Effect, Exit, type Fiber, Option } from "effect"
import { EffectStoreError } from "../errors.ts"

/** Milliseconds of a clock that never jumps. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/**
 * The store's answer for one key out of a batch of one, within `timeout` milliseconds.
 *
 * **Details**
 *
 * A request that is on its way cannot be taken back: after the timeout it goes on, and `late` gets its answer. A store
 * that answers at once costs no timer. Whatever goes wrong is an `EffectStoreError`: a defect of the store too, and an
 * answer of the wrong length.
 */
export const askStore = <A>(
  operation: string,
  key: string,
  ask: () => Effect.Effect<ReadonlyArray<A>, EffectStoreError>,
  timeout: number,
  late?: (answer: A) => void
): Effect.Effect<A, EffectStoreError> =>
  Effect.withFiber((fiber) => {
    const request = Effect.runForkWith(fiber.context)(Effect.suspend(ask))
    const answered = request.pollUnsafe()
    return answered !== undefined
      ? firstOf(operation, key, answered)
      : waitFor(operation, key, request, fiber.getRef(Clock.Clock), timeout, late)
  })

const waitFor = <A>(
  operation: string,
  key: string,
  request: Fiber.Fiber<ReadonlyArray<A>, EffectStoreError>,
  clock: Clock.Clock,
  timeout: number,
  late: ((answer: A) => void) | undefined
): Effect.Effect<A, EffectStoreError> =>
  Effect.callback((resume) => {
    const timer = Effect.runFork(clock.sleep(Duration.millis(timeout)))
    let waiting = true
    request.addObserver((exit) => {
      if (waiting) {
        waiting = false
        timer.interruptUnsafe()
        resume(firstOf(operation, key, exit))
      } else if (late !== undefined && Exit.isSuccess(exit) && exit.value[0] !== undefined) late(exit.value[0])
    })
    timer.addObserver(() => {
      if (!waiting) return
      waiting = false
      resume(Effect.fail(new EffectStoreError({ operation, key, problem: `no answer within ${timeout} ms` })))
    })
  })

const firstOf = <A>(
  operation: string,
  key: string,
  exit: Exit.Exit<ReadonlyArray<A>, EffectStoreError>
): Effect.Effect<A, EffectStoreError> => {
  if (Exit.isSuccess(exit)) {
    const answer = Array.isArray(exit.value) ? (exit.value as ReadonlyArray<A>)[0] : undefined
    return answer === undefined
      ? Effect.fail(new EffectStoreError({ operation, key, problem: "it did not answer one reply per item" }))
      : Effect.succeed(answer)
  }
  const failure = Cause.findErrorOption(exit.cause)
  return Effect.fail(
    Option.isSome(failure) && failure.value instanceof EffectStoreError
      ? failure.value
      : new EffectStoreError({ operation, key, problem: "it failed", cause: Cause.squash(exit.cause) })
  )
}
