/**
 * One transaction as its application sees it. It runs in a fiber of its own, since neither a connection that does not come
 * nor a commit without an answer can be called back.
 */
import { Clock, Duration, Effect, Exit } from "effect"
import { EffectInProgressError, EffectStoreError } from "../errors.ts"
import { forkGently } from "../internal/gentleInterrupt.ts"
import { across, type Application, enclosingOf } from "./Application.ts"
import { monotonicMillis } from "./bounded.ts"
import type { Call } from "./Call.ts"

/** How the work of a transaction tells how far it is. */
export interface Attempt {
  readonly clock: Clock.Clock
  /** The transaction has begun, and asks for the key. */
  readonly claiming: <A, E>(claim: () => Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The key is the transaction's, and hooks run. What comes after them is the record and the commit. */
  readonly working: <A, E>(work: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** Whose name a caller gets that waited for a row which another transaction has. */
const otherTransaction = "a transaction that has not ended"

/** Sooner than after this many milliseconds nobody says that a claim without an answer waits for another transaction. */
const leastWait = 200

/**
 * Runs a transaction and answers its exit, or why it was given up. `deadline` is when to wait no longer for another
 * transaction that has the key, in monotonic milliseconds.
 *
 * **Details**
 *
 * - A connection, and an answer to the claim, are waited for for `storeTimeout`. A claim that waits for another transaction
 *   cannot say so: where the store answers other questions, it is that, and the wait goes on until the deadline.
 * - Hooks take their time. Record and commit are waited for for `recordTimeout`; then nobody knows, and the next call asks.
 * - A transaction that was given up before its hooks does nothing when it begins.
 */
export const attempting = <A>(
  application: Application,
  call: Call,
  deadline: number,
  run: (attempt: Attempt) => Effect.Effect<A, unknown>
): Effect.Effect<A, unknown> =>
  Effect.withFiber((fiber) =>
    Effect.callback((resume) => {
      const { key, settings, store, tool } = call
      const { recordTimeout, storeTimeout } = settings
      const clock = fiber.getRef(Clock.Clock)
      let phase: "connecting" | "claiming" | "working" | "ending" | "over" = "connecting"
      let interrupt = (): void => {}
      let unlimit = (): void => {}

      const limit = (millis: number, expired: () => void): void => {
        unlimit()
        const timer = Effect.runFork(clock.sleep(Duration.millis(millis)))
        let due = true
        unlimit = () => {
          due = false
          timer.interruptUnsafe()
        }
        timer.addObserver(() => {
          if (due) expired()
        })
      }
      const end = (exit: Exit.Exit<A, unknown>): void => {
        phase = "over"
        unlimit()
        application.stopTransaction = undefined
        resume(exit)
      }
      const giveUp = (exit: Exit.Exit<never, unknown>): void => {
        end(exit)
        interrupt()
      }
      const noAnswer = (operation: string, millis: number, more = "") =>
        Exit.fail(new EffectStoreError({ operation, key, problem: `no answer within ${millis} ms${more}` }))
      const inProgress = () =>
        giveUp(Exit.fail(new EffectInProgressError({ key, tool, owner: otherTransaction, remaining: 0 })))

      const probe = (): void => {
        limit(storeTimeout, () => giveUp(noAnswer("claim", storeTimeout)))
        const asked = Effect.runForkWith(fiber.context)(Effect.suspend(() => store.get(key)))
        // an error is an answer, too
        asked.addObserver(() => {
          if (phase === "claiming") limit(deadline - monotonicMillis(clock), inProgress)
        })
      }

      /** An interrupt does not reach a transaction that is just starting, nor what follows a claim that cannot be cut. */
      const unlessOver = <A, E>(next: () => Effect.Effect<A, E>): Effect.Effect<A, E> =>
        Effect.suspend(() => phase === "over" ? Effect.interrupt : next())

      /** What the transaction still has to do is known; only its database may keep it waiting. */
      const ending = (millis: number, expired: () => void): void => {
        phase = "ending"
        limit(millis, expired)
      }
      const attempt: Attempt = {
        clock,
        claiming: (claim) =>
          unlessOver(() => {
            phase = "claiming"
            limit(Math.min(storeTimeout, Math.max(leastWait, deadline - monotonicMillis(clock))), probe)
            return Effect.onExit(Effect.interruptible(Effect.suspend(claim)), () =>
              Effect.sync(() => {
                if (phase !== "over") ending(storeTimeout, () => giveUp(noAnswer("claim", storeTimeout)))
              }))
          }),
        working: (work) =>
          unlessOver(() => {
            phase = "working"
            unlimit()
            return Effect.onExit(work, (exit) =>
              Effect.sync(() => {
                // a rollback that nobody confirms is one all the same, as soon as the database misses its client
                if (Exit.isFailure(exit)) ending(storeTimeout, () => end(Exit.failCause(exit.cause)))
                else ending(recordTimeout, () => end(noAnswer("commit", recordTimeout, unknownCommit)))
              }))
          })
      }

      if (application.stopped) return resume(Effect.interrupt)
      application.stopTransaction = () => {
        if (phase === "working" || phase === "ending") interrupt()
        else giveUp(Exit.interrupt())
      }
      // hooks that are no Effects shall know where they run, too
      const running = across.run(
        [...enclosingOf(fiber), application],
        () => forkGently(fiber.context)(run(attempt))
      )
      interrupt = running.interrupt
      if (phase === "connecting") {
        limit(storeTimeout, () => giveUp(noAnswer("begin a transaction", storeTimeout)))
      }
      running.fiber.addObserver(end)
    })
  )

/** What can be said of a commit without an answer. */
export const unknownCommit = "; the effect and its record are both there, or both not: the next call finds out"
