import { describe, expect, it } from "@effect/vitest"
import { defineAgent, tool } from "chamvi-effect"
import { Deferred, Effect, Fiber, Random, Schema } from "effect"
import * as Gate from "../../src/engine/Gate.ts"
import { calls, says, scripted } from "../support/model.ts"
import { engines } from "./support.ts"

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

  it.effect("is never exceeded, keeps the order of each agent, and passes over nobody, whoever leaves the queue", () =>
    Effect.gen(function*() {
      const { nextDoubleUnsafe: random } = yield* Random.Random
      for (let round = 0; round < 50; round++) {
        const permits = 1 + Math.floor(random() * 3)
        const gate = Gate.make(permits)
        let running = 0
        const started: Array<{ readonly agent: string; readonly index: number }> = []
        const left = new Set<string>()
        const runs = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, index) => ({ agent: `agent ${Math.floor(random() * 4)}`, index })),
          Effect.fnUntraced(function*({ agent, index }) {
            const end = yield* Deferred.make<void>()
            const fiber = yield* Effect.forkChild(
              gate.within(
                agent,
                Effect.acquireUseRelease(
                  Effect.sync(() => {
                    started.push({ agent, index })
                    expect(++running).toBeLessThanOrEqual(permits)
                  }),
                  () => Deferred.await(end),
                  () => Effect.sync(() => running--)
                )
              ),
              { startImmediately: true }
            )
            return { agent, index, end, fiber }
          })
        )
        // some leave while they wait, some while they run
        for (const { agent, fiber, index } of runs) {
          if (random() < 0.3) {
            left.add(`${agent}/${index}`)
            yield* Fiber.interrupt(fiber)
          }
        }
        const waitingAgents = () =>
          new Set(
            runs.filter(({ agent, index }) =>
              !left.has(`${agent}/${index}`) && !started.some((run) => run.index === index)
            ).map(({ agent }) => agent)
          )
        for (let others = waitingAgents(); others.size > 0; others = waitingAgents()) {
          const before = started.length
          // one turn after the other, for as many turns as agents wait
          for (const _ of others) {
            const next = started.map(({ index }) => runs[index]!).find(({ fiber }) => fiber.pollUnsafe() === undefined)
            yield* Deferred.succeed(next!.end, undefined)
            yield* Fiber.await(next!.fiber)
          }
          const turns = started.slice(before).map(({ agent }) => agent)
          expect(new Set(turns)).toEqual(others)
        }
        yield* Effect.forEach(runs, ({ end }) => Deferred.succeed(end, undefined))
        yield* Effect.forEach(runs, ({ fiber }) => Fiber.await(fiber))
        for (const agent of new Set(runs.map(({ agent }) => agent))) {
          const indices = started.filter((run) => run.agent === agent).map(({ index }) => index)
          expect(indices).toEqual(indices.toSorted((a, b) => a - b))
        }
        expect([running, yield* gate.within("last", Effect.succeed("free"))]).toEqual([0, "free"])
      }
    }).pipe(Random.withSeed("gate")))
})

describe.each(engines)("EngineOptions.concurrency, $where", ({ withAgents }) => {
  it.live("bounds the runs that execute at once, and those that wait for a person hold no place", () => {
    let running = 0
    let most = 0
    const two = Deferred.makeUnsafe<void>()
    const inputSchema = Schema.Struct({})
    const work = tool({
      inputSchema,
      execute: () =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            most = Math.max(most, ++running)
            if (running === 2) Deferred.doneUnsafe(two, Effect.void)
          }),
          () => Effect.andThen(Deferred.await(two), Effect.yieldNow),
          () => Effect.sync(() => running--)
        )
    })
    const ask = tool({ inputSchema, needsApproval: true, execute: () => Effect.succeed("asked") })
    const worker = (name: string) =>
      defineAgent({ name, model: scripted(calls(["work", {}]), says("Done.")), tools: { work } })
    const agents = [worker("one"), worker("two")]
    const asker = defineAgent({ name: "asker", model: scripted(calls(["ask", {}])), tools: { ask } })
    return withAgents([...agents, asker], { concurrency: 2 })((engine) =>
      Effect.gen(function*() {
        const ask = (index: number) => Effect.flip(engine.run(asker, { runId: `ask-${index}`, prompt: "Ask." }))
        const errors = yield* Effect.forEach([1, 2, 3], ask)
        expect(errors.map(({ _tag }) => _tag)).toEqual(["RunWaitingError", "RunWaitingError", "RunWaitingError"])
        const inputs = Array.from({ length: 12 }, (_, index) => ({ agent: agents[index % 2]!, runId: `${index}` }))
        yield* Effect.forEach(inputs, ({ agent, runId }) => engine.run(agent, { runId, prompt: "Work." }), {
          concurrency: "unbounded"
        })
        expect(most).toBe(2)
      })
    )
  })
})
