import { describe, expect, it } from "@effect/vitest"
import {
  applyOnce,
  defineAgent,
  defineEffectTool,
  EffectStore,
  EffectStoreError,
  Engine,
  type IEffectStore,
  tool
} from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Deferred, type Duration, Effect, Fiber, Layer, Schema } from "effect"
import { KeyValueStore } from "effect/persistence"
import { join } from "node:path"
import { make } from "../../src/engine/make.ts"
import { layerMemory } from "../../src/engine/port.ts"
import * as RunIndex from "../../src/engine/RunIndex.ts"
import * as RunParts from "../../src/engine/RunParts.ts"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { calls, readBy, says, scripted } from "../support/model.ts"

interface Options {
  readonly patience: Duration.Input
  readonly concurrency?: number
}

/** An engine in memory whose ledger is `decorate` of one in memory. */
const engineOver = (options: Options, decorate: (store: IEffectStore) => IEffectStore) =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      const index = yield* RunIndex.makeMemory
      const parts = yield* RunParts.makeMemory
      return yield* make({ ...options, index, parts, pollInterval: undefined })
    })
  ).pipe(
    Layer.provide([layerMemory, KeyValueStore.layerMemory]),
    Layer.provideMerge(
      Layer.effect(EffectStore, Effect.map(EffectStore, decorate)).pipe(Layer.provide(EffectStore.layerMemory))
    )
  )

const setup = () => {
  let applied = 0
  const model = scripted(calls(["pay", {}]), says("Paid."))
  const pay = defineEffectTool({
    inputSchema: Schema.Struct({}),
    effectKey: () => "pay",
    execute: () => Effect.sync(() => ++applied)
  })
  return { agent: defineAgent({ name: "payer", model, tools: { pay } }), model, applied: () => applied }
}

/** A ledger that is away until it is back, or for the first claims alone. */
const away = (claims = Infinity) => {
  let left = claims
  return {
    left: () => left,
    back: () => {
      left = 0
    },
    decorate: (store: IEffectStore): IEffectStore => ({
      ...store,
      claim: (requests) =>
        left > 0
          ? Effect.suspend(() => {
            left--
            return Effect.fail(new EffectStoreError({ operation: "claim", problem: "it is away" }))
          })
          : store.claim(requests)
    })
  }
}

/** Starts the run, and waits until it sleeps. */
const asleep = (engine: Engine["Service"], agent: ReturnType<typeof setup>["agent"]) =>
  Effect.andThen(
    engine.start(agent, { runId: "1", prompt: "Pay." }),
    Effect.repeat(Effect.delay(engine.get("1"), 5), { until: ({ troubles }) => troubles.length > 0 })
  )

/** Holds a key for a tool, until it is let go. */
const hold = Effect.fnUntraced(function*(key: string, tool: string, result: string) {
  const held = yield* Deferred.make<void>()
  const letGo = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(applyOnce({
    key,
    tool,
    execute: () => Effect.andThen(Deferred.succeed(held, undefined), Effect.as(Deferred.await(letGo), result))
  }))
  yield* Deferred.await(held)
  return { letGo: Effect.andThen(Deferred.succeed(letGo, undefined), Fiber.join(fiber)) }
})

