import { assert, describe, it } from "@effect/vitest"
import { generateText as sdkGenerateText, jsonSchema, tool as sdkTool } from "ai"
import { Duration, Effect, Option, Schema, SchemaGetter, SchemaTransformation } from "effect"
import { z } from "zod"
import type { AnySchema } from "../src/ai/AnySchema.ts"
import { Ai } from "../src/Ai.ts"
import { effectSchema } from "../src/EffectSchema.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, scripted } from "./support/model.ts"

const describedBy = (schema: Schema.ConstraintCodec<unknown, unknown, never, unknown>) =>
  effectSchema(schema).jsonSchema as Record<string, unknown>

const propertiesOf = (fields: Schema.Struct.Fields) =>
  describedBy(Schema.Struct(fields) as unknown as Schema.Codec<unknown>)["properties"] as Record<string, unknown>

class Person extends Schema.Class<Person>("Person")(
  { name: Schema.String, born: Schema.Date },
  { description: "Somebody" }
) {
  get greeting() {
    return `Hello, ${this.name}`
  }
}

interface Category {
  readonly name: string
  readonly children: ReadonlyArray<Category>
}
const Category: Schema.Codec<Category> = Schema.Struct({
  name: Schema.String,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Category> => Category))
}).annotate({ identifier: "Category", description: "A category" })

