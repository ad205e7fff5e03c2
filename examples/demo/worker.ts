/**
 * The agent process of the demo: answers one issue, with an effect tool or, for comparison, with a plain one. It is killed
 * and started again by main.ts and has no idea of that.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import { Ai, EffectEvent, generateText, ToolContext } from "chamvi-effect"
import { Config, Console, Effect, Layer, Option } from "effect"
import { calls, says, scriptedModel } from "../support/scriptedModel.ts"
import { comment, plainComment } from "./commentTools.ts"
import { layerLease, layerLedger } from "./Ledger.ts"
import { TrackerClient } from "./TrackerClient.ts"

const program = Effect.gen(function*() {
  const issue = yield* Config.Int("ISSUE")
  const words = yield* Config.String("WORDS")
  const plain = yield* Config.Boolean("PLAIN")
  const realModel = yield* Config.option(Config.String("AI_MODEL"))
  const prompt = `Answer issue ${issue}: post one comment that says: "${words}". Then say that you are done.`
  const result = yield* generateText({
    model: Option.getOrElse(realModel, () => scriptedModel(calls(["comment", { issue, body: words }]), says("Done."))),
    prompt,
    stopWhen: isStepCount(3),
    tools: { comment: plain ? yield* plainComment : yield* comment }
  })
  yield* Console.log(`model: ${result.text}`)
})

const layers = Layer.unwrap(Effect.gen(function*() {
  const runId = yield* Config.String("RUN_ID")
  return Layer.mergeAll(
    Ai.layer,
    TrackerClient.layer,
    ToolContext.layer({ runId }),
    layerLedger,
    layerLease,
    EffectEvent.layer((event) => Console.log(`event: ${event.outcome}${event.takenOver ? ", claim taken over" : ""}`))
  )
}))

program.pipe(Effect.provide(layers), NodeRuntime.runMain)
