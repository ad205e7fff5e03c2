/**
 * The text of canonical JSON against a slow oracle, over generated values.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { runInNewContext } from "node:vm"
import { canonicalJson, jsonText } from "../../src/internal/jsonCopy.ts"

const textOf = (value: unknown) => Result.getOrThrow(canonicalJson(value))

/** JSON values as data, so that members named `__proto__` and orders of members can be generated. */
type Tree = null | boolean | number | string | ReadonlyArray<Tree> | {
  readonly members: ReadonlyArray<readonly [string, Tree]>
}

const Name = Schema.Union([
  Schema.Literals(["__proto__", "constructor", "toString", "hasOwnProperty", "length", "toJSON", "", "a", "A", "b"]),
  Schema.Literals([
    "0",
    "1",
    "10",
    "2",
    "-1",
    "01",
    "1.5",
    "4294967294",
    "4294967295",
    "\u{1f600}",
    "\uffff",
    "\u00e9"
  ]),
  Schema.String.check(Schema.makeFilter((text) => text.isWellFormed()))
])
const Leaf = Schema.Union([
  Schema.Null,
  Schema.Boolean,
  Schema.Finite,
  Schema.Literals(["\u0000", "\"", "\\", "a\":1", "\u2028", "\u{1f600}"]),
  Schema.String.check(Schema.makeFilter((text) => text.isWellFormed()))
])
const Tree: Schema.Codec<Tree> = Schema.Union([
  Leaf,
  Schema.Array(Schema.suspend(() => Tree)),
  Schema.Struct({ members: Schema.Array(Schema.Tuple([Name, Schema.suspend(() => Tree)])) })
])

const isArray: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const build = (tree: Tree, reversed = false): unknown => {
  if (typeof tree !== "object" || tree === null) return tree
  if (isArray(tree)) return tree.map((item) => build(item, reversed))
  const members = new Map("members" in tree ? tree.members : [])
  const result = {}
  for (const [name, value] of reversed ? [...members].toReversed() : members) {
    Object.defineProperty(result, name, {
      value: build(value, reversed),
      enumerable: true,
      configurable: true,
      writable: true
    })
  }
  return result
}

const compareUnits = (left: string, right: string): number => {
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left.charCodeAt(i) !== right.charCodeAt(i)) return left.charCodeAt(i) - right.charCodeAt(i)
  }
  return left.length - right.length
}

const oracle = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(oracle).join()}]`
  const entries = Object.entries(value).sort(([left], [right]) => compareUnits(left, right))
  return `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${oracle(member)}`).join()}}`
}

describe("canonicalJson", () => {
  it.prop("is the JSON text with sorted members", [Tree], ([tree]) => {
    const value = build(tree)
    assert.strictEqual(textOf(value), oracle(value))
  }, { arbitrary: { runs: 500 } })

  it.prop("does not depend on the order in which members were set", [Tree], ([tree]) => {
    assert.strictEqual(textOf(build(tree)), textOf(build(tree, true)))
  })

  it.prop("is read back by JSON.parse as the same value", [Tree], ([tree]) => {
    const text = textOf(build(tree))!
    assert.strictEqual(textOf(JSON.parse(text)), text)
    assert.strictEqual(JSON.stringify(JSON.parse(text)), JSON.stringify(JSON.parse(oracle(build(tree)))))
  })

  it("sorts members by UTF-16 code unit, also beyond the basic plane, and more of them than a few", () => {
    assert.strictEqual(
      textOf({ "\uffff": 1, "\u{1f600}": 2, z: 3, "\u00e9": 4, Z: 5 }),
      "{\"Z\":5,\"z\":3,\"\u00e9\":4,\"\u{1f600}\":2,\"\uffff\":1}"
    )
    const names = Array.from({ length: 300 }, (_, i) => `n${(i * 7919) % 1000}`)
    const value = Object.fromEntries(names.map((name, i) => [name, i]))
    assert.strictEqual(textOf(value), oracle(value))
  })

  it("sorts names like integers as text, at any depth", () => {
    assert.strictEqual(
      textOf({ b: { 9: 1, 10: 2, "-1": 3 }, 2: [{ 1: 1, "": 2 }], 10: 0 }),
      "{\"10\":0,\"2\":[{\"\":2,\"1\":1}],\"b\":{\"-1\":3,\"10\":2,\"9\":1}}"
    )
  })

  it("writes -0 as 0 and numbers as JSON does", () => {
    assert.strictEqual(textOf([-0, 1e21, 1e-7, 0.1, 1e300, 5e-324]), "[0,1e+21,1e-7,0.1,1e+300,5e-324]")
  })

  it("drops members and nulls items that are undefined or missing", () => {
    const sparse: Array<unknown> = []
    sparse[2] = undefined
    sparse[3] = 1
    assert.strictEqual(
      textOf({ a: undefined, b: [undefined, 1], c: sparse }),
      "{\"b\":[null,1],\"c\":[null,null,null,1]}"
    )
    assert.strictEqual(textOf({ 1: [undefined, 1], 0: undefined }), "{\"1\":[null,1]}")
    assert.strictEqual(textOf(undefined), undefined)
  })

  it("takes objects without a prototype and of another realm, empty ones too", () => {
    const bare: Record<string, unknown> = Object.create(null)
    bare["x"] = runInNewContext("({ b: [], a: {} })")
    assert.strictEqual(textOf(bare), "{\"x\":{\"a\":{},\"b\":[]}}")
    assert.strictEqual(textOf(Object.create(null)), "{}")
  })

  it("writes boxed primitives as their values, whatever their valueOf says", () => {
    const lying = Object.assign(new Boolean(false), { valueOf: () => true })
    assert.strictEqual(textOf([new Number(1), new String("x"), lying]), "[1,\"x\",false]")
    assert.strictEqual(textOf({ toJSON: () => new Number(5) }), "5")
  })

  it("leaves its input alone and reads each member once", () => {
    let reads = 0
    const value = Object.freeze({
      b: Object.freeze([1, 2]),
      get a() {
        return ++reads
      }
    })
    assert.strictEqual(textOf(value), "{\"a\":1,\"b\":[1,2]}")
    assert.deepStrictEqual(Object.keys(value), ["b", "a"])
  })

  it("lets a toJSON use it", () => {
    const inner = { toJSON: () => textOf({ b: 1, a: [{}] }) }
    assert.strictEqual(textOf({ z: inner, y: 1 }), "{\"y\":1,\"z\":\"{\\\"a\\\":[{}],\\\"b\\\":1}\"}")
  })
})

describe("jsonText", () => {
  it.prop("is what JSON.stringify writes", [Tree], ([tree]) => {
    const value = build(tree)
    assert.strictEqual(Result.getOrThrow(jsonText(value)), JSON.stringify(value))
  })

  it("has no text for undefined", () => {
    assert.strictEqual(Result.getOrThrow(jsonText(undefined)), undefined)
  })
})
