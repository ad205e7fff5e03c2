/**
 * A tool that streams: it says `streaming: true`, and its `execute` answers a Stream. While the first run applies the
 * effect, its values are preliminary results; the last one is the result, and what the ledger records.
 *
 * In a second life of the run the model asks twice for the same deployment: both calls get the recorded result, and nothing
 * is deployed again.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import { Ai, defineEffectTool, EffectStore, streamText, ToolContext } from "chamvi-effect"
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"
import { calls, says } from "./support/scriptedModel.ts"
import { streamedModel } from "./support/streamedModel.ts"

class Deployments extends Context.Service<Deployments, {
  /** Deploys, and tells how it goes. */
  readonly deploy: (version: string) => Stream.Stream<string>
  readonly count: Effect.Effect<number>
}>()("examples/Deployments") {
  static readonly layer = Layer.sync(Deployments, () => {
    let count = 0
    const switchOver = Effect.sync(() => `is live, deployment ${++count}`)
    return Deployments.of({
      deploy: () =>
        Stream.make("is built", "is uploaded").pipe(
          Stream.tap(() => Effect.yieldNow),
          // an abort between two values leaves the key in doubt; the switch itself is not cut
          Stream.concat(Stream.fromEffect(Effect.uninterruptible(switchOver)))
        ),
      count: Effect.sync(() => count)
    })
  })
}

const deploy = defineEffectTool({
  description: "Deploys a version.",
  streaming: true,
  inputSchema: Schema.Struct({ version: Schema.String }),
  execute: ({ version }) =>
    Stream.unwrap(
      Effect.map(Deployments, (deployments) =>
        Stream.map(deployments.deploy(version), (status) => `${version} ${status}`))
    )
})

const life = (...versions: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const { stream } = yield* streamText({
      model: streamedModel(calls(...versions.map((version) => ["deploy", { version }] as const)), says("Done.")),
      prompt: "Deploy version 1.4.2.",
      stopWhen: isStepCount(2),
      tools: { deploy: yield* deploy }
    })
    yield* Stream.runForEach(stream, (part) =>
      part.type === "tool-result" && part.dynamic !== true
        ? Console.log(part.preliminary === true ? `... ${part.output}` : part.output)
        : Effect.void)
  }).pipe(Effect.scoped)

const main = Effect.gen(function*() {
  yield* life("1.4.2")
  // => ... 1.4.2 is built
  // => ... 1.4.2 is uploaded
  // => ... 1.4.2 is live, deployment 1
  // => 1.4.2 is live, deployment 1
  yield* life("1.4.2", "1.4.2")
  // a replay shows the recorded value once, since the AI SDK takes the result from the values that it sees
  // => ... 1.4.2 is live, deployment 1
  // => ... 1.4.2 is live, deployment 1
  // => 1.4.2 is live, deployment 1
  // => 1.4.2 is live, deployment 1
  yield* Console.log(`deployments: ${yield* Effect.flatMap(Deployments, ({ count }) => count)}`) // => deployments: 1
})

main.pipe(
  Effect.provide([Ai.layer, Deployments.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })]),
  NodeRuntime.runMain
)
