import { describe, expect, it } from "@effect/vitest"
import {
  defineAgent,
  defineEffectTool,
  EffectInProgressError,
  EffectStore,
  EffectStoreError,
  Engine,
  type IEffectStore
} from "chamvi-effect"
import { Effect, Layer, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { make } from "../../src/engine/make.ts"
import { layerMemory } from "../../src/engine/port.ts"
import { makeMemory } from "../../src/engine/RunIndex.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"

/** An engine in memory whose ledger is `decorate` of one in memory. */
const engineOver = (decorate: (store: IEffectStore) => IEffectStore) =>
  Layer.effect(Engine, Effect.flatMap(makeMemory, (index) => make({ index, pollInterval: undefined }))).pipe(
    Layer.provide([
      layerMemory,
      KeyValueStore.layerMemory,
      Layer.effect(EffectStore, Effect.map(EffectStore, decorate)).pipe(Layer.provide(EffectStore.layerMemory))
    ])
  )

const setup = () => {
  let applied = 0
  const model = scripted(calls(["pay", {}]), says("Paid."))
  const pay = defineEffectTool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++applied) })
  return { agent: defineAgent({ name: "payer", model, tools: { pay } }), model, applied: () => applied }
}

describe("a ledger in trouble", () => {
  for (
    const error of [
      new EffectStoreError({ operation: "claim", problem: "it is away" }),
      new EffectInProgressError({ key: "k", tool: "pay", owner: "somebody", remaining: 10 })
    ]
  ) {
    it.live(`${error._tag} makes the call wait, and the model never hears of it`, () => {
      const { agent, applied, model } = setup()
      let refusals = 2
      const engine = engineOver((store) => ({
        ...store,
        claim: (requests) => refusals-- > 0 ? Effect.fail(error as EffectStoreError) : store.claim(requests)
      }))
      return Effect.gen(function*() {
        const result = yield* (yield* Engine).run(agent, { runId: "1", prompt: "Pay." })
        expect(result.text).toBe("Paid.")
        expect(refusals).toBeLessThan(0)
        expect([applied(), model.doGenerateCalls.length]).toEqual([1, 2])
        expect(readBy(model)).toEqual([1])
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
    })
  }

  it.live("that trying again does not help fails the run, and a retry goes on with it", () => {
    const { agent, applied, model } = setup()
    let broken = true
    const engine = engineOver((store) => ({
      ...store,
      claim: (requests) =>
        broken
          ? Effect.fail(new EffectStoreError({ operation: "claim", problem: "no such table", permanent: true }))
          : store.claim(requests)
    }))
    return Effect.gen(function*() {
      const engine = yield* Engine
      expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Pay." }))).toMatchObject({
        _tag: "RunFailedError",
        failure: { name: "EffectStoreError", step: 0 }
      })
      broken = false
      yield* engine.retry("1")
      expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      expect([applied(), model.doGenerateCalls.length]).toEqual([1, 2])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
  })
})
