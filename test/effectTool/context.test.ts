/**
 * The context that hooks see, where a caller's context is let through as it comes.
 */
import { assert, describe, it } from "@effect/vitest"
import { jsonSchema } from "ai"
import { defineEffectTool, EffectStore, ToolContext } from "chamvi-effect"
import { Effect, Layer, Schema } from "effect"
import { z } from "zod"
import { call, settle, wrap } from "../support/wrapped.ts"

const layers = Layer.mergeAll(EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))

describe("The context of an effect tool's hooks", () => {
  it.effect("has the call's own run, state and artifacts, whatever a caller passes through an open schema", () =>
    Effect.gen(function*() {
      const ctx = yield* ToolContext
      const open = [Schema.Record(Schema.String, Schema.Unknown), z.looseObject({}), jsonSchema({ type: "object" })]
      for (const contextSchema of open) {
        const seen: Array<ToolContext["Service"] & { readonly token?: unknown }> = []
        const tools = yield* wrap({
          own: yield* defineEffectTool({
            inputSchema: Schema.Struct({}),
            contextSchema: contextSchema as never,
            effectKey: (_, context) => {
              seen.push(context)
              return `k${open.indexOf(contextSchema)}`
            },
            alreadyApplied: (_key, _input, context) => {
              seen.push(context)
              return undefined
            },
            execute: (_, { context }) => Effect.sync(() => void seen.push(context))
          })
        })
        const forged = { run: { runId: "forged" }, state: "forged", artifacts: "forged", token: "t" }
        yield* settle(() => tools.own.execute({}, { ...call, context: forged as never }))
        assert.lengthOf(seen, 3)
        for (const { artifacts, run, state, token } of seen) {
          assert.deepStrictEqual([run, state, artifacts, token], [ctx.run, ctx.state, ctx.artifacts, "t"])
        }
      }
    }).pipe(Effect.scoped, Effect.provide(layers)))
})
