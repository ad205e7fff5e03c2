import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import * as Gate from "../../src/engine/Gate.ts"

describe("the limit on runs", () => {
  it.effect("lets runs go in order of arrival per agent, agents in turn", () =>
    Effect.gen(function*() {
      const gate = Gate.make(1)
      const order: Array<string> = []
      const open = yield* Deferred.make<void>()
      const run = (agent: string, name: string) =>
        Effect.forkChild(
          gate.within(agent, Effect.andThen(Deferred.await(open), Effect.sync(() => order.push(name)))),
          {
            startImmediately: true
          }
        )
      const fibers = [
        yield* run("a", "a1"),
        yield* run("a", "a2"),
        yield* run("a", "a3"),
        yield* run("b", "b1"),
        yield* run("c", "c1"),
        yield* run("b", "b2")
      ]
      yield* Deferred.succeed(open, undefined)
      yield* Effect.forEach(fibers, Fiber.join)
      expect(order).toEqual(["a1", "a2", "b1", "c1", "a3", "b2"])
    }))

  it.effect("forgets a run that is interrupted while it waits, and hands its turn on", () =>
    Effect.gen(function*() {
      const gate = Gate.make(1)
      const open = yield* Deferred.make<void>()
      const fork = <A>(effect: Effect.Effect<A>) => Effect.forkChild(effect, { startImmediately: true })
      const first = yield* fork(gate.within("a", Deferred.await(open)))
      const second = yield* fork(gate.within("a", Effect.succeed("second")))
      const third = yield* fork(gate.within("a", Effect.succeed("third")))
      yield* Fiber.interrupt(second)
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(first)
      expect(yield* Fiber.join(third)).toBe("third")
      expect(yield* gate.within("b", Effect.succeed("free"))).toBe("free")
    }))
})
