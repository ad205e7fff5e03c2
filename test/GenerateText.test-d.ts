import { isStepCount, type LanguageModel, Output, type Tool, type ToolSet } from "ai"
import { Context, Effect, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import type { CallServices } from "../src/ai/callTypes.ts"
import type { Ai } from "../src/Ai.ts"
import type { AiError } from "../src/AiError.ts"
import type { EffectStore } from "../src/EffectStore.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import type { ToolContext } from "../src/ToolContext.ts"
import type { Same } from "./support/types.ts"

class Weather
  extends Context.Service<Weather, { readonly get: (city: string) => Effect.Effect<number> }>()("Weather")
{}

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Failure<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

const makeWeather = tool({
  inputSchema: Schema.Struct({ city: Schema.String, at: Schema.Date }),
  execute: ({ city }) => Effect.flatMap(Weather, (weather) => weather.get(city))
})
const makeComment = defineEffectTool({
  inputSchema: Schema.Struct({ issue: Schema.Int }),
  execute: ({ issue }) => Effect.succeed({ id: issue })
})
declare const weather: Success<typeof makeWeather>
declare const comment: Success<typeof makeComment>
const model = "openai/gpt-5"

describe("generateText", () => {
  it("needs an Ai, and fails with AiError", () => {
    const call = generateText({ model, prompt: "hi" })
    expectTypeOf<Same<Services<typeof call>, Ai>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
    expectTypeOf<Success<typeof call>["text"]>().toEqualTypeOf<string>()
  })

  it("leaves the services of tools with the making of the tools", () => {
    const program = Effect.gen(function*() {
      return yield* generateText({ model, prompt: "hi", tools: { weather: yield* makeWeather } })
    })
    expectTypeOf<Same<Services<typeof program>, Ai | Weather>>().toEqualTypeOf<true>()
    const call = generateText({ model, prompt: "hi", tools: { weather } })
    expectTypeOf<Same<Services<typeof call>, Ai>>().toEqualTypeOf<true>()
  })

  it("needs EffectStore and ToolContext exactly when an effect tool is among the tools", () => {
    const both = generateText({ model, prompt: "hi", tools: { weather, comment } })
    expectTypeOf<Same<Services<typeof both>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const one = generateText({ model, prompt: "hi", tools: { comment } })
    expectTypeOf<Same<Services<typeof one>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const maybe = generateText({ model, prompt: "hi", tools: Math.random() > 2 ? { comment } : { weather } })
    expectTypeOf<Same<Services<typeof maybe>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const loose = generateText({ model, prompt: "hi", tools: {} as ToolSet })
    expectTypeOf<Same<Services<typeof loose>, Ai>>().toEqualTypeOf<true>()
  })

  it("needs them too where a tool is an effect tool only perhaps", () => {
    const either = generateText({ model, prompt: "hi", tools: { a: Math.random() > 2 ? comment : weather } })
    expectTypeOf<Same<Services<typeof either>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const optional = {} as { weather: typeof weather; comment?: typeof comment }
    type Optional = CallServices<{ tools: typeof optional }>
    expectTypeOf<Same<Optional, EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const record = generateText({ model, prompt: "hi", tools: {} as Record<string, typeof comment | Tool> })
    expectTypeOf<Same<Services<typeof record>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const plain = generateText({ model, prompt: "hi", tools: {} as Record<string, typeof weather | Tool> })
    expectTypeOf<Same<Services<typeof plain>, Ai>>().toEqualTypeOf<true>()
  })

  it("accepts a model of the SDK's own type", () => {
    const languageModel = model as LanguageModel
    const byPrompt = generateText({ model: languageModel, prompt: "hi" })
    expectTypeOf<Same<Services<typeof byPrompt>, Ai>>().toEqualTypeOf<true>()
    const byMessages = generateText({ model: languageModel, messages: [{ role: "user", content: "hi" }] })
    expectTypeOf<Same<Services<typeof byMessages>, Ai>>().toEqualTypeOf<true>()
    const withTools = generateText({ model: languageModel, prompt: "hi", tools: { weather } })
    expectTypeOf<Same<Services<typeof withTools>, Ai>>().toEqualTypeOf<true>()
    expectTypeOf<Success<typeof withTools>["toolCalls"][number]["toolName"]>().toExtend<string>()
    const withEffectTool = generateText({ model: languageModel, prompt: "hi", tools: { weather, comment } })
    expectTypeOf<Same<Services<typeof withEffectTool>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const withOutput = generateText({
      model: languageModel,
      prompt: "hi",
      output: Output.object({ schema: z.object({ n: z.number() }) }),
      runtimeContext: { tenant: 1 },
      prepareStep: ({ runtimeContext }) => {
        expectTypeOf(runtimeContext).toEqualTypeOf<{ tenant: number }>()
        return { model: languageModel }
      }
    })
    expectTypeOf<Success<typeof withOutput>["output"]>().toEqualTypeOf<{ n: number }>()
    // @ts-expect-error misspelt
    void generateText({ model: languageModel, prompt: "hi", temprature: 1 })
  })

  it("accepts no model, and nothing that is no model", () => {
    void generateText({ prompt: "hi" })
    void generateText({ model: "a/model-of-my-own" as string, prompt: "hi" })
    // @ts-expect-error not a model
    void generateText({ model: 1, prompt: "hi" })
    // @ts-expect-error undefined is not a model
    void generateText({ model: undefined, prompt: "hi" })
    // @ts-expect-error perhaps not a model
    void generateText({ model: model as LanguageModel | undefined, prompt: "hi" })
  })

  it("types the results of tools in their JSON form", () => {
    const call = generateText({ model, prompt: "hi", tools: { weather, comment }, stopWhen: isStepCount(3) })
    type Result = Success<typeof call>["toolResults"][number]
    expectTypeOf<Extract<Result, { toolName: "weather" }>["output"]>().toExtend<number>()
    type Call = Success<typeof call>["toolCalls"][number]
    expectTypeOf<Extract<Call, { toolName: "weather" }>["input"]>().toEqualTypeOf<{
      readonly city: string
      readonly at: string
    }>()
  })

  it("types the structured output", () => {
    const call = generateText({ model, prompt: "hi", output: Output.object({ schema: z.object({ n: z.number() }) }) })
    expectTypeOf<Success<typeof call>["output"]>().toEqualTypeOf<{ n: number }>()
  })

  it("types callbacks by the tools", () => {
    void generateText({
      model,
      prompt: "hi",
      tools: { weather },
      prepareStep: ({ stepNumber }) => {
        expectTypeOf(stepNumber).toEqualTypeOf<number>()
        return { activeTools: ["weather"] }
      },
      onStepEnd: ({ toolResults }) => {
        expectTypeOf(toolResults[0]!.toolName).toExtend<string>()
      }
    })
  })

  it("keeps prompt and messages apart", () => {
    void generateText({ model, messages: [{ role: "user", content: "hi" }] })
    // @ts-expect-error neither prompt nor messages
    void generateText({ model })
    // @ts-expect-error both
    void generateText({ model, prompt: "hi", messages: [] })
  })

  it("rejects misspelt options", () => {
    // @ts-expect-error misspelt
    void generateText({ model, prompt: "hi", temprature: 1 })
  })

  it("asks for the context of tools that have a contextSchema", () => {
    const user = {} as Success<typeof makeUser>
    void generateText({ model, prompt: "hi", tools: { user }, toolsContext: { user: { id: "1" } } })
    // @ts-expect-error toolsContext is missing
    void generateText({ model, prompt: "hi", tools: { user } })
    void generateText({
      model,
      prompt: "hi",
      tools: { user },
      // @ts-expect-error not the context of user
      toolsContext: { user: { id: 1 } }
    })
  })
})

const makeUser = tool({
  inputSchema: Schema.Struct({}),
  contextSchema: Schema.Struct({ id: Schema.String }),
  execute: (_, { context }) => Effect.succeed(context.id)
})
