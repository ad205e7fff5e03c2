import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { EndsLoop, Loop, ParksLoop } from "../../src/ai/Loop.ts"

describe("a loop", () => {
  it.effect("that a call has parked fails with what ends it, also where that comes later", () =>
    Effect.gen(function*() {
      const loop = new Loop(yield* Effect.context())
      const go = yield* Deferred.make<void>()
      const { signal } = new AbortController()
      void loop.run(Effect.andThen(Deferred.await(go), Effect.fail(new EndsLoop("too large"))), signal)
      void loop.run(Effect.fail(new ParksLoop()), signal)
      const parked = yield* Effect.forkChild(Effect.flip(loop.parked), { startImmediately: true })
      yield* Deferred.succeed(go, undefined)
      expect(yield* Fiber.join(parked)).toBe("too large")
    }))
})
