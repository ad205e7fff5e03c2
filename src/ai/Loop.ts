/**
 * Runs Effects for the Promises of a loop of the AI SDK's.
 *
 * Whatever suspends the run leaves a Promise of the loop pending: an error would become a result that the model reads. The
 * owner of the loop sees that it is parked, and drops it as a whole.
 */
import { Cause, type Context, Deferred, Effect, Fiber } from "effect"
import { ToolFailure } from "./ToolFailure.ts"

/** What ends the loop from outside of it. */
export class EndsLoop {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/** What parks the loop: the call is made again later, in another pass. The calls beside it go on. */
export class ParksLoop {
  readonly _tag = "ParksLoop"
}

/** Runs parts of a loop for its Promises. */
export class Loop {
  readonly #context: Context.Context<never>
  readonly #running = new Set<Fiber.Fiber<unknown, unknown>>()
  readonly #parked = Deferred.makeUnsafe<void, unknown>()
  #ending: EndsLoop | undefined
  /** The step that the loop is in. */
  step = -1
  /** What was answered from storage in the step that the loop is in: its model call, and tool calls by their ids. */
  readonly replayed = { model: false, calls: new Set<string>() }
  /** What the execution was suspended with under the loop, or taken from this process. */
  interruption: Cause.Cause<never> | undefined
  #idle = Deferred.makeUnsafe<void>()

  constructor(context: Context.Context<never>) {
    this.#context = context
  }

  /** Settles as `effect` ends; stays pending where the run was suspended, or ends because of it. */
  readonly run = <A>(effect: Effect.Effect<A, unknown>, signal: AbortSignal): Promise<A> => {
    if (signal.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const fiber = Effect.runForkWith(this.#context)(effect)
      this.#running.add(fiber)
      const stop = () => fiber.interruptUnsafe()
      // its first, synchronous steps may have led to the abort
      if (signal.aborted) stop()
      else signal.addEventListener("abort", stop)
      fiber.addObserver((exit) => {
        this.#running.delete(fiber)
        signal.removeEventListener("abort", stop)
        if (exit._tag === "Success") resolve(exit.value)
        else if (signal.aborted) reject(signal.reason)
        else if (Cause.hasInterruptsOnly(exit.cause)) {
          this.interruption ??= exit.cause as Cause.Cause<never>
          void this.park()
        } else {
          const failure = Cause.squash(exit.cause)
          if (failure instanceof ParksLoop) void this.park()
          else if (failure instanceof EndsLoop) {
            this.#ending ??= failure
            Deferred.doneUnsafe(this.#parked, Effect.fail(failure.error))
          } else reject(failure)
        }
        if (this.#running.size === 0) Deferred.doneUnsafe(this.#idle, Effect.void)
      })
    })
  }

  /** What `question` fails with, as a tool's failure travels; nothing where it succeeds. */
  readonly ask = (question: Effect.Effect<void, unknown>): Promise<ToolFailure | undefined> =>
    Effect.runPromiseWith(this.#context)(
      Effect.matchCause(question, {
        onSuccess: () => undefined,
        onFailure: (cause) => new ToolFailure(Cause.squash(cause))
      })
    )

  /** Stays pending, and says so. */
  readonly park = (): Promise<never> => {
    Deferred.doneUnsafe(this.#parked, Effect.void)
    return new Promise(() => {})
  }

  /**
   * Goes on when the loop is parked and nothing of it runs any more; fails with what ends the loop, also where that comes from a
   * call that was still under way when another one parked it.
   */
  readonly parked: Effect.Effect<void, unknown> = Effect.suspend(() =>
    Effect.andThen(
      Deferred.await(this.#parked),
      Effect.suspend(() => this.#settle())
    )
  )

  #settle(): Effect.Effect<void, unknown> {
    if (this.#running.size === 0) {
      // an execution that was interrupted goes on elsewhere, and finds what is stored of the end there
      return this.#ending === undefined || this.interruption !== undefined
        ? Effect.void
        : Effect.fail(this.#ending.error)
    }
    this.#idle = Deferred.makeUnsafe()
    return Effect.andThen(Deferred.await(this.#idle), Effect.suspend(() => this.#settle()))
  }

  /** Interrupts what still runs, and waits for it. */
  readonly end: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Fiber.interruptAll([...this.#running])))
}
