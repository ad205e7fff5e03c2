/** What the tests of telemetry call: tools with spans of their own, and a provider that is busy. */
import { APICallError } from "ai"
import { Ai, defineEffectTool, EffectStore, tool, ToolContext } from "chamvi-effect"
import { Data, Effect, Layer, Schema } from "effect"

export const ledger = Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), EffectStore.layerMemory)

export class Broken extends Data.TaggedError("Broken")<{ readonly message: string }> {}

export const makeTools = Effect.gen(function*() {
  const add = yield* tool({
    inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    execute: ({ a, b }) => Effect.withSpan(Effect.succeed(a + b), "adding")
  })
  const label = yield* defineEffectTool({
    inputSchema: Schema.Struct({ label: Schema.String }),
    effectKey: (_, ctx) => `${ctx.run.runId}:label`,
    execute: () => Effect.withSpan(Effect.succeed("labelled"), "labelling")
  })
  const fail = yield* tool({
    inputSchema: Schema.Struct({}),
    execute: () => Effect.fail(new Broken({ message: "the door is locked" }))
  })
  return { add, label, fail }
})

export const busy = () =>
  new APICallError({
    message: "busy",
    url: "https://api.example.com",
    requestBodyValues: { prompt: "a secret prompt" },
    responseHeaders: { "retry-after-ms": "0" },
    statusCode: 503
  })
