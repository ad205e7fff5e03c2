// mistakes are made here on purpose: @effect-diagnostics missingEffectError:off
import type { InferUIMessageChunk, ModelMessage, StepResult, TextStreamPart, UIMessage } from "ai"
import * as ai from "ai"
import { Context, Data, Effect, Schema, type Scope, type Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import type { Ai } from "../src/Ai.ts"
import type { AiError } from "../src/AiError.ts"
import type { EffectStore } from "../src/EffectStore.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { Output } from "../src/index.ts"
import { streamText } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import type { ToolContext } from "../src/ToolContext.ts"
import type { Same } from "./support/types.ts"

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A
  : T extends Stream.Stream<infer A, unknown, unknown> ? A
  : never
type Failure<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E
  : T extends Stream.Stream<unknown, infer E, unknown> ? E
  : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R
  : T extends Stream.Stream<unknown, unknown, infer R> ? R
  : never

class Log extends Context.Service<Log, { readonly add: (line: string) => Effect.Effect<void> }>()("Log") {}
class Budget extends Context.Service<Budget, { readonly left: Effect.Effect<number> }>()("Budget") {}
class TooMuch extends Data.TaggedError("TooMuch") {}

const log = (line: string) => Effect.flatMap(Log, ({ add }) => add(line))

const makeWeather = tool({
  inputSchema: Schema.Struct({ city: Schema.String, at: Schema.Date }),
  execute: ({ city }) => Effect.succeed({ city, degrees: 20 })
})
const makeComment = defineEffectTool({
  inputSchema: Schema.Struct({ issue: Schema.Int }),
  execute: ({ issue }) => Effect.succeed({ id: issue })
})
declare const weather: Success<typeof makeWeather>
declare const comment: Success<typeof makeComment>
const model = "openai/gpt-5"

describe("streamText", () => {
  it("needs an Ai and a Scope, and fails with AiError", () => {
    const call = streamText({ model, prompt: "hi" })
    expectTypeOf<Same<Services<typeof call>, Ai | Scope.Scope>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
  })

  it("has Streams and Effects that fail with AiError and need nothing", () => {
    const call = streamText({ model, prompt: "hi" })
    type Result = Success<typeof call>
    expectTypeOf<Result["textStream"]>().toEqualTypeOf<Stream.Stream<string, AiError>>()
    expectTypeOf<Result["text"]>().toEqualTypeOf<Effect.Effect<string, AiError>>()
    expectTypeOf<Result["reasoningText"]>().toEqualTypeOf<Effect.Effect<string | undefined, AiError>>()
    expectTypeOf<Result["finishReason"]>().toEqualTypeOf<Effect.Effect<ai.FinishReason, AiError>>()
    expectTypeOf<Result["usage"]>().toEqualTypeOf<Effect.Effect<ai.LanguageModelUsage, AiError>>()
    expectTypeOf<Result["totalUsage"]>().toEqualTypeOf<Effect.Effect<ai.LanguageModelUsage, AiError>>()
    expectTypeOf<Result["consumeStream"]>().toEqualTypeOf<Effect.Effect<void, AiError>>()
    expectTypeOf<Result["output"]>().toEqualTypeOf<Effect.Effect<string, AiError>>()
    expectTypeOf<Success<Result["responseMessages"]>>().toExtend<Array<ModelMessage>>()
    expectTypeOf<Result["partialOutputStream"]>().toEqualTypeOf<Stream.Stream<string, AiError>>()
    expectTypeOf<Result["elementStream"]>().toEqualTypeOf<Stream.Stream<never, AiError>>()
    expectTypeOf<Result["toTextStreamResponse"]>().returns.toEqualTypeOf<Effect.Effect<Response>>()
  })

  it("has the tools' types in its parts, calls, results and steps", () => {
    const call = streamText({ model, prompt: "hi", tools: { weather } })
    type Result = Success<typeof call>
    type Part = Success<Result["stream"]>
    expectTypeOf<Part>().toExtend<TextStreamPart<{ weather: typeof weather }>>()
    // an error or an abort is the failure of the stream
    expectTypeOf<Extract<Part, { readonly type: "error" | "abort" }>>().toEqualTypeOf<never>()
    type Given = Extract<Part, { readonly type: "tool-result"; readonly dynamic?: false | undefined }>
    expectTypeOf<Given["output"]>().toEqualTypeOf<{ city: string; degrees: number }>()
    type Called = Extract<Success<Result["toolCalls"]>[number], { readonly dynamic?: false | undefined }>
    expectTypeOf<Called["input"]>().toEqualTypeOf<{ readonly city: string; readonly at: string }>()
    expectTypeOf<Success<Result["steps"]>>().toEqualTypeOf<
      Array<StepResult<{ weather: typeof weather }, Record<string, unknown>>>
    >()
  })

  it("needs EffectStore and ToolContext exactly when an effect tool is among the tools", () => {
    const both = streamText({ model, prompt: "hi", tools: { weather, comment } })
    expectTypeOf<Same<Services<typeof both>, Ai | Scope.Scope | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const one = streamText({ model, prompt: "hi", tools: { weather } })
    expectTypeOf<Same<Services<typeof one>, Ai | Scope.Scope>>().toEqualTypeOf<true>()
    expectTypeOf<Services<Success<typeof both>["stream"]>>().toEqualTypeOf<never>()
  })

  it("takes Effects for its callbacks: their services join the call, the failures of decisions the streams", () => {
    const call = streamText({
      model,
      prompt: "hi",
      tools: { weather },
      onChunk: ({ chunk }) => log(chunk.type),
      onAbort: ({ reason }) => log(String(reason)),
      onError: ({ error }) => log(String(error)),
      onEnd: ({ text, toolCalls }) => log(`${text} ${toolCalls.length}`),
      onStepEnd: ({ stepNumber }) => log(`${stepNumber}`),
      prepareStep: ({ stepNumber }) =>
        Effect.gen(function*() {
          const { left } = yield* Budget
          if ((yield* left) < stepNumber) return yield* new TooMuch()
          return { activeTools: ["weather"] as const }
        }),
      stopWhen: [({ steps }) => Effect.succeed(steps.length > 3), ai.isStepCount(20)],
      toolApproval: { weather: ({ city }) => Effect.as(log(city), "approved" as const) }
    })
    expectTypeOf<Same<Services<typeof call>, Ai | Scope.Scope | Log | Budget>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
    type Result = Success<typeof call>
    expectTypeOf<Same<Failure<Result["stream"]>, AiError | TooMuch>>().toEqualTypeOf<true>()
    expectTypeOf<Same<Failure<Result["text"]>, AiError | TooMuch>>().toEqualTypeOf<true>()
    expectTypeOf<Same<Failure<Result["consumeStream"]>, AiError | TooMuch>>().toEqualTypeOf<true>()
  })

  it("refuses a notification that can fail", () => {
    // @ts-expect-error an onChunk cannot fail
    void streamText({ model, prompt: "hi", onChunk: () => Effect.fail("no") })
    // @ts-expect-error an onError cannot fail
    void streamText({ model, prompt: "hi", onError: () => new TooMuch() })
  })

  it("lets onError ask for a retry", () => {
    void streamText({ model, prompt: "hi", streamRetries: 1, onError: () => ({ retry: true }) })
    void streamText({ model, prompt: "hi", streamRetries: 1, onError: () => Effect.succeed({ retry: true } as const) })
  })

  it("has the types of its output: complete, partial, elements", () => {
    const Meeting = Schema.Struct({ title: Schema.String, at: Schema.Date })
    const list = streamText({ model, prompt: "hi", output: Output.array({ element: Meeting }) })
    type List = Success<typeof list>
    expectTypeOf<Success<List["output"]>>().toEqualTypeOf<Array<typeof Meeting["Type"]>>()
    expectTypeOf<Success<List["elementStream"]>>().toEqualTypeOf<typeof Meeting["Type"]>()
    expectTypeOf<Success<List["partialOutputStream"]>[number]["at"]>().toEqualTypeOf<string>()
    const one = streamText({ model, prompt: "hi", output: ai.Output.object({ schema: z.object({ a: z.number() }) }) })
    type One = Success<typeof one>
    expectTypeOf<Success<One["output"]>>().toEqualTypeOf<{ a: number }>()
    expectTypeOf<Success<One["partialOutputStream"]>>().toEqualTypeOf<ai.DeepPartial<{ a: number }>>()
    expectTypeOf<Success<One["elementStream"]>>().toEqualTypeOf<never>()
  })

  it("takes smoothStream and transforms of one's own, with and without tools", () => {
    void streamText({ model, prompt: "hi", experimental_transform: ai.smoothStream() })
    void streamText({ model, prompt: "hi", tools: { weather }, experimental_transform: [ai.smoothStream()] })
    void streamText({
      model,
      prompt: "hi",
      tools: { weather },
      experimental_transform: ({ stopStream }) =>
        new TransformStream({
          transform: (part, controller) => part.type === "raw" ? stopStream() : controller.enqueue(part)
        })
    })
  })

  it("rejects options that are none, and mistakes in those that are", () => {
    // @ts-expect-error misspelt
    void streamText({ model, prompt: "hi", maxOutputToken: 3 })
    // @ts-expect-error of the wrong type
    void streamText({ model, prompt: "hi", streamRetries: "2" })
    // @ts-expect-error a prompt or messages are needed
    void streamText({ model })
    // @ts-expect-error no tool of that name
    void streamText({ model, prompt: "hi", tools: { weather }, activeTools: ["wether"] })
    void streamText({ model, prompt: "hi", includeRawChunks: true, timeout: { chunkMs: 10 } })
  })

  it("takes Effects for the callbacks of a UI stream, and needs their services there", () => {
    type Message = UIMessage<{ readonly model: string }>
    const originalMessages: Array<Message> = []
    const program = Effect.gen(function*() {
      const result = yield* streamText({ model, prompt: "hi" })
      const response = result.toUIMessageStreamResponse({
        originalMessages,
        messageMetadata: () => ({ model }),
        onEnd: ({ messages }) => log(`${messages.length} ${messages[0]?.metadata?.model}`),
        onStepEnd: () => Effect.asVoid(Budget)
      })
      expectTypeOf<Same<Services<typeof response>, Log | Budget>>().toEqualTypeOf<true>()
      expectTypeOf<Failure<typeof response>>().toEqualTypeOf<never>()
      const plain = result.toUIMessageStreamResponse({ status: 201, onEnd: async () => {}, keepAliveMs: 10 })
      expectTypeOf<Services<typeof plain>>().toEqualTypeOf<never>()
      const stream = result.toUIMessageStream({ originalMessages, onEnd: () => log("end") })
      expectTypeOf<Success<typeof stream>>().toEqualTypeOf<InferUIMessageChunk<Message>>()
      expectTypeOf<Failure<typeof stream>>().toEqualTypeOf<AiError>()
      expectTypeOf<Same<Services<typeof stream>, Log>>().toEqualTypeOf<true>()
      // @ts-expect-error a callback of a UI stream cannot fail
      void result.toUIMessageStream({ onEnd: () => new TooMuch() })
      return yield* response
    })
    expectTypeOf<Same<Services<typeof program>, Ai | Scope.Scope | Log | Budget>>().toEqualTypeOf<true>()
  })
})
