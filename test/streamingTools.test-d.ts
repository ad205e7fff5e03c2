// mistakes are made here on purpose: @effect-diagnostics missingEffectError:off
import { type InferToolOutput, type ToolSet } from "ai"
import { Context, Effect, type Option, Schema, type Scope, Stream } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import { defineEffectTool, EffectResolution, generateText, tool } from "../src/index.ts"

class Writer extends Context.Service<Writer, { readonly words: Stream.Stream<string> }>()("test/Writer") {}
class Finder extends Context.Service<Finder, { readonly find: (key: string) => Effect.Effect<string | undefined> }>()(
  "test/Finder"
) {}

type Made<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never
type Yielded<T> = Made<T> extends { execute: (...args: never) => AsyncIterable<infer O> } ? O : never

const inputSchema = Schema.Struct({ topic: Schema.String, due: Schema.Date })

describe("tool that streams", () => {
  it("infers values, services and decoded input from a Stream", () => {
    const made = tool({
      streaming: true,
      inputSchema,
      execute: ({ due, topic }, { toolCallId }) => {
        expectTypeOf(due).toEqualTypeOf<Date>()
        expectTypeOf(toolCallId).toEqualTypeOf<string>()
        return Stream.unwrap(Effect.map(Writer, (writer) => Stream.map(writer.words, (word) => ({ topic, word }))))
      },
      toModelOutput: ({ output }) => {
        expectTypeOf(output).toEqualTypeOf<{ topic: string; word: string }>()
        return { type: "text", value: output.word }
      }
    })
    expectTypeOf<Yielded<typeof made>>().toEqualTypeOf<{ topic: string; word: string }>()
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<Writer>()
  })

  it("widens literal values", () => {
    const made = tool({ streaming: true, inputSchema, execute: () => Stream.succeed("a") })
    expectTypeOf<Yielded<typeof made>>().toEqualTypeOf<string>()
    const numbers = tool({
      streaming: true,
      inputSchema,
      execute: ({ topic }) => Stream.map(Stream.make(1, 2), () => ({ n: topic.length, s: "a" }))
    })
    expectTypeOf<Yielded<typeof numbers>>().toEqualTypeOf<{ n: number; s: string }>()
  })

  it("has the values as the AI SDK's output", () => {
    const made = tool({ streaming: true, inputSchema, execute: ({ topic }) => Stream.make(topic.length) })
    expectTypeOf<InferToolOutput<Made<typeof made>>>().toEqualTypeOf<number>()
    expectTypeOf<{ made: Made<typeof made> }>().toExtend<ToolSet>()
    void Effect.gen(function*() {
      const result = yield* generateText({ prompt: "go", tools: { made: yield* made } })
      const output = result.toolResults[0]!
      if (output.dynamic !== true) expectTypeOf(output.output).toEqualTypeOf<number>()
    })
  })

  it("leaves the Scope of the call to the call", () => {
    const made = tool({
      streaming: true,
      inputSchema,
      execute: () => Stream.fromEffect(Effect.as(Effect.addFinalizer(() => Effect.void), 1))
    })
    expectTypeOf<Extract<Services<typeof made>, Scope.Scope>>().toEqualTypeOf<never>()
  })

  it("ties the flag and the Stream", () => {
    void tool({
      inputSchema,
      // @ts-expect-error a Stream needs streaming: true
      execute: () => Stream.make(1)
    })
    void tool({
      inputSchema,
      // @ts-expect-error a Stream needs streaming: true
      execute: ({ topic }) => Stream.make(topic)
    })
    void tool({
      streaming: false,
      inputSchema,
      // @ts-expect-error a Stream needs streaming: true
      execute: () => Stream.make(1)
    })
    void tool({
      streaming: true,
      inputSchema,
      // @ts-expect-error streaming: true needs a Stream
      execute: () => Effect.succeed(1)
    })
    void tool({
      streaming: true,
      inputSchema,
      // @ts-expect-error streaming: true needs a Stream
      execute: ({ topic }) => Effect.succeed(topic)
    })
    void tool({
      streaming: true,
      inputSchema,
      // @ts-expect-error an Effect of a Stream is none: Stream.unwrap
      execute: () => Effect.succeed(Stream.make(1))
    })
    const flag = Boolean(inputSchema)
    void tool({
      streaming: flag,
      inputSchema,
      // @ts-expect-error whether the tool streams is known when it is compiled
      execute: () => Effect.succeed(1)
    })
    void tool({ streaming: false, inputSchema, execute: () => Effect.succeed(1) })
  })

  it("asks for an outputSchema where JSON cannot carry a value", () => {
    const of = <T>(): Stream.Stream<T> => Stream.die("types only")
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ streaming: true, inputSchema, execute: () => of<Date>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ streaming: true, inputSchema, execute: () => of<Option.Option<string>>() })
    void tool({
      streaming: true,
      inputSchema,
      // @ts-expect-error Zod has no encoder
      outputSchema: z.object({ at: z.date() }),
      execute: () => of<{ at: Date }>()
    })
    const made = tool({
      streaming: true,
      inputSchema,
      outputSchema: Schema.Struct({ at: Schema.Date }),
      execute: () => Stream.make({ at: new Date(0) }),
      toModelOutput: ({ output }) => ({ type: "text", value: output.at.toISOString() })
    })
    expectTypeOf<Yielded<typeof made>>().toEqualTypeOf<{ readonly at: string }>()
  })

  it("reports a mistake where it is made", () => {
    void tool({
      streaming: true,
      inputSchema,
      // @ts-expect-error there is no b
      execute: ({ b: _b }) => Stream.make(1)
    })
    void tool({
      streaming: true,
      inputSchema,
      outputSchema: Schema.Struct({ at: Schema.Date }),
      // @ts-expect-error the values have no at
      execute: () => Stream.make({ id: 1 })
    })
    void tool({
      streaming: true,
      inputSchema,
      execute: ({ topic }) => Stream.make(topic.length),
      // @ts-expect-error a number is no text
      toModelOutput: ({ output }) => ({ type: "text", value: output })
    })
    void tool({
      streaming: true,
      inputSchema,
      execute: ({ topic }) => Stream.make(topic.length),
      // @ts-expect-error misspelt
      descripton: "x"
    })
  })
})

