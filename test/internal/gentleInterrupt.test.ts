import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Latch, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import { forkGently, gentleContext } from "../../src/internal/gentleInterrupt.ts"

/** Forks `effect` in the context of the calling fiber. */
const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.contextWith((context: Context.Context<R>) => Effect.sync(() => forkGently(context)(effect)))

const interrupted = <A, E>(exit: Exit.Exit<A, E>) => Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

describe("gentle interrupt", () => {
  it.effect("keeps the value of an uninterruptible effect whose interrupt is pending at its end", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(Effect.uninterruptible(Effect.as(latch.await, "applied")))
      )
      interrupt()
      yield* latch.open
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed("applied"))
    }))

  it.effect("keeps the value of an effect in uninterruptibleMask, also over many steps and yields", () =>
    Effect.gen(function*() {
      for (const steps of [0, 1, 30, 31, 32, 33, 63, 64, 65, 3000]) {
        const latch = Latch.makeUnsafe()
        const { fiber, interrupt } = yield* fork(
          Effect.interruptible(
            Effect.uninterruptibleMask(() =>
              Effect.gen(function*() {
                yield* latch.await
                for (let step = 0; step < steps; step++)
                  yield* step % 7 === 0
                    ? Effect.yieldNow
                    : Effect.sync(() => step)
                return steps
              })
            )
          )
        )
        interrupt()
        yield* latch.open
        assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed(steps))
      }
    }))

  it.effect("arrives at the first interruptible point after an uninterruptible region", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const log: Array<string> = []
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(
          Effect.gen(function*() {
            yield* Effect.uninterruptible(Effect.andThen(latch.await, Effect.sync(() => log.push("first"))))
            yield* Effect.sync(() => log.push("second"))
          })
        )
      )
      interrupt()
      yield* latch.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, ["first"])
    }))

  it.effect("arrives inside the restored part of an uninterruptibleMask", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const log: Array<string> = []
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(
          Effect.uninterruptibleMask((restore) =>
            latch.await.pipe(
              Effect.andThen(Effect.sync(() => log.push("protected"))),
              Effect.andThen(restore(Effect.sync(() => log.push("restored")))),
              Effect.onInterrupt(() => Effect.sync(() => log.push("cleaned up")))
            )
          )
        )
      )
      interrupt()
      yield* latch.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, ["protected", "cleaned up"])
    }))

  it.effect("cuts a wait in an interruptible region at once, and runs its finalizers", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(
          Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => log.push("cleaned up"))))
        )
      )
      assert.isUndefined(fiber.pollUnsafe())
      interrupt()
      assert.isDefined(fiber.pollUnsafe())
      assert.deepStrictEqual(log, ["cleaned up"])
    }))

  it.effect("never cuts what no one marked as interruptible", () =>
    Effect.gen(function*() {
      const { fiber, interrupt } = yield* fork(Effect.as(Effect.sleep("1 second"), "done"))
      interrupt()
      interrupt()
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed("done"))
    }))

  it.effect("starts nothing of an interruptible region that is entered after the request", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const log: Array<string> = []
      const hook = Effect.interruptible(Effect.sync(() => log.push("hook")))
      const { fiber, interrupt } = yield* fork(Effect.andThen(latch.await, hook))
      interrupt()
      yield* latch.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, [])
    }))

  it.effect("goes on after the region that was cut, where the rest is uninterruptible", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const { fiber, interrupt } = yield* fork(
        Effect.exit(Effect.interruptible(Effect.never)).pipe(
          Effect.flatMap((exit) => Effect.as(latch.await, interrupted(exit)))
        )
      )
      interrupt()
      yield* latch.open
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed(true))
    }))

  it.effect("interrupts children with their parent, and only where the parent is interruptible", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const child = (name: string) =>
        Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => log.push(`${name} interrupted`))))
      const cut = yield* fork(
        Effect.interruptible(Effect.all([child("a"), child("b")], { concurrency: "unbounded" }))
      )
      yield* Effect.yieldNow
      cut.interrupt()
      assert.isTrue(interrupted(yield* Fiber.await(cut.fiber)))
      assert.deepStrictEqual(log.sort(), ["a interrupted", "b interrupted"])

      const kept = yield* fork(
        Effect.interruptible(
          Effect.uninterruptible(
            Effect.all([Effect.as(Effect.sleep("1 second"), 1), Effect.as(Effect.sleep("2 seconds"), 2)], {
              concurrency: "unbounded"
            })
          )
        )
      )
      yield* Effect.yieldNow
      kept.interrupt()
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(yield* Fiber.await(kept.fiber), Exit.succeed([1, 2]))
    }))

  it.effect("does not reach a fiber that was forked inside and is gently run itself", () =>
    Effect.gen(function*() {
      const done = Deferred.makeUnsafe<string>()
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(
          Effect.gen(function*() {
            const inner = yield* fork(Effect.as(Effect.sleep("1 second"), "inner"))
            inner.fiber.addObserver((exit) => Deferred.doneUnsafe(done, exit))
            return yield* Effect.never
          })
        )
      )
      interrupt()
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Deferred.await(done), "inner")
    }))

  it.effect("works where the application forbids scheduler yields", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const log: Array<string> = []
      const { fiber, interrupt } = yield* fork(
        Effect.interruptible(
          Effect.andThen(Effect.uninterruptible(latch.await), Effect.sync(() => log.push("too late")))
        )
      )
      interrupt()
      yield* latch.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provideService(Scheduler.PreventSchedulerYield, true)))

  it("prepares a context once, and unwraps a prepared one", () => {
    const context = gentleContext(Context.empty())
    assert.strictEqual(gentleContext(context), context)
    const again = gentleContext(Context.add(context, Scheduler.PreventSchedulerYield, true))
    assert.isFalse(Context.get(again, Scheduler.Scheduler).shouldYield(Effect.runFork(Effect.never)))
  })

  it("ignores a request that comes after the end", () => {
    const { fiber, interrupt } = forkGently(Context.empty())(Effect.succeed(1))
    interrupt()
    assert.deepStrictEqual(fiber.pollUnsafe(), Exit.succeed(1))
  })
})
