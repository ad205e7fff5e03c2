import { assert, describe, it } from "@effect/vitest"
import { Cause, type Context, Effect, Exit, Fiber, Latch, Stream } from "effect"
import { forkGently } from "../../src/internal/gentleInterrupt.ts"
import { lastOf, type OnValue } from "../../src/internal/lastValue.ts"

const fork = (stream: Stream.Stream<unknown, unknown>, onValue?: OnValue) =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => forkGently(context)(lastOf(stream, onValue)))
  )

const interrupted = <A, E>(exit: Exit.Exit<A, E>) => Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)

const turns = Effect.repeat(Effect.yieldNow, { times: 20 })

/** A last step that waits where nothing may cut it, behind operators that a value has to pass. */
const uncut = (reached: Latch.Latch, gate: Latch.Latch) =>
  Stream.fromEffect(Effect.uninterruptible(Effect.as(Effect.andThen(reached.open, gate.await), 1))).pipe(
    Stream.map((n) => n + 1),
    Stream.mapEffect((n) => Effect.succeed(n + 1)),
    Stream.filter((n) => n > 0)
  )

describe("the last value of a Stream", () => {
  it.effect("is the result, and undefined where there is none", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* lastOf(Stream.make(1, 2, 3)), 3)
      assert.strictEqual(yield* lastOf(Stream.empty), undefined)
      assert.strictEqual(yield* lastOf(Stream.make(1, undefined)), undefined)
    }))

  it.effect("is told like every other value, before the next one is asked for", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const stream = Stream.fromIterable([1, 2], { chunkSize: 1 }).pipe(
        Stream.tap((n) => Effect.sync(() => log.push(`pulled ${n}`))),
        Stream.ensuring(Effect.sync(() => log.push("closed")))
      )
      yield* lastOf(stream, (n) => Effect.sync(() => void log.push(`told ${String(n)}`)))
      assert.deepStrictEqual(log, ["pulled 1", "told 1", "pulled 2", "told 2", "closed"])
    }))

  it.effect("does not come where the Stream fails, or where who is told fails", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* Effect.exit(lastOf(Stream.concat(Stream.make(1), Stream.fail("no")))),
        Exit.fail("no")
      )
      assert.deepStrictEqual(
        yield* Effect.exit(lastOf(Stream.make(1), () => Effect.fail("enough"))),
        Exit.fail("enough")
      )
    }))

  it.effect("of an uninterruptible last step is kept, whatever it passes on its way", () =>
    Effect.gen(function*() {
      for (const before of [Stream.empty, Stream.make(0), Stream.make(0, 0, 0)]) {
        const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
        const { fiber, interrupt } = yield* fork(Stream.concat(before, uncut(reached, gate)))
        yield* reached.await
        interrupt()
        yield* gate.open
        assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed(3))
      }
    }))

  it.effect("is kept where the Stream itself asks for the interrupt and then ends", () =>
    Effect.gen(function*() {
      const self = { interrupt: () => {} }
      const start = yield* Latch.make()
      const stream = Stream.fromEffect(Effect.andThen(start.await, Effect.sync(() => self.interrupt()))).pipe(
        Stream.map(() => "done"),
        Stream.mapEffect((text) => Effect.succeed(text))
      )
      const { fiber, interrupt } = yield* fork(stream)
      self.interrupt = interrupt
      yield* start.open
      assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.succeed("done"))
    }))

  it.effect("does not come where the Stream is cut while it waits", () =>
    Effect.gen(function*() {
      const closed = yield* Latch.make()
      const { fiber, interrupt } = yield* fork(Stream.ensuring(Stream.never, closed.open))
      yield* turns
      interrupt()
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      yield* closed.await
    }))

  it.effect("does not come where the Stream waits again after a step that could not be cut", () =>
    Effect.gen(function*() {
      const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
      const { fiber, interrupt } = yield* fork(Stream.concat(uncut(reached, gate), Stream.never))
      yield* reached.await
      interrupt()
      yield* gate.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
    }))

  it.effect("does not come where more than one value follows the interrupt", () =>
    Effect.gen(function*() {
      const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
      let steps = 0
      const step = Effect.uninterruptible(Effect.andThen(reached.open, Effect.andThen(gate.await, Effect.yieldNow)))
      const { fiber, interrupt } = yield* fork(Stream.mapEffect(
        Stream.range(1, 100, 1),
        () => Effect.tap(step, () => Effect.sync(() => steps++))
      ))
      yield* reached.await
      interrupt()
      yield* gate.open
      assert.isTrue(interrupted(yield* Fiber.await(fiber)))
      assert.strictEqual(steps, 2)
    }))

  it.effect("does not come where the Stream is endless and never waits", () =>
    Effect.gen(function*() {
      const endless = Stream.forever(Stream.make(1))
      for (const stream of [endless, Stream.filter(endless, (n) => n > 1)]) {
        const running = yield* fork(stream)
        yield* turns
        running.interrupt()
        assert.isTrue(interrupted(yield* Fiber.await(running.fiber)))
        const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
        const held = yield* fork(Stream.concat(uncut(reached, gate), stream))
        yield* reached.await
        held.interrupt()
        yield* gate.open
        assert.isTrue(interrupted(yield* Fiber.await(held.fiber)))
      }
    }))
})
