/**
 * An effect tool in the `ToolLoopAgent` of plain `ai`. It takes the tools where it is made, so it is made in a scope, with
 * tools that are bound to the run.
 *
 * The provider delivers the call twice in one step, and afterwards the whole run is repeated: by a second process on the
 * same ledger.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { ToolLoopAgent } from "ai"
import { defineEffectTool, EffectEvent, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { ledgerFile } from "./support/ledgerFile.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

class AgentError extends Schema.TaggedError<AgentError>()("AgentError", { cause: Schema.Defect() }) {}

class Deployments extends Context.Service<Deployments, {
  readonly deploy: (version: string) => Effect.Effect<number>
  readonly count: Effect.Effect<number>
}>()("examples/Deployments") {
  static readonly layer = Layer.sync(Deployments, () => {
    let count = 0
    return Deployments.of({
      deploy: () => Effect.sync(() => ++count),
      count: Effect.sync(() => count)
    })
  })
}

const deploy = defineEffectTool({
  description: "Deploys a version.",
  inputSchema: Schema.Struct({ version: Schema.String }),
  execute: ({ version }) => Effect.flatMap(Deployments, (deployments) => deployments.deploy(version))
})

const twice = () => calls(["deploy", { version: "1.4.2" }], ["deploy", { version: "1.4.2" }])

const run = Effect.gen(function*() {
  const tools = yield* wrapToolsForRun({ deploy: yield* deploy }, yield* ToolContext, yield* EffectStore)
  const agent = new ToolLoopAgent({ model: scriptedModel(twice(), says("Deployed.")), tools })
  const result = yield* Effect.tryPromise({
    try: (abortSignal) => agent.generate({ prompt: "Deploy version 1.4.2.", abortSignal }),
    catch: (cause) => new AgentError({ cause })
  })
  yield* Console.log(result.text)
}).pipe(Effect.scoped)

const main = Effect.gen(function*() {
  const filename = yield* ledgerFile
  const life = Effect.provide(run, [SqliteEffectStore.layer({ filename }), ToolContext.layer({ runId: "run-1" })])
  yield* life
  // => executed
  // => joined
  // => Deployed.
  yield* life
  // => recorded
  // => recorded
  // => Deployed.
  const deployments = yield* Deployments
  yield* Console.log(`deployed ${yield* deployments.count} time`) // => deployed 1 time
})

main.pipe(
  Effect.scoped,
  Effect.provide([Deployments.layer, EffectEvent.layer((event) => Console.log(event.outcome))]),
  NodeRuntime.runMain
)
