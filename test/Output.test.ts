/** What `Output` makes of what a model writes: decoded values, JSON on the way, and failures that keep the text to themselves. */
import { expect, it } from "@effect/vitest"
import { NoObjectGeneratedError, type OutputInterface, simulateReadableStream, streamText } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { Effect, Option, Schema } from "effect"
import { inspect } from "node:util"
import { describe } from "vitest"
import { z } from "zod"
import { Ai } from "../src/Ai.ts"
import type { AiError } from "../src/AiError.ts"
import { generateText } from "../src/GenerateText.ts"
import * as Output from "../src/Output.ts"
import { says, scripted } from "./support/model.ts"

const Meeting = Schema.Struct({ title: Schema.String, at: Schema.Date, place: Schema.Option(Schema.String) })
const launch = { title: "Launch", at: "2030-01-02T00:00:00.000Z", place: { _tag: "Some", value: "Oslo" } }
const decoded = { title: "Launch", at: new Date("2030-01-02T00:00:00.000Z"), place: Option.some("Oslo") }

const formatOf = (model: MockLanguageModelV4) => {
  const format = model.doGenerateCalls[0]!.responseFormat
  return format?.type === "json" ? format : undefined
}

/** A model that streams the text in small pieces. */
const streaming = (text: string) =>
  new MockLanguageModelV4({
    doStream: async () => ({
      stream: simulateReadableStream({
        chunks: [
          { type: "stream-start" as const, warnings: [] },
          { type: "text-start" as const, id: "1" },
          ...text.match(/.{1,7}/g)!.map((delta) => ({ type: "text-delta" as const, id: "1", delta })),
          { type: "text-end" as const, id: "1" },
          {
            type: "finish" as const,
            finishReason: { unified: "stop" as const, raw: undefined },
            usage: says("").usage
          }
        ],
        chunkDelayInMs: null,
        initialDelayInMs: null
      })
    })
  })

const collect = async <A>(values: AsyncIterable<A>): Promise<Array<A>> => {
  const all: Array<A> = []
  for await (const value of values) all.push(value)
  return all
}

describe("Output", () => {
  it.effect("decodes an object, and describes it to the provider", () =>
    Effect.gen(function*() {
      const model = scripted(says(JSON.stringify(launch)))
      const { output, text } = yield* generateText({
        model,
        prompt: "When?",
        output: Output.object({ schema: Meeting, name: "meeting", description: "The next meeting" })
      })
      expect(output).toEqual(decoded)
      expect(text).toBe(JSON.stringify(launch))
      expect(formatOf(model)).toMatchObject({
        name: "meeting",
        description: "The next meeting",
        schema: { type: "object", properties: { title: { type: "string" }, at: { type: "string" } } }
      })
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("decodes the elements of a list, within its bounds", () =>
    Effect.gen(function*() {
      const model = scripted(says(JSON.stringify({ elements: [launch, launch] })))
      const list = (maxItems: number) =>
        generateText({ model, prompt: "When?", output: Output.array({ element: Meeting, minItems: 1, maxItems }) })
      expect((yield* list(2)).output).toEqual([decoded, decoded])
      expect(formatOf(model)?.schema).toMatchObject({ properties: { elements: { minItems: 1, maxItems: 2 } } })
      expect((yield* Effect.flip(list(1))).reason).toBe("NoObjectGeneratedError")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("gives choices, any JSON, and texts", () =>
    Effect.gen(function*() {
      const choice = yield* generateText({
        model: scripted(says(`{"result":"bug"}`)),
        prompt: "?",
        output: Output.choice({ options: ["bug", "idea"] })
      })
      expect(choice.output).toBe("bug")
      const json = yield* generateText({ model: scripted(says(`[1,null]`)), prompt: "?", output: Output.json() })
      expect(json.output).toEqual([1, null])
      const text = yield* generateText({ model: scripted(says("hi")), prompt: "?", output: Output.text() })
      expect(text.output).toBe("hi")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("takes schemas of other libraries, with their transformations applied once", () =>
    Effect.gen(function*() {
      const schema = z.object({ n: z.string().transform((text) => `${text}!`) })
      const object = yield* generateText({
        model: scripted(says(`{"n":"1"}`)),
        prompt: "?",
        output: Output.object({ schema })
      })
      expect(object.output).toEqual({ n: "1!" })
      const list = yield* generateText({
        model: scripted(says(`{"elements":[{"n":"1"}]}`)),
        prompt: "?",
        output: Output.array({ element: schema })
      })
      expect(list.output).toEqual([{ n: "1!" }])
    }).pipe(Effect.provide(Ai.layer)))

  for (
    const [what, written, output] of [
      ["no JSON", "secret words", Output.object({ schema: Meeting })],
      ["an object that its schema refuses", `{"title":"secret words"}`, Output.object({ schema: Meeting })],
      ["an element that its schema refuses", `{"elements":["secret words"]}`, Output.array({ element: Meeting })],
      ["no list", `{"secret words":1}`, Output.array({ element: Meeting })],
      ["none of the choices", `{"result":"secret words"}`, Output.choice({ options: ["bug"] })]
    ] as const
  ) {
    it.effect(`fails where the model writes ${what}, and keeps what it wrote out of the message`, () =>
      Effect.gen(function*() {
        const error: AiError = yield* Effect.flip(
          generateText({ model: scripted(says(written)), prompt: "?", output: output as OutputInterface })
        )
        expect(error.reason).toBe("NoObjectGeneratedError")
        expect(NoObjectGeneratedError.isInstance(error.cause) && error.cause.text).toBe(written)
        expect(error.message).toMatch(/^NoObjectGeneratedError: No object generated/)
        for (const shown of [error.message, String(error), JSON.stringify(error), inspect(error)]) {
          expect(shown).not.toContain("secret words")
        }
      }).pipe(Effect.provide(Ai.layer)))
  }

  it.effect("streams partial outputs as JSON, and elements decoded", () =>
    Effect.promise(async () => {
      const object = streamText({
        model: streaming(JSON.stringify(launch)),
        prompt: "When?",
        output: Output.object({ schema: Meeting })
      })
      const partials = await collect(object.partialOutputStream)
      expect(partials.at(-1)).toEqual(launch)
      expect(await object.output).toEqual(decoded)
      const array = streamText({
        model: streaming(JSON.stringify({ elements: [launch, launch] })),
        prompt: "When?",
        output: Output.array({ element: Meeting })
      })
      const [lists, elements] = await Promise.all([collect(array.partialOutputStream), collect(array.elementStream)])
      expect(lists.at(-1)).toEqual([launch, launch])
      expect(elements).toEqual([decoded, decoded])
      expect(await array.output).toEqual([decoded, decoded])
    }))
})
