// A program of somebody who installed the package: compiled and run against the packed build by
// `npm run check:consumer`, where "chamvi-effect" has no source to fall back to.
import { applyOnce, defineEffectTool, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { ClusterEngine } from "chamvi-effect/ClusterEngine"
import * as EffectRecord from "chamvi-effect/EffectRecord"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { storeLaws } from "chamvi-effect/testing"
import { Effect, Schema } from "effect"

const label = defineEffectTool({
  inputSchema: Schema.Struct({ label: Schema.String }),
  execute: ({ label }, { effectKey }) => Effect.succeed(`${label} ${effectKey.length}`)
})

const program = Effect.gen(function*() {
  const tools = yield* wrapToolsForRun({ label: yield* label }, yield* ToolContext, yield* EffectStore)
  const call = () => tools.label.execute({ label: "bug" }, { toolCallId: "1", messages: [], context: {} })
  const twice = [yield* Effect.promise(call), yield* Effect.promise(call)]
  const once = yield* applyOnce({ key: "k", execute: () => Effect.succeed(1) })
  return { twice, once }
}).pipe(
  Effect.scoped,
  Effect.provide([SqliteEffectStore.layer({ filename: ":memory:" }), ToolContext.layer({ runId: "run-1" })])
)

const { once, twice } = await Effect.runPromise(program)
if (once !== 1 || twice[0] !== twice[1]) {
  throw new Error(`expected equal results, got ${JSON.stringify({ once, twice })}`)
}
if (
  typeof EffectRecord.claim !== "function" || Object.keys(storeLaws).length === 0 || SqlEffectStore === undefined
  || ClusterEngine === undefined
) {
  throw new Error("a subpath of the package exports nothing")
}
