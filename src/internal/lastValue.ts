/**
 * The last value of a Stream, as the result of a hook.
 */
import { Effect, type Fiber, Pull, type Scope, Stream } from "effect"
import { isAsked, setPatient } from "./gentleInterrupt.ts"

/** Is told each value, in order, before the next one is asked for. */
export type OnValue = (value: unknown) => Effect.Effect<void, unknown>

/**
 * Runs `stream` to its end; `undefined` if it has no value. Its finalizers are done before the answer.
 *
 * Run from an uninterruptible region, the value of a stream that has ended is not lost any more. A gentle interrupt comes
 * where the stream waits interruptibly, but not on the way of a value through the stream's own operators: a last step
 * that is uninterruptible counts. A stream that gives one more value after that is cut before the next.
 */
export const lastOf = (stream: Stream.Stream<unknown, unknown>, onValue?: OnValue): Effect.Effect<unknown, unknown> =>
  Effect.withFiber((fiber) => {
    setPatient(fiber, true)
    const run = Effect.flatMap(
      Effect.interruptible(Stream.toPull(stream)),
      (pull) => drain(fiber, pull, onValue, undefined, false)
    )
    return Effect.ensuring(Effect.scoped(run), Effect.sync(() => setPatient(fiber, false)))
  })

type Values = Pull.Pull<ReadonlyArray<unknown>, unknown>

const drain = (
  fiber: Fiber.Fiber<unknown, unknown>,
  pull: Values,
  onValue: OnValue | undefined,
  last: unknown,
  asked: boolean
): Effect.Effect<unknown, unknown, Scope.Scope> =>
  Pull.matchEffect(Effect.interruptible(pull), {
    onSuccess: (values) => {
      if (asked) setPatient(fiber, false)
      const goOn = Effect.suspend(() => drain(fiber, pull, onValue, values.at(-1), isAsked(fiber)))
      return onValue === undefined ? goOn : Effect.andThen(Effect.forEach(values, onValue, { discard: true }), goOn)
    },
    onFailure: (cause) => Effect.failCause(cause),
    onDone: () => Effect.succeed(last)
  })
