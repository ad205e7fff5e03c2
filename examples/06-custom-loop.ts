/**
 * A loop of your own over plain `ai`, one model call at a time: `wrapToolsForRun` binds the effect tools to a run and a
 * store, and its `allow` says which of them the run may use.
 *
 * The loop dies after its first step, before it has saved its messages, and starts over. Its tools keep their results.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { generateText, type ModelMessage } from "ai"
import { type Allow, defineEffectTool, EffectEvent, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

class Server extends Context.Service<Server, {
  readonly restart: (name: string) => Effect.Effect<string>
  readonly remove: (name: string) => Effect.Effect<string>
}>()("examples/Server") {
  static readonly layer = Layer.sync(Server, () => {
    let restarts = 0
    return Server.of({
      restart: (name) => Effect.sync(() => `${name}: restart ${++restarts}`),
      remove: (name) => Effect.succeed(`${name}: removed`)
    })
  })
}

class Permissions extends Context.Service<Permissions, {
  readonly isGranted: (tool: string) => Effect.Effect<boolean>
}>()("examples/Permissions") {
  static readonly layerOf = (...granted: ReadonlyArray<string>) =>
    Layer.succeed(Permissions, { isGranted: (tool) => Effect.succeed(granted.includes(tool)) })
}

const inputSchema = Schema.Struct({ name: Schema.String })
const restart = defineEffectTool({
  description: "Restarts a server.",
  inputSchema,
  execute: ({ name }) => Effect.flatMap(Server, (server) => server.restart(name))
})
const remove = defineEffectTool({
  description: "Removes a server for ever.",
  inputSchema,
  execute: ({ name }) => Effect.flatMap(Server, (server) => server.remove(name))
})

const loop = Effect.fnUntraced(function*(maxSteps: number) {
  const permissions = yield* Permissions
  const allow: Allow = (tool) => permissions.isGranted(tool)
  const unbound = { restart: yield* restart, remove: yield* remove }
  const tools = yield* wrapToolsForRun(unbound, yield* ToolContext, yield* EffectStore, allow)
  const model = scriptedModel(calls(["restart", { name: "web" }], ["remove", { name: "web" }]), says("It is up again."))
  const messages: Array<ModelMessage> = [{ role: "user", content: "The web server hangs." }]
  for (let step = 1; step <= maxSteps; step++) {
    const result = yield* Effect.tryPromise((abortSignal) => generateText({ model, messages, tools, abortSignal }))
    for (const part of result.content) {
      if (part.type === "text") yield* Console.log(part.text)
      if (part.type === "tool-result") yield* Console.log(part.output)
    }
    if (result.finishReason !== "tool-calls") return
    messages.push(...result.responseMessages)
  }
}, Effect.scoped)

const main = Effect.gen(function*() {
  yield* loop(1)
  // => restart executed
  // => remove refused
  // => web: restart 1
  yield* loop(5)
  // => restart recorded
  // => remove refused
  // => web: restart 1
  // => It is up again.
})

const events = EffectEvent.layer((event) => Console.log(`${event.tool} ${event.outcome}`))
main.pipe(
  Effect.provide([EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }), Server.layer, events]),
  Effect.provide(Permissions.layerOf("restart")),
  NodeRuntime.runMain
)
