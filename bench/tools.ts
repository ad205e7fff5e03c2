/**
 * What a call of a tool costs under the AI SDK's own generateText: plain, `tool`, and an effect tool, fresh and replayed,
 * in memory and on SQLite. The model answers at once; one step.
 */
import type { LanguageModelV4Content } from "@ai-sdk/provider"
import { generateText, jsonSchema, tool as sdkTool, type ToolSet } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { defineEffectTool, EffectStore, type IEffectStore, tool, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Context, Effect, Layer, type Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Case, measure, type Measured, print } from "./harness.ts"

const inputSchema = jsonSchema<{ n: number; text: string }>({
  type: "object",
  properties: { n: { type: "number" }, text: { type: "string" } },
  required: ["n", "text"],
  additionalProperties: false
})
const text = "x".repeat(200)
const result = { ok: true, text }

let unique = 0
const model = (calls: number, fresh: boolean): MockLanguageModelV4 =>
  new MockLanguageModelV4({
    doGenerate: async () => ({
      content: Array.from({ length: calls }, (_, i): LanguageModelV4Content => ({
        type: "tool-call",
        toolCallId: `call-${i}`,
        toolName: "t",
        input: JSON.stringify({ n: fresh ? ++unique : -i, text })
      })),
      finishReason: { unified: "tool-calls", raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 1, text: 1, reasoning: undefined }
      },
      warnings: []
    })
  })

const setUp = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "chamvi-bench-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const build = (layer: Layer.Layer<EffectStore, unknown>): Effect.Effect<IEffectStore, unknown, Scope.Scope> =>
    Effect.map(Layer.build(layer), (context) => Context.get(context, EffectStore))
  const ctx = Context.get(yield* Layer.build(ToolContext.layer({ runId: "bench" })), ToolContext)
  const effectTool = yield* defineEffectTool({ inputSchema, execute: () => Effect.succeed(result) })
  const wrapped = (layer: Layer.Layer<EffectStore, unknown>) =>
    Effect.flatMap(build(layer), (store) => wrapToolsForRun({ t: effectTool }, ctx, store))
  return {
    "plain ai tool": { t: sdkTool({ inputSchema, execute: async () => result }) },
    "tool": { t: yield* tool({ inputSchema, execute: () => Effect.succeed(result) }) },
    "effect tool, memory": yield* wrapped(EffectStore.layerMemory),
    "effect tool, SQLite fast": yield* wrapped(
      SqliteEffectStore.layer({ filename: join(folder, "fast.sqlite"), mode: "fast" })
    ),
    "effect tool, SQLite durable": yield* wrapped(SqliteEffectStore.layer({ filename: join(folder, "durable.sqlite") }))
  } satisfies Record<string, ToolSet>
})

export const benchTools = (rounds: number): Effect.Effect<void, unknown, Scope.Scope> =>
  Effect.flatMap(setUp, (sets) =>
    Effect.promise(async () => {
      for (const calls of [1, 64]) {
        const cases = Object.entries(sets).flatMap(([name, tools]): ReadonlyArray<Case> =>
          (name.startsWith("effect") ? [true, false] : [true]).map((fresh) => ({
            name: name.startsWith("effect") ? `${name}, ${fresh ? "fresh" : "replay"}` : name,
            operations: calls,
            run: () => generateText({ model: model(calls, fresh), prompt: "go", tools: tools as ToolSet })
          }))
        )
        const measured = await measure(cases, calls === 1 ? rounds * 4 : rounds)
        const base = measured[0]!
        print(
          `Per tool call, ${calls} parallel call${calls === 1 ? "" : "s"} under generateText`,
          measured.map((row: Measured) => ({ ...row, base: row === base ? undefined : base }))
        )
      }
    }))
