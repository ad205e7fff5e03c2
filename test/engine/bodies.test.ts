/** Who asks for an activity while its execution moves to another process. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Bodies from "../../src/engine/bodies.ts"
import * as Gate from "../../src/engine/Gate.ts"

const lost = Effect.interrupt

describe("an activity", () => {
  it.effect("that does not run here is left behind when its execution moves, and nobody is told to stop it", () =>
    Effect.gen(function*() {
      let here = true
      const events: Array<string> = []
      const asked = yield* Effect.forkChild(
        Bodies.make().asked(
          "1/model/1",
          Effect.succeed("never run"),
          // another process has it
          () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => events.push("told to stop"))),
          Effect.suspend(() => here ? Effect.void : lost)
        )
      )
      yield* TestClock.adjust("10 seconds")
      expect(asked.pollUnsafe()).toBeUndefined()
      here = false
      yield* TestClock.adjust("1 second")
      expect(Exit.hasInterrupts(yield* Fiber.await(asked))).toBe(true)
      expect(events).toEqual([])
    }))

  it.effect("that runs here comes to its end, and its answer counts", () =>
    Effect.gen(function*() {
      let here = true
      const go = yield* Deferred.make<string>()
      const asked = yield* Effect.forkChild(
        Bodies.make().asked(
          "1/model/1",
          Deferred.await(go),
          (body) => body,
          Effect.suspend(() => here ? Effect.void : lost)
        )
      )
      yield* TestClock.adjust("1 second")
      here = false
      yield* TestClock.adjust("1 minute")
      expect(asked.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(go, "done")
      expect(yield* Fiber.join(asked)).toBe("done")
    }))

  it.effect("that was asked for by an earlier pass does what the latest one says", () =>
    Effect.gen(function*() {
      const bodies = Bodies.make()
      let kept: Effect.Effect<string> | undefined
      // what keeps activities keeps the first one
      const ask = (body: Effect.Effect<string>) => kept ??= body
      expect(yield* bodies.asked("1/model/1", Effect.succeed("first"), ask, Effect.void)).toBe("first")
      expect(yield* bodies.asked("1/model/1", Effect.succeed("second"), ask, Effect.void)).toBe("second")
    }))
})

describe("the gate", () => {
  it.effect("lets go whom another process goes on with, and keeps no place for it", () =>
    Effect.gen(function*() {
      const gate = Gate.make(1)
      const [open, moved] = [yield* Deferred.make<void>(), yield* Deferred.make<never>()]
      const first = yield* Effect.forkChild(gate.within("a", Deferred.await(open)), { startImmediately: true })
      const second = yield* Effect.forkChild(gate.within("a", Effect.void, Deferred.await(moved)), {
        startImmediately: true
      })
      const third = yield* Effect.forkChild(gate.within("a", Effect.succeed("in")), { startImmediately: true })
      yield* Deferred.interrupt(moved)
      expect(Exit.isFailure(yield* Fiber.await(second))).toBe(true)
      expect(third.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(first)
      expect(yield* Fiber.join(third)).toBe("in")
    }))
})
