import { assert, describe, it } from "@effect/vitest"
import { asSchema, generateText as sdkGenerateText, jsonSchema } from "ai"
import { Cause, Effect, Exit, Schema } from "effect"
import { z } from "zod"
import { getEffectToolDefinition } from "../src/ai/effectToolDefinition.ts"
import { Ai } from "../src/Ai.ts"
import { defineEffectTool, isEffectTool } from "../src/EffectTool.ts"
import { generateText } from "../src/GenerateText.ts"
import { copyTool } from "../src/internal/toolCopy.ts"
import { tool } from "../src/Tool.ts"
import { calls, scripted } from "./support/model.ts"

const inputSchema = Schema.Struct({ issue: Schema.Int, at: Schema.optionalKey(Schema.Date) })
const execute = () => Effect.succeed("done")

const defectOf = (effect: Effect.Effect<unknown>) =>
  Effect.map(Effect.exit(effect), (exit) => Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "no defect")

describe("defineEffectTool", () => {
  it.effect("requires execute at run time too", () =>
    Effect.gen(function*() {
      const without = defineEffectTool({ inputSchema } as unknown as Parameters<typeof defineEffectTool>[0])
      assert.match(yield* defectOf(without as Effect.Effect<unknown>), /needs an execute/)
    }))

  it.effect("refuses run, state and artifacts in a contextSchema at run time too, whatever the schema is", () =>
    Effect.gen(function*() {
      const schemas = [
        Schema.Struct({ run: Schema.String, user: Schema.String }),
        z.object({ state: z.string() }),
        jsonSchema({ type: "object", properties: { artifacts: {} } })
      ]
      for (const contextSchema of schemas) {
        const made = defineEffectTool({ inputSchema, contextSchema: contextSchema as never, execute })
        assert.match(yield* defectOf(made as Effect.Effect<unknown>), /reserved name (run|state|artifacts)/)
      }
      const fine = defineEffectTool({ inputSchema, contextSchema: Schema.Struct({ user: Schema.String }), execute })
      assert.isTrue(isEffectTool(yield* fine))
    }))

  it.effect("makes a tool of the AI SDK that has none of its own options", () =>
    Effect.gen(function*() {
      const metadata = { source: "test" }
      const made = yield* defineEffectTool({
        description: "Posts",
        inputSchema,
        metadata,
        effectKey: ({ issue }) => `issue:${issue}`,
        alreadyApplied: () => undefined,
        execute,
        whenInDoubt: "fail",
        onInputChange: "fail",
        settle: "1 second",
        lease: "1 minute",
        waitFor: "2 minutes"
      })
      assert.deepStrictEqual(Object.keys(made).sort(), ["description", "execute", "inputSchema", "metadata"])
      assert.strictEqual(made.metadata, metadata)
      const described = yield* Effect.promise(() => Promise.resolve(asSchema(made.inputSchema).jsonSchema))
      assert.notInclude(JSON.stringify(described), "effectKey")
    }))

  it.effect("hides its definition, which survives spreads, copies and a replaced execute", () =>
    Effect.gen(function*() {
      const made = yield* defineEffectTool({ inputSchema, execute, lease: "1 minute" })
      const definition = getEffectToolDefinition(made)
      assert.strictEqual(definition?.lease, "1 minute")
      assert.strictEqual(getEffectToolDefinition({ ...made, description: "x" }), definition)
      assert.strictEqual(getEffectToolDefinition(copyTool(made, { execute: () => 1 })), definition)
      assert.isFalse(isEffectTool(yield* tool({ inputSchema, execute })))
      for (const other of [undefined, null, 1, "x", {}, [], () => 1]) assert.isFalse(isEffectTool(other))
    }))

  it.effect("has codecs between what the SDK holds and what hooks see, with defaults in the canonical form", () =>
    Effect.gen(function*() {
      const made = yield* defineEffectTool({
        inputSchema: Schema.Struct({
          at: Schema.Date,
          limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10)))
        }),
        outputSchema: Schema.Struct({ at: Schema.Date }),
        execute: ({ at }) => Effect.succeed({ at })
      })
      const { input, output } = getEffectToolDefinition(made)!.codecs
      const decoded = yield* input.decode({ at: "1970-01-01T00:00:00.000Z" })
      assert.deepStrictEqual(decoded, { at: new Date(0), limit: 10 })
      assert.deepStrictEqual(yield* input.encode(decoded), { at: "1970-01-01T00:00:00.000Z", limit: 10 })
      assert.isTrue(output.lifted)
      assert.deepStrictEqual(yield* output.encode({ at: new Date(0) }), { at: "1970-01-01T00:00:00.000Z" })
      assert.deepStrictEqual(yield* output.decode({ at: "1970-01-01T00:00:00.000Z" }), { at: new Date(0) })
    }))

  it.effect("fails a call of plain ai with a clear error, and runs no hook", () =>
    Effect.gen(function*() {
      let ran = 0
      const made = yield* defineEffectTool({
        inputSchema,
        effectKey: () => {
          ran++
          return "key"
        },
        execute: () => Effect.sync(() => void ran++)
      })
      const direct = yield* Effect.promise(() =>
        Promise.resolve(made.execute({ issue: 1 }, { toolCallId: "1", messages: [], context: {} })).then(
          () => "executed",
          String
        )
      )
      assert.match(direct, /without reconciliation.*wrapToolsForRun/)
      const result = yield* Effect.promise(() =>
        sdkGenerateText({ model: scripted(calls(["made", { issue: 1 }])), prompt: "go", tools: { made } })
      )
      const error = result.content.find((part) => part.type === "tool-error")
      assert.match(String(error?.error), /without reconciliation/)
      assert.strictEqual(ran, 0)
    }))

  it.effect("fails a call of generateText with a clear error where the types were not asked for a store", () =>
    Effect.gen(function*() {
      const made = yield* defineEffectTool({ inputSchema, execute: () => Effect.die("executed") })
      const loose: Record<string, Effect.Success<ReturnType<typeof makePlain>>> = { made: made as never }
      const result = yield* generateText({
        model: scripted(calls(["made", { issue: 1 }])),
        prompt: "go",
        tools: loose
      })
      const error = result.content.find((part) => part.type === "tool-error")
      assert.match(String(error?.error), /without EffectStore/)
    }).pipe(Effect.provide(Ai.layer)))
})

const makePlain = () => tool({ inputSchema, execute })
