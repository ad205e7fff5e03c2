import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { blobsIn, decode, encode, largestInline } from "../../src/internal/storedValue.ts"

const again = (value: unknown): unknown => {
  const { blobs, text } = encode(value)
  expect(blobsIn(text).toSorted()).toEqual([...blobs.keys()].toSorted())
  return decode(text, blobs)
}

const kinds = [
  "undefined",
  "bytes",
  "buffer",
  "view",
  "url",
  "date",
  "number",
  "bigint",
  "map",
  "set",
  "object",
  "blob"
]
const Leaf = Schema.Union([
  Schema.Null,
  Schema.Boolean,
  Schema.Int,
  Schema.String,
  Schema.Literals(kinds),
  Schema.Undefined,
  Schema.Uint8Array,
  // stands apart
  Schema.Literal(`data:${"x".repeat(largestInline)}`)
])
const Name = Schema.Literals(["$", "v", "a", "mediaType", "0"])
type Lookalike = typeof Leaf.Type | ReadonlyArray<Lookalike> | { readonly [name: string]: Lookalike }
/** Values of a user's own whose members look like those of the stored form. */
const Lookalike: Schema.Codec<Lookalike> = Schema.Union([
  Leaf,
  Schema.Struct({ $: Schema.Literals(kinds), v: Schema.suspend(() => Lookalike) }),
  Schema.Record(Name, Schema.suspend(() => Lookalike)),
  Schema.Array(Schema.suspend(() => Lookalike))
])

const plain = (value: Lookalike): unknown =>
  Array.isArray(value)
    ? value.map(plain)
    : typeof value !== "object" || value === null || value instanceof Uint8Array
    ? value
    : Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))

describe("stored values", () => {
  it.prop("come back as they were where they look like the stored form themselves", [Lookalike], ([value]) => {
    // generated objects may have no prototype
    expect(again(value)).toStrictEqual(plain(value))
  }, { arbitrary: { runs: 500 } })

  it("that look like something that stands apart are the user's own", () => {
    for (const value of [{ $: "blob", v: 7 }, { $: "object", v: { $: "blob", v: "a" } }, [{ $: { $: "blob" } }]]) {
      expect(again(value)).toStrictEqual(value)
      expect(again(encode(value).text)).toBe(encode(value).text)
    }
  })

  it("come back as they were: bytes, URLs, Dates, undefined, and what JSON has no form for", () => {
    const value = {
      text: "a",
      none: undefined,
      nothing: null,
      list: [1, undefined, -0, Number.NaN, Infinity, 3n],
      bytes: new Uint8Array([0, 255]),
      empty: new Uint8Array(),
      at: new Date(5),
      never: new Date(Number.NaN),
      url: new URL("https://example.com/?a=1"),
      map: new Map([["a", new Date(1)]]),
      set: new Set([1n]),
      floats: new Float32Array([0.5, -1]),
      bigs: new BigInt64Array([-1n]),
      buffer: new Uint8Array([1, 2]).buffer,
      window: new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
      $: "bytes",
      v: "own",
      nested: { $: { $: 1 } }
    }
    expect(again(value)).toStrictEqual(value)
    const proto = JSON.parse(`{"__proto__":{"a":1},"":2}`) as unknown
    expect(JSON.stringify(again(proto))).toBe(`{"__proto__":{"a":1},"":2}`)
  })

  it("that are large stand apart: bytes anywhere, texts in files only", () => {
    const large = new Uint8Array(largestInline + 1).fill(1)
    const text = "x".repeat(largestInline + 1)
    const value = { file: { type: "file", mediaType: "image/png", data: { type: "data", data: text } }, text, large }
    const { blobs, text: json } = encode(value)
    expect(blobs.size).toBe(2)
    expect(json.length).toBeLessThan(text.length + 1000)
    expect(again(value)).toStrictEqual(value)
    expect(() => decode(json)).toThrow("missing")
  })

  it("that are large stand apart as data: URLs, images, other arrays and buffers too", () => {
    const length = largestInline + 8
    const base64 = "A".repeat(length)
    const value = [
      `data:image/png;base64,${base64}`,
      new URL(`data:image/png;base64,B${base64}`),
      { type: "image", image: base64 },
      new Float64Array(length).fill(0.5),
      new ArrayBuffer(length)
    ]
    const { blobs, text } = encode(value)
    expect(blobs.size).toBe(value.length)
    expect(text.length).toBeLessThan(1000)
    expect(again(value)).toStrictEqual(value)
  })

  it("that are large stand apart under a name each, also where their UTF-8 is the same", () => {
    const half = (unit: string) => ({ mediaType: "text/plain", data: `${"x".repeat(largestInline)}${unit}` })
    const value = [half("\ud800"), half("\ud801"), half("\ufffd"), half(JSON.stringify("\ud800"))]
    expect(encode(value).blobs.size).toBe(value.length)
    expect(again(value)).toStrictEqual(value)
  })

  it("take what others describe as JSON, and leave functions out", () => {
    class Money {
      readonly #cents = 5
      toJSON() {
        return { cents: this.#cents }
      }
    }
    expect(again({ money: new Money(), run: () => 1 })).toEqual({ money: { cents: 5 } })
  })

  it("refuse cycles and endless nesting", () => {
    const cycle: Record<string, unknown> = {}
    cycle["self"] = cycle
    expect(() => encode(cycle)).toThrow("holds itself")
    let deep: unknown = 1
    for (let i = 0; i < 1000; i++) deep = [deep]
    expect(() => encode(deep)).toThrow("too deep")
  })
})
