/**
 * `streamText`: the parts of an answer as they come, and what is known at its end. The reader of the second answer has seen
 * enough after two words: leaving ends the call, and the tool that was to come with it.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { isStepCount } from "ai"
import { Ai, streamText, tool } from "chamvi-effect"
import { Console, Context, Effect, Layer, Schema, Stream } from "effect"
import { calls, says } from "./support/scriptedModel.ts"
import { streamedModel } from "./support/streamedModel.ts"

class Weather extends Context.Service<Weather, {
  readonly degrees: (city: string) => Effect.Effect<number>
}>()("examples/Weather") {
  static readonly layer = Layer.succeed(
    Weather,
    Weather.of({ degrees: (city) => Effect.succeed(city.length + 10) })
  )
}

const weather = tool({
  description: "The temperature in a city, in degrees Celsius.",
  inputSchema: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.flatMap(Weather, ({ degrees }) => degrees(city))
})

const report = Effect.gen(function*() {
  const result = yield* streamText({
    model: streamedModel(calls(["weather", { city: "Paris" }]), says("It is 15 degrees.")),
    prompt: "How warm is it in Paris?",
    tools: { weather: yield* weather },
    stopWhen: isStepCount(2),
    onStepEnd: ({ finishReason, stepNumber }) => Console.log(`step ${stepNumber}: ${finishReason}`)
  })
  yield* Stream.runForEach(result.stream, (part) => {
    switch (part.type) {
      case "tool-call":
        return Console.log(`calls ${part.toolName}`)
      case "tool-result":
        return Console.log(`gets ${JSON.stringify(part.output)}`)
      case "text-delta":
        return Console.log(`writes "${part.text}"`)
      default:
        return Effect.void
    }
  })
  // => calls weather
  // => gets 15
  // => step 0: tool-calls
  // => writes "It "
  // => writes "is "
  // => writes "15 "
  // => writes "degrees."
  // => step 1: stop
  yield* Console.log(yield* result.text) // => It is 15 degrees.
  const usage = yield* result.usage
  yield* Console.log(`${usage.totalTokens} tokens`) // => 4 tokens
})

const seenEnough = Effect.gen(function*() {
  const result = yield* streamText({
    model: streamedModel(says("Once upon a time there was a very, very long answer, and it went on for ever.")),
    prompt: "Tell me a story.",
    onAbort: () => Console.log("aborted")
  })
  yield* Console.log(yield* Stream.mkString(Stream.take(result.textStream, 2)))
  const error = yield* Effect.flip(result.text)
  yield* Console.log(`${error.reason}: ${error.message}`)
  // => aborted
  // => Once upon
  // => Aborted: The call was aborted: its last reader left before the end.
})

Effect.andThen(Effect.scoped(report), Effect.scoped(seenEnough)).pipe(
  Effect.provide([Ai.layer, Weather.layer]),
  NodeRuntime.runMain
)
