import { jsonSchema } from "ai"
import { z } from "zod"
import { Context, Effect, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { EffectResolution } from "../src/EffectResolution.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { ToolContext } from "../src/ToolContext.ts"

class GitHub
  extends Context.Service<GitHub, { readonly post: (body: string) => Effect.Effect<{ readonly id: number }> }>()(
    "test/GitHub"
  )
{}
class Search extends Context.Service<Search, { readonly find: (text: string) => Effect.Effect<number | undefined> }>()(
  "test/Search"
) {}
class Keys extends Context.Service<Keys, string>()("test/Keys") {}

type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never
type Output<T> = T extends Effect.Effect<{ execute: (...args: never) => PromiseLike<infer O> }, never, unknown> ? O
  : never

const inputSchema = Schema.Struct({ issue: Schema.Int, body: Schema.String, due: Schema.Date })

describe("defineEffectTool", () => {
  it("requires the services of its hooks, without ToolContext and Scope", () => {
    const made = defineEffectTool({
      inputSchema,
      effectKey: ({ issue }) => Effect.map(Keys, (prefix) => `${prefix}:${issue}`),
      alreadyApplied: (key) => Effect.flatMap(Search, (search) => search.find(key)),
      execute: ({ body }, { effectKey }) =>
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Effect.void)
          yield* ToolContext
          const posted = yield* (yield* GitHub).post(`${body} ${effectKey}`)
          return posted.id
        })
    })
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<GitHub | Search | Keys>()
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<number>()
  })

  it("gives hooks decoded input, the run, and the call's options", () => {
    void defineEffectTool({
      inputSchema,
      effectKey: (input, ctx, options) => {
        expectTypeOf(input.due).toEqualTypeOf<Date>()
        expectTypeOf(ctx.run.runId).toEqualTypeOf<string>()
        expectTypeOf(options.toolCallId).toEqualTypeOf<string>()
        return `${ctx.run.runId}:${input.issue}`
      },
      execute: (_, { context, effectKey, toolCallId }) => {
        expectTypeOf(context.run.signal).toEqualTypeOf<AbortSignal>()
        expectTypeOf(effectKey).toEqualTypeOf<string>()
        expectTypeOf(toolCallId).toEqualTypeOf<string>()
        return Effect.void
      }
    })
  })

  it("puts the tool's own context under the run", () => {
    void defineEffectTool({
      inputSchema,
      contextSchema: Schema.Struct({ user: Schema.String }),
      effectKey: (_, ctx) => `${ctx.run.runId}:${ctx.user}`,
      alreadyApplied: (_, __, ctx) => {
        expectTypeOf(ctx.user).toEqualTypeOf<string>()
        return undefined
      },
      execute: (_, { context }) => Effect.succeed(`${context.user} ${context.run.runId}`)
    })
    void defineEffectTool({
      inputSchema,
      // @ts-expect-error there is no user without a contextSchema
      effectKey: (_, ctx) => ctx.user,
      execute: () => Effect.void
    })
  })

  it("reserves run, state and artifacts in a contextSchema", () => {
    void defineEffectTool({
      inputSchema,
      // @ts-expect-error run is reserved
      contextSchema: Schema.Struct({ run: Schema.String }),
      execute: () => Effect.void
    })
  })

  it("takes from alreadyApplied the result of execute, undefined, or a resolution", () => {
    const execute = () => Effect.succeed({ id: 1, url: "" })
    void defineEffectTool({ inputSchema, execute, alreadyApplied: () => undefined })
    void defineEffectTool({ inputSchema, execute, alreadyApplied: () => ({ id: 1, url: "x" }) })
    void defineEffectTool({ inputSchema, execute, alreadyApplied: () => Effect.succeed({ id: 1, url: "x" }) })
    void defineEffectTool({ inputSchema, execute, alreadyApplied: () => Effect.undefined })
    void defineEffectTool({ inputSchema, execute, alreadyApplied: () => EffectResolution.notApplied })
    void defineEffectTool({
      inputSchema,
      execute,
      alreadyApplied: (key) =>
        Effect.succeed(key === "" ? EffectResolution.unknown : EffectResolution.applied({ id: 1, url: "x" }))
    })
    void defineEffectTool({
      inputSchema,
      execute: ({ issue }) => Effect.succeed({ id: issue, url: "" }),
      // @ts-expect-error url is missing
      alreadyApplied: (key) => Effect.succeed({ id: key.length })
    })
    void defineEffectTool({
      inputSchema,
      execute: ({ issue }) => Effect.succeed({ id: issue, url: "" }),
      // @ts-expect-error not the result
      alreadyApplied: () => "yes"
    })
    void defineEffectTool({
      inputSchema,
      execute: ({ issue }) => Effect.succeed({ id: issue, url: "" }),
      // @ts-expect-error a resolution with another result
      alreadyApplied: () => EffectResolution.applied("yes")
    })
  })

  it("takes null from alreadyApplied only where the result may be null", () => {
    void defineEffectTool({
      inputSchema,
      execute: ({ body }) => Effect.succeed<string | null>(body),
      alreadyApplied: () => null
    })
    void defineEffectTool({
      inputSchema,
      execute: ({ body }) => Effect.succeed(body),
      // @ts-expect-error null is no result
      alreadyApplied: () => null
    })
    void defineEffectTool({
      inputSchema,
      execute: ({ body }) => Effect.succeed(body),
      // @ts-expect-error null is no result
      alreadyApplied: (_key) => Effect.succeed(null)
    })
  })

  it("asks for an outputSchema where JSON cannot carry the result", () => {
    // @ts-expect-error Property 'outputSchema' is missing
    void defineEffectTool({ inputSchema, execute: () => Effect.succeed(new Date(0)) })
    const made = defineEffectTool({
      inputSchema,
      outputSchema: Schema.Struct({ at: Schema.Date }),
      alreadyApplied: () => Effect.succeed({ at: new Date(0) }),
      execute: () => Effect.succeed({ at: new Date(0) })
    })
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<{ readonly at: string }>()
  })

  it("requires execute, and reports a mistake where it is made", () => {
    // @ts-expect-error execute is missing
    void defineEffectTool({ inputSchema })
    void defineEffectTool({
      inputSchema,
      // @ts-expect-error a key is a text
      effectKey: ({ issue }) => issue,
      execute: () => Effect.void
    })
    void defineEffectTool({
      inputSchema,
      execute: () => Effect.void,
      // @ts-expect-error no such answer
      whenInDoubt: "maybe"
    })
  })

  it("takes a result that is not JSON with an Effect Schema only", () => {
    void defineEffectTool({
      inputSchema: Schema.Struct({}),
      // @ts-expect-error Zod has no encoder
      outputSchema: z.object({ at: z.date() }),
      execute: () => Effect.succeed({ at: new Date(0) })
    })
    void defineEffectTool({
      inputSchema: Schema.Struct({}),
      // @ts-expect-error a JSON Schema has no encoder
      outputSchema: jsonSchema<{ at: Date }>({ type: "object" }),
      execute: () => Effect.succeed({ at: new Date(0) })
    })
    void defineEffectTool({
      inputSchema: Schema.Struct({}),
      outputSchema: z.object({ n: z.number() }),
      execute: () => Effect.succeed({ n: 1 })
    })
  })
})
