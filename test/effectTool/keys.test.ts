/**
 * The key of a tool's call: out of the validated input, or as `effectKey` says it.
 */
import { assert, describe, it } from "@effect/vitest"
import { defineEffectTool, EffectKeyError, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { createHash } from "node:crypto"
import { call, settle, wrap } from "../support/wrapped.ts"

const layers = Layer.mergeAll(EffectStore.layerMemory, ToolContext.layer({ runId: "run:1" }))

const storedKeys = Effect.gen(function*() {
  const records = yield* Stream.runCollect((yield* EffectStore).list())
  return records.map(({ key }) => key)
})

describe("The key of an effect tool's call", () => {
  it.effect("is by default that of the run, the tool's name and the validated input, after defaults", () =>
    Effect.gen(function*() {
      let runs = 0
      const tools = yield* wrap({
        remind: yield* defineEffectTool({
          inputSchema: Schema.Struct({
            limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))),
            at: Schema.Date
          }),
          execute: () => Effect.sync(() => ++runs)
        })
      })
      const at = "1970-01-01T00:00:00.000Z"
      const execute = (input: unknown) => settle(() => tools.remind.execute(input as never, call))
      yield* execute({ at })
      yield* execute({ limit: 10, at })
      yield* execute({ at: "1970-01-01T00:00:00Z", limit: 10 })
      const canonical = `{"at":"1970-01-01T00:00:00.000Z","limit":10}`
      const hash = createHash("sha256").update(canonical, "utf8").digest("hex")
      assert.deepStrictEqual(yield* storedKeys, [`run%3A1:remind:${hash}`])
      assert.strictEqual(runs, 1)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("makes one effect over two runs where it holds no run, and one for each run by default", () =>
    Effect.gen(function*() {
      const applied: Array<string> = []
      const made = (effectKey?: () => string) =>
        defineEffectTool({
          inputSchema: Schema.Struct({ order: Schema.Int }),
          effectKey,
          execute: (_, { context, effectKey }) =>
            Effect.sync(() => {
              applied.push(effectKey)
              return context.run.runId
            })
        })
      const tools = { once: yield* made(() => "order-7"), each: yield* made() }
      const store = yield* EffectStore
      const results: Array<unknown> = []
      for (const runId of ["run-1", "run-2"]) {
        const ctx = Context.get(yield* Layer.build(ToolContext.layer({ runId })), ToolContext)
        const wrapped = yield* wrapToolsForRun(tools, ctx, store)
        for (const tool of [wrapped.once, wrapped.each]) {
          results.push(yield* settle(() => tool.execute({ order: 7 }, call)))
        }
      }
      assert.deepStrictEqual(results, ["run-1", "run-1", "run-1", "run-2"])
      assert.deepStrictEqual(applied.map((key) => key.split(":")[0]), ["order-7", "run-1", "run-2"])
    }).pipe(Effect.scoped, Effect.provide(EffectStore.layerMemory)))

  it.effect("stands verbatim in both hooks and in the store, where effectKey answers it", () =>
    Effect.gen(function*() {
      const key = " A:%41\n\u00e9 "
      const seen: Array<string> = []
      const tools = yield* wrap({
        post: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          effectKey: () => key,
          alreadyApplied: (key) => Effect.sync(() => void seen.push(key)),
          execute: (_, { effectKey }) => Effect.sync(() => void seen.push(effectKey))
        })
      })
      yield* settle(() => tools.post.execute({}, call))
      assert.deepStrictEqual(seen, [key, key])
      assert.deepStrictEqual(yield* storedKeys, [key])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("is an error where effectKey answers no key, and no hook runs", () =>
    Effect.gen(function*() {
      let runs = 0
      for (const answer of ["", " \n\u200b", undefined, 7, Effect.succeed(" "), Promise.resolve(undefined)]) {
        const tools = yield* wrap({
          post: yield* defineEffectTool({
            inputSchema: Schema.Struct({}),
            effectKey: () => answer as string,
            alreadyApplied: () => Effect.sync(() => void runs++),
            execute: () => Effect.sync(() => void runs++)
          })
        })
        assert.instanceOf(yield* Effect.flip(settle(() => tools.post.execute({}, call))), EffectKeyError)
      }
      assert.strictEqual(runs, 0)
      assert.deepStrictEqual(yield* storedKeys, [])
    }).pipe(Effect.scoped, Effect.provide(layers)))
})
