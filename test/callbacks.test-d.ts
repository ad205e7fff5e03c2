// mistakes are made here on purpose: @effect-diagnostics missingEffectError:off
import { hasToolCall, isStepCount } from "ai"
import { Context, Data, Effect, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import type { Ai } from "../src/Ai.ts"
import type { AiError } from "../src/AiError.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import type { Same } from "./support/types.ts"

class Log extends Context.Service<Log, { readonly add: (line: string) => Effect.Effect<void> }>()("Log") {}
class Budget extends Context.Service<Budget, { readonly left: Effect.Effect<number, OverBudget> }>()("Budget") {}
class Rules extends Context.Service<Rules, { readonly allows: (city: string) => Effect.Effect<boolean, NoRules> }>()(
  "Rules"
) {}
class OverBudget extends Data.TaggedError("OverBudget")<{}> {}
class NoRules extends Data.TaggedError("NoRules")<{}> {}

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Failure<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

const makeWeather = tool({
  inputSchema: Schema.Struct({ city: Schema.String, at: Schema.Date }),
  execute: ({ city }) => Effect.succeed(city.length)
})
declare const weather: Success<typeof makeWeather>
const model = "openai/gpt-5"
const log = (line: string) => Effect.flatMap(Log, (service) => service.add(line))
const left = Effect.flatMap(Budget, (budget) => budget.left)
const allows = (city: string) => Effect.flatMap(Rules, (rules) => rules.allows(city))

describe("callback options", () => {
  it("know what they are called with", () => {
    void generateText({
      model,
      prompt: "hi",
      tools: { weather },
      runtimeContext: { tenant: 1 },
      onStart: ({ callId, runtimeContext }) => {
        expectTypeOf(callId).toEqualTypeOf<string>()
        expectTypeOf(runtimeContext).toEqualTypeOf<{ tenant: number }>()
        return log(callId)
      },
      onStepEnd: (step) => {
        expectTypeOf(step.toolResults[0]!.toolName).toExtend<string>()
        expectTypeOf(step.runtimeContext).toEqualTypeOf<{ tenant: number }>()
        return log(step.text)
      },
      onToolExecutionEnd: ({ toolCall, toolOutput }) => Effect.asVoid(log(toolCall.toolName + toolOutput.type)),
      prepareStep: ({ stepNumber, runtimeContext }) => {
        expectTypeOf(stepNumber).toEqualTypeOf<number>()
        expectTypeOf(runtimeContext).toEqualTypeOf<{ tenant: number }>()
        return Effect.as(left, { activeTools: ["weather"], runtimeContext: { tenant: 2 } })
      },
      stopWhen: [isStepCount(2), ({ steps }) => Effect.as(left, steps.length > 3), hasToolCall("weather")],
      toolApproval: {
        weather: ({ city, at }, { runtimeContext }) => {
          expectTypeOf(at).toEqualTypeOf<string>()
          expectTypeOf(runtimeContext).toEqualTypeOf<{ tenant: number }>()
          return Effect.map(allows(city), (allowed) => allowed ? "approved" : { type: "denied", reason: "rules" })
        }
      },
      experimental_refineToolInput: {
        weather: (input) => Effect.succeed({ ...input, city: input.city.trim() })
      },
      repairToolCall: ({ toolCall, error }) => Effect.as(log(error.message), { ...toolCall, input: "{}" })
    })
  })

  it("bring all their services together", () => {
    const call = generateText({
      model,
      prompt: "hi",
      tools: { weather },
      onStart: () => log("start"),
      prepareStep: () => Effect.as(Effect.orDie(left), undefined),
      toolApproval: { weather: ({ city }) => Effect.as(Effect.orDie(allows(city)), "approved") }
    })
    expectTypeOf<Same<Services<typeof call>, Ai | Log | Budget | Rules>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
    const deprecated = generateText({
      model,
      prompt: "hi",
      onFinish: () => log("end"),
      experimental_onStart: () => log("")
    })
    expectTypeOf<Same<Services<typeof deprecated>, Ai | Log>>().toEqualTypeOf<true>()
    const plain = generateText({
      model,
      prompt: "hi",
      onStart: () => {},
      onEnd: async () => {},
      stopWhen: isStepCount(2)
    })
    expectTypeOf<Same<Services<typeof plain>, Ai>>().toEqualTypeOf<true>()
    const scoped = generateText({
      model,
      prompt: "hi",
      onStart: () => Effect.acquireRelease(log("open"), () => Effect.void)
    })
    expectTypeOf<Same<Services<typeof scoped>, Ai | Log>>().toEqualTypeOf<true>()
    const none = generateText({
      model,
      prompt: "hi",
      onStart: () => Effect.callback<void>((resume) => resume(Effect.void)),
      onEnd: Effect.fn(function*() {
        yield* log("end")
      })
    })
    expectTypeOf<Same<Services<typeof none>, Ai | Log>>().toEqualTypeOf<true>()
    const untyped = generateText({
      model,
      prompt: "hi",
      onStart: () => Effect.callback((resume) => resume(Effect.void))
    })
    expectTypeOf<Same<Services<typeof untyped>, Ai>>().toEqualTypeOf<true>()
    const optional = {} as { readonly onStart?: () => Effect.Effect<void, never, Log> }
    const maybe = generateText({ model, prompt: "hi", ...optional })
    expectTypeOf<Same<Services<typeof maybe>, Ai | Log>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof maybe>>().toEqualTypeOf<AiError>()
  })

  it("add the errors of decisions to those of the call", () => {
    const call = generateText({
      model,
      prompt: "hi",
      tools: { weather },
      prepareStep: () => Effect.as(left, {}),
      stopWhen: ({ steps }) => Effect.as(Effect.fail("stop" as const), steps.length > 1),
      toolApproval: ({ toolCall }) => Effect.as(allows(toolCall.toolName), "user-approval")
    })
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError | OverBudget | NoRules | "stop">()
    expectTypeOf<Same<Services<typeof call>, Ai | Budget | Rules>>().toEqualTypeOf<true>()
  })

  it("that only tell what happens cannot fail", () => {
    void generateText({
      model,
      prompt: "hi",
      onStart: () => log("start"),
      // @ts-expect-error it can fail
      onStepStart: () => left
    })
    void generateText({
      model,
      prompt: "hi",
      // @ts-expect-error it can fail
      onEnd: () => Effect.fail("no")
    })
  })

  it("answer what the AI SDK wants", () => {
    void generateText({
      model,
      prompt: "hi",
      // @ts-expect-error not a boolean
      stopWhen: () => Effect.succeed("yes")
    })
    void generateText({
      model,
      prompt: "hi",
      tools: { weather },
      // @ts-expect-error no tool of the call
      prepareStep: () => Effect.succeed({ activeTools: ["water"] })
    })
    void generateText({
      model,
      prompt: "hi",
      tools: { weather },
      // @ts-expect-error no status
      toolApproval: { weather: () => Effect.succeed("maybe") }
    })
  })

  it("exist by their right names only", () => {
    // @ts-expect-error misspelt
    void generateText({ model, prompt: "hi", onStepStop: () => log("stop") })
  })

  it("keep the services of tools that are there on a condition, and of their own", () => {
    const call = generateText({
      model,
      prompt: "hi",
      tools: Math.random() > 2 ? { weather } : {},
      onStepEnd: (step) => log(step.text)
    })
    expectTypeOf<Same<Services<typeof call>, Ai | Log>>().toEqualTypeOf<true>()
  })

  it("of tools bring their services to the tool, and the errors of needsApproval to the call", () => {
    const make = tool({
      inputSchema: Schema.Struct({ city: Schema.String, at: Schema.Date }),
      contextSchema: Schema.Struct({ tenant: Schema.String }),
      execute: ({ city }) => Effect.succeed(city),
      needsApproval: ({ at, city }, { context }) => {
        expectTypeOf(at).toEqualTypeOf<string>()
        expectTypeOf(context.tenant).toEqualTypeOf<string>()
        return allows(city)
      },
      onInputDelta: ({ inputTextDelta }) => log(inputTextDelta)
    })
    expectTypeOf<Same<Services<typeof make>, Rules | Log>>().toEqualTypeOf<true>()
    const guarded = {} as Success<typeof make>
    const call = generateText({
      model,
      prompt: "hi",
      tools: { guarded, weather },
      toolsContext: { guarded: { tenant: "1" } },
      prepareStep: () => Effect.as(left, {})
    })
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError | NoRules | OverBudget>()
    expectTypeOf<Same<Services<typeof call>, Ai | Budget>>().toEqualTypeOf<true>()
    const effect = defineEffectTool({
      inputSchema: Schema.Struct({ city: Schema.String }),
      execute: ({ city }) => Effect.succeed(city),
      needsApproval: ({ city }) => allows(city)
    })
    expectTypeOf<Same<Services<typeof effect>, Rules>>().toEqualTypeOf<true>()
    const other = generateText({ model, prompt: "hi", tools: { effect: {} as Success<typeof effect> } })
    expectTypeOf<Failure<typeof other>>().toEqualTypeOf<AiError | NoRules>()
    const sure = tool({
      inputSchema: Schema.Struct({}),
      execute: () => Effect.succeed(1),
      needsApproval: () => true
    })
    const plain = generateText({ model, prompt: "hi", tools: { sure: {} as Success<typeof sure> } })
    expectTypeOf<Failure<typeof plain>>().toEqualTypeOf<AiError>()
    void tool({
      inputSchema: Schema.Struct({}),
      execute: () => Effect.succeed(1),
      // @ts-expect-error not a boolean
      needsApproval: () => Effect.succeed("yes")
    })
  })

  it("stand beside toolsContext, which is asked for where tools have a contextSchema", () => {
    const make = tool({
      inputSchema: Schema.Struct({}),
      contextSchema: Schema.Struct({ id: Schema.String }),
      execute: (_, { context }) => Effect.succeed(context.id)
    })
    const user = {} as Success<typeof make>
    void generateText({
      model,
      prompt: "hi",
      tools: { user },
      toolsContext: { user: { id: "1" } },
      prepareStep: ({ toolsContext }) => {
        expectTypeOf(toolsContext.user.id).toEqualTypeOf<string>()
        return Effect.as(left, { toolsContext: { user: { id: "2" } } })
      }
    })
    // @ts-expect-error toolsContext is missing
    void generateText({ model, prompt: "hi", tools: { user }, onStart: () => log("start") })
  })
})
