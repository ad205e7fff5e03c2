import { type Agent, Output, ToolLoopAgent, type ToolSet } from "ai"
import {
  type Ai,
  type AiError,
  defineEffectTool,
  type EffectStore,
  runAgent,
  type RunAgentOptions,
  tool,
  type ToolContext
} from "chamvi-effect"
import { Context, Effect, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import type { Same } from "./support/types.ts"

class Audit extends Context.Service<Audit, { readonly note: (line: string) => Effect.Effect<void> }>()("app/Audit") {}
class Bill extends Context.Service<Bill, { readonly add: (tokens: number) => Effect.Effect<void> }>()("app/Bill") {}

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Failure<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

const makeWeather = tool({
  inputSchema: Schema.Struct({ city: Schema.String }),
  execute: ({ city }) => Effect.succeed(city.length)
})
const makeComment = defineEffectTool({
  inputSchema: Schema.Struct({ issue: Schema.Int }),
  execute: ({ issue }) => Effect.succeed({ id: issue })
})
declare const weather: Success<typeof makeWeather>
declare const comment: Success<typeof makeComment>
const model = "openai/gpt-5"

describe("runAgent", () => {
  it("needs an Ai, fails with AiError, and answers the agent's own result", () => {
    const call = runAgent(new ToolLoopAgent({ model, tools: { weather } }), { prompt: "hi" })
    expectTypeOf<Same<Services<typeof call>, Ai>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
    expectTypeOf<Success<typeof call>["text"]>().toEqualTypeOf<string>()
    const agent = new ToolLoopAgent({ model, output: Output.object({ schema: z.object({ n: z.number() }) }) })
    const typed = runAgent(agent, { messages: [] })
    expectTypeOf<Success<typeof typed>["output"]>().toEqualTypeOf<{ n: number }>()
  })

  it("needs EffectStore and ToolContext exactly when the agent has an effect tool", () => {
    const call = runAgent(new ToolLoopAgent({ model, tools: { weather, comment } }), { prompt: "hi" })
    expectTypeOf<Same<Services<typeof call>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const agent = {} as Agent<never, { comment: typeof comment }>
    const other = runAgent(agent, { prompt: "hi" })
    expectTypeOf<Same<Services<typeof other>, Ai | EffectStore | ToolContext>>().toEqualTypeOf<true>()
    const loose = runAgent({} as Agent<never, ToolSet>, { prompt: "hi" })
    expectTypeOf<Same<Services<typeof loose>, Ai>>().toEqualTypeOf<true>()
  })

  it("needs the services of all callbacks, which know their events", () => {
    const call = runAgent(new ToolLoopAgent({ model, tools: { weather } }), {
      prompt: "hi",
      onStepEnd: ({ text }) => Effect.flatMap(Audit, (audit) => audit.note(text)),
      onEnd: ({ totalUsage }) => Effect.flatMap(Bill, (bill) => bill.add(totalUsage.totalTokens ?? 0)),
      onToolExecutionEnd: ({ toolCall }) => {
        expectTypeOf(toolCall.toolName).toEqualTypeOf<string>()
      }
    })
    expectTypeOf<Same<Services<typeof call>, Ai | Audit | Bill>>().toEqualTypeOf<true>()
  })

  it("takes the agent's call options, and nothing else", () => {
    const agent = new ToolLoopAgent({
      model,
      callOptionsSchema: z.object({ user: z.string() }),
      prepareCall: ({ options: _, ...rest }) => rest
    })
    void runAgent(agent, { prompt: "hi", options: { user: "ada" } })
    // @ts-expect-error the agent needs its options
    void runAgent(agent, { prompt: "hi" })
    const plain = new ToolLoopAgent({ model })
    // @ts-expect-error a prompt or messages
    void runAgent(plain, {})
    // @ts-expect-error not an option
    void runAgent(plain, { prompt: "hi", promt: "hi" })
    type OnEnd = NonNullable<RunAgentOptions<typeof plain>["onEnd"]>
    expectTypeOf<() => Effect.Effect<void>>().toExtend<OnEnd>()
    expectTypeOf<() => Effect.Effect<void, string>>().not.toExtend<OnEnd>()
  })
})
