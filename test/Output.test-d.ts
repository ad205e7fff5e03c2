import type { DeepPartial, InferGenerateOutput, InferStreamOutput, JSONValue, OutputInterface } from "ai"
import { Context, type Effect, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import { generateText } from "../src/GenerateText.ts"
import { Output } from "../src/index.ts"

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Element<T> = T extends OutputInterface<infer _O, infer _P, infer E> ? E : never

const model = "openai/gpt-5"
const Meeting = Schema.Struct({ title: Schema.String, at: Schema.Date })

describe("Output", () => {
  it("types the output of a call as the decoded value", () => {
    const call = generateText({ model, prompt: "hi", output: Output.object({ schema: Meeting, name: "meeting" }) })
    expectTypeOf<Success<typeof call>["output"]>().toEqualTypeOf<{ readonly title: string; readonly at: Date }>()
    const list = generateText({ model, prompt: "hi", output: Output.array({ element: Meeting, maxItems: 3 }) })
    expectTypeOf<Success<typeof list>["output"]>().toEqualTypeOf<Array<{ readonly title: string; readonly at: Date }>>()
    const one = generateText({ model, prompt: "hi", output: Output.choice({ options: ["bug", "idea"] }) })
    expectTypeOf<Success<typeof one>["output"]>().toEqualTypeOf<"bug" | "idea">()
    const any = generateText({ model, prompt: "hi", output: Output.json() })
    expectTypeOf<Success<typeof any>["output"]>().toEqualTypeOf<JSONValue>()
    const text = generateText({ model, prompt: "hi", output: Output.text() })
    expectTypeOf<Success<typeof text>["output"]>().toEqualTypeOf<string>()
  })

  it("types partial outputs in their JSON form, and elements as decoded values", () => {
    const object = Output.object({ schema: Meeting })
    type Json = { readonly title: string; readonly at: string }
    expectTypeOf<InferStreamOutput<typeof object>>().toEqualTypeOf<DeepPartial<Json>>()
    const array = Output.array({ element: Meeting })
    expectTypeOf<InferStreamOutput<typeof array>>().toEqualTypeOf<Array<Json>>()
    expectTypeOf<Element<typeof array>>().toEqualTypeOf<{ readonly title: string; readonly at: Date }>()
  })

  it("takes schemas of other libraries, classes and unions", () => {
    const zod = Output.object({ schema: z.object({ n: z.string().transform(Number) }) })
    expectTypeOf<InferGenerateOutput<typeof zod>>().toEqualTypeOf<{ n: number }>()
    class Point extends Schema.Class<Point>("Point")({ x: Schema.Finite }) {}
    const point = Output.object({ schema: Point })
    expectTypeOf<InferGenerateOutput<typeof point>>().toEqualTypeOf<Point>()
    const union = Output.array({ element: Schema.Union([Point, Schema.String]) })
    expectTypeOf<InferGenerateOutput<typeof union>>().toEqualTypeOf<Array<Point | string>>()
  })

  it("refuses schemas whose decoding needs services, and what is no schema", () => {
    class Clock extends Context.Service<Clock, { readonly now: number }>()("Clock") {}
    const needing = {} as Schema.Codec<number, string, Clock>
    // @ts-expect-error decoding needs Clock
    void Output.object({ schema: needing })
    // @ts-expect-error decoding needs Clock
    void Output.array({ element: needing })
    // @ts-expect-error no schema
    void Output.object({ schema: 1 })
    // @ts-expect-error a number is no choice
    void Output.choice({ options: [1] })
  })
})