describe("defineEffectTool that streams", () => {
  it("infers values and services, and types alreadyApplied by the values", () => {
    const made = defineEffectTool({
      streaming: true,
      inputSchema,
      effectKey: ({ topic }, ctx) => `${ctx.run.runId}:${topic}`,
      alreadyApplied: (key) => Effect.flatMap(Finder, (finder) => finder.find(key)),
      execute: ({ topic }, { effectKey }) =>
        Stream.unwrap(Effect.map(Writer, ({ words }) => Stream.map(words, (word) => `${topic}${word}${effectKey}`))),
      toModelOutput: ({ output }) => ({ type: "text", value: output.toUpperCase() })
    })
    expectTypeOf<Yielded<typeof made>>().toEqualTypeOf<string>()
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<Writer | Finder>()
    expectTypeOf<InferToolOutput<Made<typeof made>>>().toEqualTypeOf<string>()
    expectTypeOf<{ made: Made<typeof made> }>().toExtend<ToolSet>()
    void defineEffectTool({
      streaming: true,
      inputSchema,
      alreadyApplied: () => EffectResolution.applied({ id: 1 }),
      execute: () => Stream.succeed({ id: 1 })
    })
    void defineEffectTool({
      streaming: true,
      inputSchema,
      execute: ({ topic }) => Stream.make({ id: topic.length, url: "" }),
      // @ts-expect-error url is missing
      alreadyApplied: (key) => Effect.succeed({ id: key.length })
    })
    void defineEffectTool({
      streaming: true,
      inputSchema,
      execute: ({ topic }) => Stream.make({ id: topic.length, url: "" }),
      // @ts-expect-error null is no result
      alreadyApplied: (_key) => Effect.succeed(null)
    })
  })

  it("ties the flag and the Stream", () => {
    void defineEffectTool({
      inputSchema,
      // @ts-expect-error a Stream needs streaming: true
      execute: ({ topic }) => Stream.make(topic)
    })
    void defineEffectTool({
      streaming: true,
      inputSchema,
      // @ts-expect-error streaming: true needs a Stream
      execute: ({ topic }) => Effect.succeed(topic)
    })
  })

  it("asks for an outputSchema where JSON cannot carry a value", () => {
    // @ts-expect-error Property 'outputSchema' is missing
    void defineEffectTool({ streaming: true, inputSchema, execute: () => Stream.make(new Date(0)) })
    const made = defineEffectTool({
      streaming: true,
      inputSchema,
      outputSchema: Schema.Struct({ at: Schema.Date }),
      alreadyApplied: () => Effect.succeed({ at: new Date(0) }),
      execute: () => Stream.make({ at: new Date(0) })
    })
    expectTypeOf<Yielded<typeof made>>().toEqualTypeOf<{ readonly at: string }>()
  })
})