describe("a ledger in trouble", () => {
  it.live("is tried again in the process at first, and the model never hears of it", () => {
    const { agent, applied, model } = setup()
    const ledger = away(2)
    return Effect.gen(function*() {
      const engine = yield* Engine
      const result = yield* engine.run(agent, { runId: "1", prompt: "Pay." })
      expect(result.text).toBe("Paid.")
      expect(ledger.left()).toBe(0)
      expect([applied(), model.doGenerateCalls.length, readBy(model)]).toEqual([1, 2, [1]])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engineOver({ patience: "1 minute" }, ledger.decorate)))))
  })

  it.live("that lasts puts the run to sleep, which goes on by itself; the model never hears of it", () => {
    const { agent, applied, model } = setup()
    const ledger = away()
    return Effect.gen(function*() {
      const engine = yield* Engine
      const { status, troubles } = yield* asleep(engine, agent)
      expect(status).toBe("running")
      expect(troubles).toMatchObject([{ step: 0, toolName: "pay", name: "EffectStoreError", attempts: 1 }])
      ledger.back()
      expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      expect([applied(), model.doGenerateCalls.length, readBy(model)]).toEqual([1, 2, [1]])
      expect((yield* engine.get("1")).troubles).toEqual([])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engineOver({ patience: 0 }, ledger.decorate)))))
  }, 240_000)

  it.live("of one call lets the calls beside it go on, and they are made once", () => {
    let looked = 0
    let applied = 0
    const ledger = away()
    const look = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++looked) })
    const pay = defineEffectTool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++applied) })
    const model = scripted(calls(["pay", {}], ["look", {}]), says("Paid."))
    const agent = defineAgent({ name: "payer", model, tools: { pay, look } })
    return Effect.gen(function*() {
      const engine = yield* Engine
      yield* asleep(engine, agent)
      yield* Effect.repeat(Effect.delay(Effect.sync(() => looked), 1), { until: (looked) => looked === 1 })
      ledger.back()
      expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      expect([applied, looked, model.doGenerateCalls.length]).toEqual([1, 1, 2])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engineOver({ patience: 0 }, ledger.decorate)))))
  }, 240_000)

  it.live("holds no place among the runs that execute at once", () => {
    const { agent } = setup()
    const other = defineAgent({ name: "other", model: scripted(says("Hello.")) })
    const ledger = away()
    return Effect.gen(function*() {
      const engine = yield* Engine
      yield* asleep(engine, agent)
      expect((yield* engine.run(other, { runId: "2", prompt: "Hello?" })).text).toBe("Hello.")
      expect((yield* engine.get("1")).troubles.length).toBe(1)
    }).pipe(Effect.provide(
      Layer.merge(agent.layer, other.layer).pipe(
        Layer.provideMerge(engineOver({ patience: 0, concurrency: 1 }, ledger.decorate))
      )
    ))
  })

  it.live("does not keep a run from being cancelled", () => {
    const { agent, applied } = setup()
    const ledger = away()
    return Effect.gen(function*() {
      const engine = yield* Engine
      yield* asleep(engine, agent)
      yield* engine.cancel("1")
      expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({ _tag: "RunCancelledError" })
      expect(yield* engine.get("1")).toMatchObject({ status: "cancelled", troubles: [] })
      expect(applied()).toBe(0)
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engineOver({ patience: 0 }, ledger.decorate)))))
  })

  it.live("that trying again does not help fails the run, and a retry goes on with it", () => {
    const { agent, applied, model } = setup()
    let broken = true
    const engine = engineOver({ patience: "1 minute" }, (store) => ({
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

  it.live("that turns out to be permanent ends the sleep: the run fails, and a retry goes on with it", () => {
    const { agent, applied, model } = setup()
    let state: "away" | "gone" | "there" = "away"
    const engine = engineOver({ patience: 0 }, (store) => ({
      ...store,
      claim: (requests) =>
        state === "there"
          ? store.claim(requests)
          : Effect.fail(new EffectStoreError({ operation: "claim", problem: state, permanent: state === "gone" }))
    }))
    return Effect.gen(function*() {
      const engine = yield* Engine
      yield* asleep(engine, agent)
      state = "gone"
      expect(yield* Effect.flip(engine.resume(agent, "1"))).toMatchObject({
        _tag: "RunFailedError",
        failure: { name: "EffectStoreError", step: 0 }
      })
      expect((yield* engine.get("1")).troubles).toEqual([])
      state = "there"
      yield* engine.retry("1")
      expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      expect([applied(), model.doGenerateCalls.length]).toEqual([1, 2])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
  }, 240_000)
})

describe("a key that somebody else holds", () => {
  it.live("puts the run to sleep until it is free, and the model reads what came of it", () => {
    const { agent, applied, model } = setup()
    let elsewhere: IEffectStore | undefined
    // a store of its own to this process: what holds a key there is not joined
    const engine = engineOver({ patience: 0 }, (store) => ({ ...(elsewhere = store) }))
    return Effect.gen(function*() {
      const engine = yield* Engine
      const { letGo } = yield* Effect.provideService(
        hold("pay", "pay", "paid elsewhere"),
        EffectStore,
        elsewhere!
      )
      expect((yield* asleep(engine, agent)).troubles).toMatchObject([{
        toolName: "pay",
        name: "EffectInProgressError"
      }])
      yield* letGo
      expect((yield* engine.resume(agent, "1")).text).toBe("Paid.")
      expect([applied(), readBy(model)]).toEqual([0, ["paid elsewhere"]])
    }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
  }, 240_000)

  it.live("lets the run sleep through the death of its process", () =>
    Effect.gen(function*() {
      const directory = yield* temporaryDirectory
      yield* Effect.gen(function*() {
        const { letGo } = yield* hold("run-1:charge:7", "charge", "charged elsewhere")
        const first = yield* start("engineWorker.ts", directory, "held", "first")
        expect(yield* first.line).toBe("EffectInProgressError")
        yield* first.kill("SIGKILL")
        yield* first.ended
        const second = yield* start("engineWorker.ts", directory, "held", "second")
        yield* letGo
        expect(yield* second.line).toEqual({
          text: "Charged.",
          model: ["step 0", "step 1"],
          remote: [],
          looks: ["look"]
        })
      }).pipe(Effect.provide(SqliteEffectStore.layer({ filename: join(directory, "engine.sqlite") })))
    }), { timeout: 240_000 })
})
