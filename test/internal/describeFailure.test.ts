import { assert, describe, it } from "@effect/vitest"
import { Data, Redacted, Schema } from "effect"
import { describeFailure } from "../../src/internal/describeFailure.ts"

class Plain extends Data.TaggedError("Plain")<{}> {}
class Detailed extends Schema.TaggedError<Detailed>("Detailed")("Detailed", {
  status: Schema.Int,
  secret: Schema.Redacted(Schema.String)
}) {
  override get message() {
    return "no luck"
  }
}

const cyclic: Record<string, unknown> = { name: "loop" }
cyclic["self"] = cyclic

describe("describeFailure", () => {
  const cases: ReadonlyArray<readonly [name: string, failure: unknown, description: string]> = [
    ["a text", "no such city", "no such city"],
    ["a tagged error without fields", new Plain(), "Plain"],
    [
      "a tagged error with fields and a message",
      new Detailed({ status: 503, secret: Redacted.make("x") }),
      `Detailed: no luck {"status":503,"secret":"<redacted>"}`
    ],
    ["an Error", new TypeError("broken"), "TypeError: broken"],
    ["an Error with fields", Object.assign(new Error("broken"), { code: "E1" }), `Error: broken {"code":"E1"}`],
    ["an Error with a cause", new Error("outer", { cause: new Error("inner") }), "Error: outer"],
    ["a nested Error", { _tag: "Wrap", error: new Error("inner") }, `Wrap {"error":"Error: inner"}`],
    ["a nested cause", { _tag: "Wrap", inside: { cause: "secret", kept: 1 } }, `Wrap {"inside":{"kept":1}}`],
    ["a plain object", { code: 1, message: "hm" }, `hm {"code":1}`],
    ["null", null, "The tool failed with null."],
    ["undefined", undefined, "The tool failed with undefined."],
    ["a BigInt", 10n, "The tool failed with 10."],
    ["a symbol", Symbol("x"), "The tool failed with a symbol."],
    [
      "an object with a BigInt and a cycle",
      { amount: 10n, loop: cyclic },
      `{"amount":"10","loop":{"name":"loop","self":"[circular]"}}`
    ],
    ["NaN in a field", { n: Number.NaN }, `{"n":"NaN"}`],
    ["a Map and a Set", { m: new Map([["a", 1]]), s: new Set([1]) }, `{"m":[["a",1]],"s":[1]}`],
    ["a Date", { at: new Date(0) }, `{"at":"1970-01-01T00:00:00.000Z"}`],
    ["a list", [1, "x"], `The tool failed with [1,"x"]`],
    ["a redacted value", Redacted.make("x"), "The tool failed with a redacted value."],
    ["an empty object", {}, "The tool failed."],
    [
      "a getter that throws",
      Object.defineProperty({ a: 1 }, "b", { enumerable: true, get: () => assert.fail() }),
      `{"a":1}`
    ],
    ["a lone surrogate", "x\ud800y", "x\ufffdy"]
  ]

  for (const [name, failure, description] of cases) {
    it(`describes ${name}`, () => {
      assert.strictEqual(describeFailure(failure), description)
    })
  }

  it("takes at most 2 kB, and cuts no character in two", () => {
    for (const unit of ["a", "ä", "€", "😀"]) {
      const description = describeFailure(unit.repeat(5_000))
      assert.isAtMost(Buffer.byteLength(description), 2048)
      assert.isAtLeast(Buffer.byteLength(description), 2040)
      assert.isTrue(description.isWellFormed())
    }
  })
})
