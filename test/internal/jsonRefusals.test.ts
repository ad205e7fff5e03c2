/**
 * `toJSON`, and every kind of value that `JSON.stringify` would write wrongly: each is refused, and its place is named.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Result } from "effect"
import { runInNewContext } from "node:vm"
import { canonicalJson, jsonText, mostLevels } from "../../src/internal/jsonCopy.ts"

const textOf = (value: unknown) => Result.getOrThrow(canonicalJson(value))
const refusalOf = (value: unknown, write = canonicalJson) => {
  const result = write(value)
  return Result.isFailure(result) ? result.failure : assert.fail(`written as ${result.success?.slice(0, 200)}`)
}

const chain = (levels: number): unknown => {
  let value: unknown = 1
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { value }
  return value
}

describe("toJSON", () => {
  const asking = (answer: unknown) => {
    const asked: Array<readonly [unknown, unknown]> = []
    const value = {
      toJSON(this: unknown, key: unknown) {
        asked.push([this, key])
        return answer
      }
    }
    return { asked, value }
  }

  it("is asked once, of the value itself, with the key as text", () => {
    const root = asking(1)
    const member = asking(2)
    const item = asking(3)
    assert.strictEqual(textOf(root.value), "1")
    assert.strictEqual(textOf({ m: member.value, l: [0, item.value] }), "{\"l\":[0,3],\"m\":2}")
    assert.deepStrictEqual(root.asked, [[root.value, ""]])
    assert.deepStrictEqual(member.asked, [[member.value, "m"]])
    assert.deepStrictEqual(item.asked, [[item.value, "1"]])
  })

  it("is honoured on arrays and instances, also where it is inherited", () => {
    class Money {
      readonly #cents = 5
      toJSON() {
        return { cents: this.#cents, amount: "0.05" }
      }
    }
    const list = Object.assign([1, 2], { toJSON: () => "a list" })
    assert.strictEqual(textOf([list, new Money()]), "[\"a list\",{\"amount\":\"0.05\",\"cents\":5}]")
    assert.strictEqual(textOf(new Date(0)), "\"1970-01-01T00:00:00.000Z\"")
    assert.strictEqual(textOf(new URL("http://a.test/b")), "\"http://a.test/b\"")
    assert.strictEqual(textOf(Option.some(1)), "{\"_id\":\"Option\",\"_tag\":\"Some\",\"value\":1}")
  })

  it("is a member like any other where it is no function", () => {
    assert.strictEqual(textOf({ toJSON: "x" }), "{\"toJSON\":\"x\"}")
  })

  it("may answer undefined", () => {
    assert.strictEqual(textOf({ a: asking(undefined).value, b: [asking(undefined).value] }), "{\"b\":[null]}")
  })

  it("is not asked again about what it answered", () => {
    class Self {
      readonly b = 1
      readonly a = 2
      toJSON() {
        return this
      }
    }
    assert.strictEqual(textOf(new Self()), "{\"a\":2,\"b\":1}")
    assert.strictEqual(refusalOf([asking(new Date(0)).value]).path, "$[0]")
    assert.strictEqual(refusalOf([asking(asking(1).value).value]).path, "$[0].toJSON")
    const list = Object.assign([1], { toJSON: () => list })
    assert.strictEqual(textOf(list), "[1]")
  })

  it("that answers no JSON, or throws, is refused at its place", () => {
    for (const answer of [Number.NaN, 1n, new Map([[1, 2]]), () => 1, Symbol("s"), "\ud800", new Date(Number.NaN)]) {
      assert.strictEqual(refusalOf({ a: [{ deep: { er: 1 } }, asking(answer).value] }).path, "$.a[1]")
    }
    const throwing = {
      toJSON: () => {
        throw new Error("no\nway")
      }
    }
    const refusal = refusalOf({ a: { deep: { er: 1 } }, z: [throwing] })
    assert.strictEqual(refusal.path, "$.z[0]")
    assert.match(refusal.problem, /no\nway/)
  })
})

describe("what JSON would write wrongly", () => {
  class Secret {
    readonly #value = 1
    read = undefined
    static of = (secret: Secret) => secret.#value
  }
  class Empty {
    get inherited() {
      return 1
    }
  }
  const instance = Object.defineProperty(new Secret(), "read", { enumerable: false })
  const cases: ReadonlyArray<readonly [kind: string, value: unknown, problem: RegExp]> = [
    ["a BigInt", 10n, /bigint/],
    ["NaN", Number.NaN, /NaN/],
    ["Infinity", Number.POSITIVE_INFINITY, /Infinity/],
    ["-Infinity", Number.NEGATIVE_INFINITY, /-Infinity/],
    ["a boxed NaN", new Number(Number.NaN), /NaN/],
    ["a boxed BigInt", Object(10n), /bigint/],
    ["a boxed symbol", Object(Symbol("s")), /symbol/],
    ["a symbol", Symbol("s"), /symbol/],
    ["a function", () => 1, /function/],
    ["a class", Secret, /function/],
    ["a lone surrogate", "a\ud800b", /surrogate/],
    ["a boxed lone surrogate", new String("\udc00"), /surrogate/],
    ["a Map", new Map([["a", 1]]), /Map/],
    ["an empty Map", new Map(), /Map/],
    ["a Map with members", Object.assign(new Map(), { a: 1 }), /Map/],
    ["a Map in disguise", Object.setPrototypeOf(new Map(), Object.prototype), /Map/],
    ["a Map without a prototype", Object.setPrototypeOf(Object.assign(new Map(), { a: 1 }), null), /Map/],
    ["a Map of another realm", runInNewContext("new Map([[1, 2]])"), /Map/],
    ["a Set", new Set([1]), /Set/],
    ["a WeakMap", new WeakMap(), /weak/],
    ["a WeakRef", new WeakRef({}), /WeakRef/],
    ["a URLSearchParams", new URLSearchParams("a=1"), /URLSearchParams/],
    ["a Headers", new Headers({ a: "1" }), /Headers/],
    ["a typed array", new Uint8Array([1]), /binary/],
    ["a Float64Array", new Float64Array(1), /binary/],
    ["a Buffer", Buffer.from("a"), /binary/],
    ["an ArrayBuffer", new ArrayBuffer(1), /binary/],
    ["a DataView", new DataView(new ArrayBuffer(1)), /binary/],
    ["a RegExp", /a/, /RegExp/],
    ["an Error", new Error("e"), /Error/],
    ["an Error with members", Object.assign(new TypeError("e"), { code: 1 }), /Error/],
    ["a Promise", Promise.resolve(1), /Promise/],
    ["an invalid Date", new Date(Number.NaN), /invalid Date/],
    ["an instance with private state", instance, /Secret/],
    ["an instance without members", new Empty(), /Empty/],
    ["an object that inherits its members", Object.create({ a: 1 }), /\{\}/],
    ["a Proxy of a Map", new Proxy(new Map(), {}), /Map/],
    ["an iterator", [1].values(), /\{\}/],
    ["a Redacted", Redacted.make("secret"), /Redacted/],
    ["an Effect", Effect.succeed(1), /Effect/]
  ]

  it.each(cases)("refuses %s, at its place", (_, value, problem) => {
    for (const [wrapped, path] of [[value, "$"], [{ a: [{ x: [1] }, value] }, "$.a[1]"]] as const) {
      const refusal = refusalOf(wrapped)
      assert.strictEqual(refusal.path, path)
      assert.match(refusal.problem, problem)
      assert.deepStrictEqual(refusalOf(wrapped, jsonText), refusal)
    }
  })

  it("refuses a name with a lone surrogate, and shows it escaped", () => {
    const refusal = refusalOf({ a: { "x\ud800": 1 } })
    assert.strictEqual(refusal.path, "$.a[\"x\\ud800\"]")
    assert.match(refusal.problem, /surrogate/)
    assert.isTrue(refusal.path.isWellFormed())
  })

  it("writes odd names in paths so that they cannot be mistaken", () => {
    const path = (name: string) => refusalOf({ [name]: [1n] }).path
    assert.deepStrictEqual(
      ["a b", "", "0", "a.b", "a\nb", "\"]", "$x", "constructor"].map(path),
      [
        "$[\"a b\"][0]",
        "$[\"\"][0]",
        "$[\"0\"][0]",
        "$[\"a.b\"][0]",
        "$[\"a\\nb\"][0]",
        "$[\"\\\"]\"][0]",
        "$.$x[0]",
        "$.constructor[0]"
      ]
    )
    assert.strictEqual(
      refusalOf(JSON.parse("{\"__proto__\":{\"a\":1}}", (name, v) => name === "a" ? 1n : v)).path,
      "$.__proto__.a"
    )
  })

  it("refuses what throws when it is read, whatever it throws", () => {
    const thrown: ReadonlyArray<unknown> = [
      new Error("e"),
      Object.create(null),
      Symbol("s"),
      undefined,
      {
        toString: () => {
          throw new Error("again")
        }
      },
      new Proxy({}, {
        getPrototypeOf: () => {
          throw new Error("again")
        }
      })
    ]
    for (const value of thrown) {
      const fail = () => {
        throw value
      }
      const getter = Object.defineProperty({ a: { b: { c: 1 } } }, "x", { get: fail, enumerable: true })
      assert.strictEqual(refusalOf([0, getter]).path, "$[1].x")
      for (const trap of ["get", "ownKeys", "getPrototypeOf", "getOwnPropertyDescriptor"] as const) {
        const proxy = new Proxy({ a: 1 }, { [trap]: fail })
        assert.match(refusalOf({ k: { l: [1, 2] }, p: proxy }).path, /^\$\.p(\.a)?$/)
      }
    }
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    assert.strictEqual(refusalOf([proxy]).path, "$[0]")
  })

  it("takes 1,000 levels and refuses more, without overflowing", () => {
    const deepest = chain(mostLevels)
    assert.strictEqual(textOf(deepest), JSON.stringify(deepest))
    assert.match(refusalOf(chain(mostLevels + 1)).problem, /1000 levels/)
    assert.match(refusalOf(chain(10_000)).problem, /1000 levels/)
    assert.match(refusalOf(chain(1_000_000)).problem, /1000 levels/)
    const climb = (steps: number): Result.Result<string | undefined, unknown> => {
      try {
        return climb(steps + 1)
      } catch {
        // with hardly any stack left
        return canonicalJson(chain(900))
      }
    }
    assert.isTrue(Result.isResult(climb(0)))
  })

  it("names a cycle by the place that closes it", () => {
    const self: Record<string, unknown> = { a: 1 }
    self["me"] = self
    assert.deepStrictEqual(refusalOf({ x: [self] }), { path: "$.x[0].me", problem: "it holds a cycle, back to $.x[0]" })
    const list: Array<unknown> = [{ a: [] }]
    list.push({ b: [list] })
    assert.strictEqual(refusalOf(list).path, "$[1].b[0]")
  })

  it("takes shared references that form no cycle, and refuses those that expand without bound", () => {
    const shared = { b: 1, a: [] }
    assert.strictEqual(textOf([shared, shared]), "[{\"a\":[],\"b\":1},{\"a\":[],\"b\":1}]")
    let wide: unknown = "leaf"
    for (let i = 0; i < 60; i++) wide = i % 2 === 0 ? [wide, wide] : { x: wide, y: wide }
    assert.match(refusalOf(wide).problem, /more than/)
    const row = Array.from({ length: 10_000 }, () => 1)
    assert.match(refusalOf(Array.from({ length: 10_000 }, () => row)).problem, /more than/)
    const sparse: Array<unknown> = []
    sparse[4_294_967_294] = 1
    assert.match(refusalOf([sparse]).problem, /more than/)
    const text = "x".repeat(1_000_000)
    assert.match(refusalOf({ all: Array.from({ length: 1_000 }, () => text) }).problem, /characters/)
  })
})
