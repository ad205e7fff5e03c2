import { assert, describe, it } from "@effect/vitest"
import { defineEffectTool, EffectOutcomeUnknownError, EffectRecordError, EffectStore, ToolContext } from "chamvi-effect"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { z } from "zod"
import { call, settle, wrap } from "../support/wrapped.ts"

const layers = Layer.mergeAll(EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))

describe("An effect tool's", () => {
  describe("Results", () => {
    const Rich = Schema.Struct({
      at: Schema.Date,
      size: Schema.BigInt,
      tags: Schema.ReadonlyMap(Schema.String, Schema.Int)
    })
    const rich = { at: new Date(0), size: 12n, tags: new Map([["a", 1]]) }

    it.effect("stand in JSON form at the SDK, and decoded in hooks", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const tools = yield* wrap({
          rich: yield* defineEffectTool({
            inputSchema: Schema.Struct({ day: Schema.Date }),
            outputSchema: Rich,
            effectKey: ({ day }) => `day-${day.getTime()}`,
            execute: ({ day }) =>
              Effect.sync(() => {
                seen.push(day)
                return rich
              })
          })
        })
        const day = "2020-01-01T00:00:00.000Z"
        const outputs = [
          yield* settle(() => tools.rich.execute({ day }, call)),
          yield* settle(() => tools.rich.execute({ day }, call))
        ]
        assert.deepStrictEqual(seen, [new Date(day)])
        const json = { at: "1970-01-01T00:00:00.000Z", size: "12", tags: [["a", 1]] }
        assert.deepStrictEqual(outputs as ReadonlyArray<unknown>, [json, json])
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("that no longer decode fail with EffectRecordError, and nothing runs", () =>
      Effect.gen(function*() {
        let runs = 0
        const make = <S extends Schema.Codec<unknown, unknown>>(outputSchema: S, result: S["Type"]) =>
          defineEffectTool({
            inputSchema: Schema.Struct({}),
            outputSchema: outputSchema as Schema.Codec<unknown, unknown>,
            execute: () =>
              Effect.sync(() => {
                runs++
                return result
              })
          })
        const before = yield* wrap({ t: yield* make(Schema.String, "text") })
        const after = yield* wrap({ t: yield* make(Schema.Struct({ n: Schema.Int }), { n: 1 }) })
        yield* settle(() => before.t.execute({}, call))
        const error = yield* Effect.flip(settle(() => after.t.execute({}, call)))
        assert.instanceOf(error, EffectRecordError)
        assert.strictEqual(runs, 1)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("of a Stream that comes unflagged are its last value, and its body runs once", () =>
      Effect.gen(function*() {
        let bodies = 0
        const tools = yield* wrap({
          streaming: yield* defineEffectTool({
            inputSchema: Schema.Struct({}),
            execute: (async function*() {
              bodies++
              yield "half"
              yield "whole"
            }) as never
          })
        })
        assert.deepStrictEqual(yield* settle(() => tools.streaming.execute({}, call)), "whole" as never)
        assert.deepStrictEqual(yield* settle(() => tools.streaming.execute({}, call)), "whole" as never)
        assert.strictEqual(bodies, 1)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("of an execute that returns a Promise are awaited and recorded", () =>
      Effect.gen(function*() {
        let runs = 0
        const tools = yield* wrap({
          js: yield* defineEffectTool({ inputSchema: z.object({}), execute: (async () => ({ run: ++runs })) as never })
        })
        assert.deepStrictEqual(yield* settle(() => tools.js.execute({}, call)), { run: 1 } as never)
        assert.deepStrictEqual(yield* settle(() => tools.js.execute({}, call)), { run: 1 } as never)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("of a Promise that lands after the abort are recorded, since a Promise cannot be stopped", () =>
      Effect.gen(function*() {
        const landing = Promise.withResolvers<string>()
        const reached = yield* Deferred.make<void>()
        const signals: Array<AbortSignal> = []
        const tools = yield* wrap({
          js: yield* defineEffectTool({
            inputSchema: z.object({}),
            execute: ((_: unknown, { abortSignal }: { readonly abortSignal: AbortSignal }) => {
              signals.push(abortSignal)
              Deferred.doneUnsafe(reached, Effect.void)
              return landing.promise
            }) as never
          })
        })
        const controller = new AbortController()
        const running = yield* Effect.forkChild(
          Effect.exit(settle(() => tools.js.execute({}, { ...call, abortSignal: controller.signal }))),
          { startImmediately: true }
        )
        yield* Deferred.await(reached)
        controller.abort()
        assert.isTrue(signals[0]!.aborted)
        landing.resolve("landed")
        yield* Fiber.join(running)
        assert.strictEqual(yield* settle(() => tools.js.execute({}, call)), "landed" as never)
        assert.lengthOf(signals, 1)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("of a Promise that rejects after the abort leave the key in doubt", () =>
      Effect.gen(function*() {
        const landing = Promise.withResolvers<string>()
        const reached = yield* Deferred.make<void>()
        const tools = yield* wrap({
          js: yield* defineEffectTool({
            inputSchema: z.object({}),
            effectKey: () => "k",
            execute: (() => {
              Deferred.doneUnsafe(reached, Effect.void)
              return landing.promise
            }) as never
          })
        })
        const controller = new AbortController()
        const running = yield* Effect.forkChild(
          Effect.exit(settle(() => tools.js.execute({}, { ...call, abortSignal: controller.signal }))),
          { startImmediately: true }
        )
        yield* Deferred.await(reached)
        controller.abort()
        landing.reject(new Error("aborted"))
        yield* Fiber.join(running)
        assert.strictEqual((yield* (yield* EffectStore).get("k"))?.doubt, "inDoubt")
      }).pipe(Effect.scoped, Effect.provide(layers)))
  })

  describe("Failures", () => {
    const failure = new EffectOutcomeUnknownError({ cause: new Error("timeout") })
    const defect = new Error("bug")
    const values = [
      ["a failing execute", failure, { execute: () => Effect.fail(failure) }],
      ["a dying execute", defect, { execute: () => Effect.die(defect) }],
      ["an execute that throws", defect, {
        execute: (): Effect.Effect<never> => {
          throw defect
        }
      }],
      ["an effectKey that throws", defect, {
        effectKey: (): string => {
          throw defect
        },
        execute: () => Effect.succeed(1)
      }],
      ["an alreadyApplied that throws", defect, {
        alreadyApplied: (): undefined => {
          throw defect
        },
        execute: () => Effect.succeed(1)
      }],
      ["an alreadyApplied that fails", failure, {
        alreadyApplied: () => Effect.fail(failure),
        execute: () => Effect.succeed(1)
      }]
    ] as const
    for (const [name, value, hooks] of values) {
      it.effect(`of ${name} reject with the identical value, record nothing, and leave nothing in flight`, () =>
        Effect.gen(function*() {
          const { t } = yield* wrap({
            t: yield* defineEffectTool({
              inputSchema: Schema.Struct({}),
              ...hooks as object,
              execute: hooks.execute as () => Effect.Effect<number, unknown>
            })
          })
          for (let i = 0; i < 2; i++) {
            assert.strictEqual(yield* Effect.flip(settle(() => t.execute({}, call))), value)
          }
          const store = yield* EffectStore
          assert.deepStrictEqual(yield* Stream.runCollect(store.list({ status: "held" })), [])
          assert.deepStrictEqual(yield* Stream.runCollect(store.list({ status: "recorded" })), [])
        }).pipe(Effect.scoped, Effect.provide(layers)))
    }
  })
})