describe("effectSchema", () => {
  describe("the JSON Schema that providers get", () => {
    it("is a closed object with its properties", () => {
      assert.deepStrictEqual(
        describedBy(Schema.Struct({ city: Schema.String, days: Schema.optionalKey(Schema.Int) })),
        {
          type: "object",
          properties: { city: { type: "string" }, days: { type: "integer" } },
          required: ["city"],
          additionalProperties: false
        }
      )
    })

    it("keeps descriptions on fields, keys, transformed schemas, numbers with checks, classes and the root", () => {
      const described = describedBy(
        Schema.Struct({
          field: Schema.String.annotate({ description: "a field" }),
          key: Schema.String.annotateKey({ description: "a key" }),
          date: Schema.Date.annotate({ description: "a date" }),
          dateKey: Schema.Date.annotateKey({ description: "a date's key" }),
          fromString: Schema.NumberFromString.annotate({ description: "from a string" }),
          checked: Schema.Number.annotate({ description: "checked" }).check(Schema.isGreaterThan(3)),
          option: Schema.Option(Schema.String).annotate({ description: "an option" }),
          person: Person,
          personKey: Person.annotateKey({ description: "the person" }),
          optional: Schema.optionalKey(Schema.String).annotateKey({ description: "optional" })
        }).annotate({ description: "the root", identifier: "Root" })
      )
      assert.strictEqual(described["description"], "the root")
      const texts = Object.entries(described["properties"] as Record<string, { readonly description?: string }>).map(
        ([name, { description }]) => [name, description]
      )
      assert.deepStrictEqual(texts, [
        ["field", "a field"],
        ["key", "a key"],
        ["date", "a date"],
        ["dateKey", "a date's key"],
        ["fromString", "from a string"],
        ["checked", "checked"],
        ["option", "an option"],
        ["person", "Somebody"],
        ["personKey", "the person"],
        ["optional", "optional"]
      ])
    })

    it("says of a text that it is a date", () => {
      assert.deepStrictEqual(propertiesOf({ at: Schema.Date, until: Schema.DateTimeUtcFromString }), {
        at: { type: "string", format: "date-time", description: "a string that will be decoded as a Date" },
        until: { type: "string", format: "date-time", description: "a string that will be decoded as a DateTime.Utc" }
      })
    })

    it("keeps the checks that JSON Schema knows, also those of Number", () => {
      assert.deepStrictEqual(
        propertiesOf({
          finite: Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 5 })),
          number: Schema.Number.check(Schema.isGreaterThan(3)),
          text: Schema.String.check(Schema.isMaxLength(4)),
          pattern: Schema.String.check(Schema.isPattern(/^a/u)),
          list: Schema.Array(Schema.String).check(Schema.isMinLength(1))
        }),
        {
          finite: { type: "number", minimum: 1, maximum: 5 },
          number: { type: "number", exclusiveMinimum: 3 },
          text: { type: "string", maxLength: 4 },
          pattern: { type: "string", pattern: "^a" },
          list: { type: "array", items: { type: "string" }, minItems: 1 }
        }
      )
    })

    it("has no texts for NaN and the infinities, and no bounds that every integer has", () => {
      assert.deepStrictEqual(
        propertiesOf({ n: Schema.Number, maybe: Schema.optional(Schema.Number), i: Schema.Int }),
        { n: { type: "number" }, maybe: { anyOf: [{ type: "number" }, { type: "null" }] }, i: { type: "integer" } }
      )
    })

    it("makes an object of a struct without fields", () => {
      assert.deepStrictEqual(describedBy(Schema.Struct({})), {
        type: "object",
        properties: {},
        additionalProperties: false
      })
    })

    it("has an object at its root for classes and named schemas", () => {
      const described = describedBy(Person)
      assert.deepStrictEqual(
        [described["type"], described["description"], "$ref" in described, "definitions" in described],
        ["object", "Somebody", false, false]
      )
    })

    it("keeps definitions for recursive schemas only", () => {
      const described = describedBy(Category)
      assert.strictEqual(described["type"], "object")
      assert.strictEqual(described["description"], "A category")
      const definitions = described["definitions"] as Record<string, unknown>
      const [name] = Object.keys(definitions)
      assert.include(JSON.stringify(described["properties"]), `#/definitions/${name}`)
      assert.include(JSON.stringify(definitions), `#/definitions/${name}`)
    })

    it("merges a union of objects at the root into one object, and says what goes together", () => {
      const described = describedBy(
        Schema.Union([
          Schema.TaggedStruct("Circle", { radius: Schema.Finite }),
          Schema.TaggedStruct("Square", { side: Schema.Finite, label: Schema.optionalKey(Schema.String) })
        ])
      )
      assert.deepStrictEqual(described, {
        type: "object",
        properties: {
          _tag: { type: "string", enum: ["Circle", "Square"] },
          radius: { type: "number" },
          side: { type: "number" },
          label: { type: "string" }
        },
        required: ["_tag"],
        additionalProperties: false,
        description: `One of: { _tag: "Circle", radius }; { _tag: "Square", side, label? }.`
      })
    })

    it("lists the items of a tuple in its description", () => {
      assert.deepStrictEqual(propertiesOf({ pair: Schema.Tuple([Schema.String, Schema.Int]) }), {
        pair: {
          type: "array",
          items: { anyOf: [{ type: "string" }, { type: "integer" }] },
          minItems: 2,
          maxItems: 2,
          description: "In this order: string, integer"
        }
      })
    })

    it("leaves records open", () => {
      assert.deepStrictEqual(
        propertiesOf({
          counts: Schema.Record(Schema.String, Schema.Int),
          any: Schema.Record(Schema.String, Schema.Unknown)
        }),
        {
          counts: { type: "object", additionalProperties: { type: "integer" } },
          any: { type: "object", additionalProperties: true }
        }
      )
      assert.strictEqual(
        describedBy(
          Schema.StructWithRest(Schema.Struct({ a: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])
        )["additionalProperties"],
        true
      )
    })

    it("is draft 07: no $defs, no prefixItems, no $ref at the root", () => {
      const text = JSON.stringify([
        describedBy(Category),
        describedBy(Person),
        describedBy(
          Schema.Struct({ t: Schema.Tuple([Schema.String]), m: Schema.ReadonlyMap(Schema.String, Schema.Int) })
        )
      ])
      assert.notMatch(text, /\$defs|prefixItems|\$schema/)
    })
  })

  describe("validation", () => {
    const validate = async (schema: Schema.ConstraintCodec<unknown, unknown, never, unknown>, value: unknown) =>
      await effectSchema(schema).validate?.(value)

    it("hands a valid value on as the JSON that it was", async () => {
      const schema = Schema.Struct({
        at: Schema.Date,
        note: Schema.Option(Schema.String),
        limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))),
        maybe: Schema.optional(Schema.String)
      })
      const value = { at: "2026-01-01T00:00:00.000Z", note: { _tag: "Some", value: "x" }, maybe: null }
      const validated = await validate(schema, value)
      assert.deepStrictEqual(validated, { success: true, value })
    })

    it("refuses what does not decode, and says everything that is wrong with it", async () => {
      const validated = await validate(Schema.Struct({ a: Schema.Int, b: Schema.Date }), { a: "x", b: 1 })
      assert.isFalse(validated?.success)
      const message = validated === undefined || validated.success ? "" : validated.error.message
      assert.match(message, /"a"/)
      assert.match(message, /"b"/)
    })

    it("waits for schemas that decode asynchronously", async () => {
      const Slow = Schema.String.pipe(
        Schema.decode({
          decode: SchemaGetter.transformEffect((text: string) =>
            Effect.delay(Effect.succeed(text), Duration.millis(1))
          ),
          encode: SchemaGetter.passthrough()
        })
      )
      assert.deepStrictEqual(await validate(Schema.Struct({ s: Slow }), { s: "x" }), {
        success: true,
        value: { s: "x" }
      })
      assert.isFalse((await validate(Schema.Struct({ s: Slow }), { s: 1 }))?.success)
    })
  })

  it("works in a tool of plain ai", async () => {
    const model = scripted(calls(["plain", { at: "2026-01-01T00:00:00.000Z" }]))
    const plain = sdkTool({
      inputSchema: effectSchema(Schema.Struct({ at: Schema.Date })),
      execute: async ({ at }) => at.slice(0, 4)
    })
    const result = await sdkGenerateText({ model, prompt: "go", tools: { plain } })
    assert.strictEqual(result.toolResults[0]?.output, "2026")
  })

  describe("round trips through a call", () => {
    const Trimmed = Schema.String.pipe(Schema.decodeTo(Schema.String, SchemaTransformation.trim()))
    const cases: ReadonlyArray<readonly [name: string, schema: Schema.Constraint, json: unknown, decoded: unknown]> = [
      ["a Date", Schema.Date, "2026-01-01T00:00:00.000Z", new Date("2026-01-01T00:00:00.000Z")],
      ["an Option", Schema.Option(Schema.Int), { _tag: "Some", value: 1 }, Option.some(1)],
      ["an Option without a value", Schema.Option(Schema.Int), { _tag: "None" }, Option.none()],
      ["a union", Schema.Union([Schema.Int, Schema.String]), "x", "x"],
      [
        "a tagged union",
        Schema.Union([Schema.TaggedStruct("A", { a: Schema.Date }), Schema.TaggedStruct("B", { b: Schema.Int })]),
        { _tag: "A", a: "2026-01-01T00:00:00.000Z" },
        { _tag: "A", a: new Date("2026-01-01T00:00:00.000Z") }
      ],
      ["a BigInt", Schema.BigInt, "12345678901234567890", 12345678901234567890n],
      ["a Map", Schema.ReadonlyMap(Schema.String, Schema.Int), [["a", 1]], new Map([["a", 1]])],
      ["bytes", Schema.Uint8Array, "AQI=", new Uint8Array([1, 2])],
      [
        "a Class",
        Person,
        { name: "Ada", born: "1815-12-10T00:00:00.000Z" },
        new Person({
          name: "Ada",
          born: new Date("1815-12-10T00:00:00.000Z")
        })
      ],
      ["a recursive schema", Category, { name: "a", children: [{ name: "b", children: [] }] }, {
        name: "a",
        children: [{ name: "b", children: [] }]
      }],
      ["a transformation", Trimmed, "  x ", "x"]
    ]

    for (const [name, schema, json, decoded] of cases) {
      it.effect(`decodes ${name} for execute, encodes it as a result, and leaves the SDK with JSON`, () =>
        Effect.gen(function*() {
          let seen: unknown
          const echo = yield* tool({
            inputSchema: Schema.Struct({ value: schema as Schema.Codec<unknown> }),
            outputSchema: Schema.Struct({ value: schema as Schema.Codec<unknown> }),
            execute: (input) => {
              seen = input.value
              return Effect.succeed(input)
            }
          })
          const result = yield* generateText({
            model: scripted(calls(["echo", { value: json }])),
            prompt: "go",
            tools: { echo }
          })
          assert.deepStrictEqual(seen, decoded)
          assert.deepStrictEqual(result.toolCalls[0]?.input, { value: json })
          const encoded = yield* Schema.encodeUnknownEffect(Schema.toCodecJson(schema as Schema.Codec<unknown>))(
            decoded
          )
          assert.deepStrictEqual(result.toolResults[0]?.output, { value: encoded })
        }).pipe(Effect.provide(Ai.layer)))
    }

    it.effect("gives an absent or null optional field to execute as absent or undefined", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const echo = yield* tool({
          inputSchema: Schema.Struct({ a: Schema.optional(Schema.String), b: Schema.optionalKey(Schema.String) }),
          execute: (input) => Effect.sync(() => void seen.push(input))
        })
        yield* generateText({
          model: scripted(calls(["echo", {}], ["echo", { a: null, b: "x" }])),
          prompt: "go",
          tools: { echo }
        })
        assert.deepStrictEqual(seen, [{}, { a: undefined, b: "x" }])
      }).pipe(Effect.provide(Ai.layer)))

    it.effect("fills in defaults, and leaves the call as the model wrote it", () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const list = yield* tool({
          inputSchema: Schema.Struct({ limit: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(10))) }),
          execute: ({ limit }) => Effect.sync(() => void seen.push(limit))
        })
        const result = yield* generateText({ model: scripted(calls(["list", {}])), prompt: "go", tools: { list } })
        assert.deepStrictEqual(seen, [10])
        assert.deepStrictEqual(result.toolCalls[0]?.input, {})
      }).pipe(Effect.provide(Ai.layer)))

    it.effect("refuses input that does not decode before execute, and the model reads why", () =>
      Effect.gen(function*() {
        const strict = yield* tool({
          inputSchema: Schema.Struct({ n: Schema.Int.check(Schema.isGreaterThan(3)) }),
          execute: () => Effect.die("executed")
        })
        const result = yield* generateText({
          model: scripted(calls(["strict", { n: 1 }])),
          prompt: "go",
          tools: { strict }
        })
        const error = result.content.find((part) => part.type === "tool-error")
        assert.match(String(error?.error), /greater than 3/)
      }).pipe(Effect.provide(Ai.layer)))
  })

  describe("schemas of other libraries", () => {
    const seenBy = (inputSchema: AnySchema, input: unknown) =>
      Effect.gen(function*() {
        let seen: unknown
        const probe = yield* tool({ inputSchema, execute: (value) => Effect.sync(() => void (seen = value)) })
        yield* generateText({ model: scripted(calls(["probe", input])), prompt: "go", tools: { probe } })
        return seen
      }).pipe(Effect.provide(Ai.layer))

    it.effect("takes Zod, with its transformations applied once", () =>
      Effect.gen(function*() {
        const schema = z.object({ n: z.string().transform((text) => `${text}!`), m: z.number().default(3) })
        assert.deepStrictEqual(yield* seenBy(schema, { n: "x" }), { n: "x!", m: 3 })
      }))

    it.effect("takes jsonSchema()", () =>
      Effect.gen(function*() {
        const schema = jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } })
        assert.deepStrictEqual(yield* seenBy(schema, { n: 1 }), { n: 1 })
      }))

    it.effect("takes Standard Schema", () =>
      Effect.gen(function*() {
        const standard = {
          "~standard": {
            version: 1 as const,
            vendor: "test",
            validate: (value: unknown) => ({ value: value as { readonly n: number } }),
            jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) }
          }
        }
        assert.deepStrictEqual(yield* seenBy(standard, { n: 1 }), { n: 1 })
      }))

    it.effect("takes a lazy schema", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* seenBy(() => jsonSchema<{ n: number }>({ type: "object" }), { n: 1 }), { n: 1 })
      }))
  })
})
