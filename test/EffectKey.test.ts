/**
 * When two calls are the same effect, and what is no key. The canonical text itself is tested in internal/jsonCopy.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  applyOnce,
  checkKey,
  defaultKey,
  EffectKeyError,
  EffectStore,
  fingerprint,
  idempotencyKey
} from "chamvi-effect"
import { Effect, Result, Schema } from "effect"
import { createHash } from "node:crypto"

const printOf = (input: unknown) => Result.getOrThrow(fingerprint("comment", input))
const errorOf = (input: unknown) => Result.getOrThrow(Result.flip(fingerprint("comment", input)))
const hex = (text: string) => createHash("sha256").update(text, "utf8").digest("hex")
const distinct = (texts: ReadonlyArray<string>) => new Set(texts).size === texts.length

describe("EffectKey", () => {
  it("the default key is run, tool and the sha256 of the canonical input", () => {
    const print = printOf({ b: [1, "\u00e9"], a: null })
    assert.strictEqual(print, hex("{\"a\":null,\"b\":[1,\"\u00e9\"]}"))
    assert.strictEqual(defaultKey("run-1", "comment", print), `run-1:comment:${print}`)
  })

  it("the order of members does not matter and the order of arrays does", () => {
    assert.strictEqual(printOf({ a: 1, b: { c: 2, d: 3 } }), printOf({ b: { d: 3, c: 2 }, a: 1 }))
    assert.strictEqual(printOf([{ a: [{ b: 1, c: 2 }] }]), printOf([{ a: [{ c: 2, b: 1 }] }]))
    assert.notStrictEqual(printOf([1, 2]), printOf([2, 1]))
    assert.notStrictEqual(printOf({ a: [{ b: 1 }, { c: 2 }] }), printOf({ a: [{ c: 2 }, { b: 1 }] }))
  })

  it("undefined members, toJSON and -0 are as in JSON", () => {
    assert.strictEqual(printOf({ a: undefined, b: 1 }), printOf({ b: 1 }))
    assert.strictEqual(printOf([undefined, 1]), printOf([null, 1]))
    assert.notStrictEqual(printOf({ a: null }), printOf({}))
    assert.strictEqual(printOf({ at: new Date(5) }), printOf({ at: new Date(5).toISOString() }))
    assert.notStrictEqual(printOf({ at: new Date(5) }), printOf({ at: new Date(6) }))
    assert.strictEqual(printOf({ n: -0 }), printOf({ n: 0 }))
    assert.strictEqual(printOf({ to: { toJSON: () => "x" } }), printOf({ to: "x" }))
    assert.notStrictEqual(printOf(undefined), printOf("undefined"))
    assert.notStrictEqual(printOf(undefined), printOf(null))
  })

  describe("what JSON would lose is an error that names its path", () => {
    it.each([
      ["BigInt", 10n],
      ["NaN", Number.NaN],
      ["Infinity", Number.POSITIVE_INFINITY],
      ["Map", new Map([["a", 1]])],
      ["Set", new Set(["a"])],
      ["URLSearchParams", new URLSearchParams("a=1")],
      ["Buffer", Buffer.from("a")],
      ["RegExp", /a/],
      ["Error", new Error("a")],
      ["Promise", Promise.resolve(1)],
      ["invalid Date", new Date(Number.NaN)],
      ["function", () => 1],
      ["symbol", Symbol("a")],
      ["lone surrogate", "\ud800"]
    ])("%s", (_, value) => {
      const error = errorOf({ items: [{ price: 1 }, { "unit price": value }] })
      assert.instanceOf(error, EffectKeyError)
      assert.strictEqual(error.tool, "comment")
      assert.strictEqual(error.path, "$.items[1][\"unit price\"]")
      assert.include(error.message, "comment")
      assert.notInclude(error.message, "\n")
    })
  })

  it("crafted strings never share a key", () => {
    assert.isTrue(distinct([
      { a: "1", b: "2" },
      { a: "1\"\u0000b:\"2" },
      { "a:\"1\"\u0000b": "2" },
      { a: "1\",\"b\":\"2" },
      { "a\":\"1\",\"b": "2" },
      { a: ["1", "2"] },
      { a: "1,2" },
      { a: "[\"1\",\"2\"]" },
      { a: "null" },
      { a: null },
      { a: 1 },
      { a: true },
      { a: "true" },
      "{\"a\":1}",
      "{\"a\":null}"
    ].map(printOf)))
    assert.isTrue(distinct(["\u00e9", "e\u0301", "\\u00e9", "\ufffd", ""].map(printOf)))
  })

  it("no own member is lost", () => {
    const inputs = [
      "{\"__proto__\":{\"amount\":1}}",
      "{\"__proto__\":{\"amount\":999}}",
      "{\"__proto__\":null}",
      "{}",
      "{\"\":1}",
      "{\"1\":1}",
      "{\"01\":1}",
      "{\"a\":1}",
      "{\"A\":1}",
      "{\"constructor\":1}",
      "{\"constructor\":{\"prototype\":{\"amount\":1}}}",
      "{\"toString\":1}",
      "{\"hasOwnProperty\":1}",
      "{\"toJSON\":1}",
      "{\"a\":1,\"A\":1,\"\":1,\"1\":1,\"__proto__\":1}",
      "{\"a\":1,\"A\":1,\"\":1,\"1\":1}"
    ].map((text): unknown => JSON.parse(text))
    assert.isTrue(distinct(inputs.map(printOf)))
    assert.strictEqual(({} as { readonly amount?: number }).amount, undefined)
  })

  it("deep nesting never crashes", () => {
    const nest = (levels: number, around: (inner: unknown) => unknown) => {
      let value: unknown = 1
      for (let i = 0; i < levels; i++) value = around(value)
      return value
    }
    for (const around of [(inner: unknown) => [inner], (inner: unknown) => ({ a: inner })]) {
      assert.isTrue(Result.isSuccess(fingerprint("comment", nest(1_000, around))))
      assert.match(errorOf(nest(1_001, around)).message, /1000 levels/)
      assert.match(errorOf(nest(10_000, around)).message, /1000 levels/)
      assert.isBelow(errorOf(nest(10_000, around)).message.length, 1_000)
    }
    const cycle: Record<string, unknown> = {}
    cycle["next"] = [cycle]
    assert.strictEqual(errorOf(cycle).path, "$.next[0]")
  })

  it("no two pairs of run and tool share a prefix", () => {
    const pairs: ReadonlyArray<readonly [string, string]> = [
      ["a:b", "c"],
      ["a", "b:c"],
      ["a%3Ab", "c"],
      ["a", "b%3Ac"],
      ["", "a:b:c"],
      ["a:b:c", ""],
      ["a\nb", "c"],
      ["a\r\nb", "c"],
      ["a\u0000", "c"],
      ["a", "\u0000c"],
      ["a/b", "c"],
      ["a", "b/c"],
      ["a\u0085", "c"],
      ["a%C2%85", "c"],
      ["a\u007f", "c"],
      ["a\ud800", "c"],
      ["a\ud801", "c"],
      ["a\ufffd", "c"],
      ["a%uD800", "c"]
    ]
    const keys = pairs.map(([run, tool]) => defaultKey(run, tool, "x"))
    assert.isTrue(distinct(keys))
    for (const key of keys) {
      assert.strictEqual(key.split(":").length, 3)
      assert.isFalse(/[\u0000-\u001f\u007f-\u009f]/.test(key))
      assert.isTrue(key.isWellFormed())
    }
  })

  const wellFormed = Schema.makeFilter((text: string) => text.isWellFormed())
  const Part = Schema.Union([
    Schema.Literals(["a", ":", "%", "%3A", "\n", "a:b", "b:a", ""]),
    Schema.String.check(wellFormed)
  ])

  it.prop("the run and the tool can be told from a key", [Part, Part, Part], ([run, tool, rest]) => {
    const print = printOf(rest)
    const [first, second, third, ...more] = defaultKey(run, tool, print).split(":")
    assert.deepStrictEqual([decodeURIComponent(first!), decodeURIComponent(second!), third, more], [
      run,
      tool,
      print,
      []
    ])
  })

  it("leaves ordinary names as they are, of every script", () => {
    assert.strictEqual(defaultKey("run 1/\u{1f600}\u00e9", "a.b-c_d", "x"), "run 1/\u{1f600}\u00e9:a.b-c_d:x")
  })

  it.effect("a blank key is a typed error and nothing runs", () =>
    Effect.gen(function*() {
      let applied = 0
      const blanks = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\u200b\u2060\u0000"
        .split("")
      for (
        const key of ["", "   ", ...blanks, blanks.join(""), undefined, null, 0, 1, true, [], ["k"], {}, 1n, () => "k"]
      ) {
        const error = yield* Effect.flip(
          applyOnce({ key: key as string, tool: "comment", execute: () => Effect.sync(() => ++applied) })
        )
        assert.instanceOf(error, EffectKeyError)
        assert.strictEqual(error.tool, "comment")
        assert.match(error.message, /comment.*Nothing was executed/)
      }
      assert.strictEqual(applied, 0)
      assert.strictEqual(yield* applyOnce({ key: " k ", execute: () => Effect.sync(() => ++applied) }), 1)
    }).pipe(Effect.provide(EffectStore.layerMemory)))

  it.effect.prop("any other well-formed key is taken verbatim", [Schema.String], ([text]) =>
    Effect.gen(function*() {
      const key = `k${text.toWellFormed()}`
      assert.strictEqual(yield* checkKey("comment", key), key)
    }))

  it.effect("a key of up to 65,536 bytes is taken, and no longer one", () =>
    Effect.gen(function*() {
      for (
        const [character, most] of [["a", 65_536], ["\u00e9", 32_768], ["\u20ac", 21_845], [
          "\u{1f600}",
          16_384
        ]] as const
      ) {
        const longest = character.repeat(most)
        assert.strictEqual(yield* checkKey("comment", longest), longest)
        const error = yield* Effect.flip(checkKey("comment", `${longest}${character}`))
        assert.match(error.problem, /65536 bytes/)
      }
    }))

  it.effect("a key with a lone surrogate is refused, as no store could tell it from another", () =>
    Effect.gen(function*() {
      for (const key of ["a\ud800", "\udc00a", "\ude00\ud83d"]) {
        const error = yield* Effect.flip(checkKey("comment", key))
        assert.match(error.problem, /surrogate/)
        assert.isTrue(error.message.isWellFormed())
      }
      assert.strictEqual(yield* checkKey("comment", "\ud83d\ude00"), "\u{1f600}")
    }))

  it.effect("a tool's name with a lone surrogate is refused, as two of them would be one tool in a store", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(checkKey("a\ud800", "k"))
      assert.deepStrictEqual([error._tag, error.tool, error.path], ["EffectKeyError", "a\ufffd", "tool"])
      assert.include(error.message, "Give the tool another name.")
      assert.strictEqual(yield* checkKey("a\ufffd", "k"), "k")
    }))

  it.effect("the error says what was returned instead of a key", () =>
    Effect.gen(function*() {
      const said = yield* Effect.forEach([undefined, null, 1, ["k"], {}], (key) =>
        Effect.map(Effect.flip(checkKey("comment", key)), (error) => error.problem))
      assert.deepStrictEqual(said, [
        "effectKey returned undefined instead of a string",
        "effectKey returned null instead of a string",
        "effectKey returned a number instead of a string",
        "effectKey returned an array instead of a string",
        "effectKey returned an object instead of a string"
      ])
    }))
})

describe("idempotencyKey", () => {
  const printable = /^[!-~]{1,255}$/

  it("is printable, short and stable", () => {
    const hostile = [
      "",
      " ",
      "a b",
      "a\nb",
      "a\r\nX-Evil: 1",
      "\u0000",
      "\u00e9",
      "\u{1f600}",
      "a".repeat(256),
      "a".repeat(65_536)
    ]
    for (const key of [...hostile, "\"", "a,b", "a\\b", "a;b", "run-1:charge:42", "a".repeat(255)]) {
      assert.match(idempotencyKey(key), printable)
      assert.strictEqual(idempotencyKey(key), idempotencyKey(key))
    }
    assert.strictEqual(idempotencyKey("M\u00e4rz"), `sha256-${hex("M\u00e4rz")}`)
  })

  it("is the key itself where a header can carry it", () => {
    for (
      const key of ["run-1:charge:42", "a".repeat(255), "!#$%&'()*+-./:;<=>?@[]^_`{|}~", defaultKey("r", "t", hex(""))]
    ) {
      assert.strictEqual(idempotencyKey(key), key)
    }
    for (const key of ["\"", "a,b", "a\\b", "a b", "a".repeat(256)])
      assert.strictEqual(idempotencyKey(key), `sha256-${hex(key)}`)
  })

  it("hashes keys that look like its own hashes", () => {
    const long = "a".repeat(300)
    for (const key of [idempotencyKey(long), "sha256-", "sha256-x", idempotencyKey(idempotencyKey(long))]) {
      assert.strictEqual(idempotencyKey(key), `sha256-${hex(key)}`)
    }
    assert.isTrue(distinct([long, idempotencyKey(long), idempotencyKey(idempotencyKey(long))].map(idempotencyKey)))
  })

  const Key = Schema.Union([
    Schema.Literals(["a", "A", "a ", "a\n", "sha256-", `sha256-${hex("a ")}`, "a,", "\""]),
    Schema.String.check(Schema.makeFilter((text) => text.isWellFormed()))
  ])

  it.prop("differs where keys differ", [Key, Key], ([left, right]) => {
    assert.match(idempotencyKey(left), printable)
    assert.strictEqual(idempotencyKey(left) === idempotencyKey(right), left === right)
  }, { arbitrary: { runs: 500 } })
})
