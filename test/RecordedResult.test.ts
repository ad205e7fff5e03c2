/**
 * The text under which a result stands in the ledger: what is written is read, and nothing else is.
 */
import { assert, describe, it } from "@effect/vitest"
import { Option, Schema } from "effect"
import * as RecordedResult from "../src/RecordedResult.ts"

const read = (text: string) => Option.getOrThrow(RecordedResult.parse(text))

describe("RecordedResult", () => {
  it.prop("a JSON value is read as it was written", [Schema.Json], ([value]) => {
    const json = JSON.stringify(value)
    const text = RecordedResult.fromJson(json)
    assert.deepStrictEqual(read(text), { _tag: "Value", value: JSON.parse(json) })
    assert.isFalse(RecordedResult.isUnavailable(text))
  })

  it("empty results are results, and differ", () => {
    const values = [undefined, null, false, 0, "", [], {}]
    const texts = values.map((value) => RecordedResult.fromJson(JSON.stringify(value)))
    assert.strictEqual(new Set(texts).size, values.length)
    assert.deepStrictEqual(texts.map(read), values.map((value) => ({ _tag: "Value" as const, value })))
    assert.strictEqual(RecordedResult.fromJson(undefined), "{\"undefined\":true}")
  })

  it("a result that looks like the ledger's own text is a result", () => {
    for (const value of [{ unavailable: "x" }, { undefined: true }, { value: 1 }, "{\"unavailable\":\"x\"}"]) {
      const text = RecordedResult.fromJson(JSON.stringify(value))
      assert.deepStrictEqual(read(text), { _tag: "Value", value })
      assert.isFalse(RecordedResult.isUnavailable(text))
    }
    const prototype = "{\"__proto__\":{\"a\":1}}"
    assert.strictEqual(
      JSON.stringify((read(RecordedResult.fromJson(prototype)) as { readonly value: unknown }).value),
      prototype
    )
  })

  it.prop("a missing result is read with its reason", [Schema.String], ([reason]) => {
    const text = RecordedResult.unavailable(reason)
    assert.isTrue(RecordedResult.isUnavailable(text))
    assert.deepStrictEqual(read(text), { _tag: "Unavailable", reason })
  })

  it("each reading gives a copy of its own", () => {
    const text = RecordedResult.fromJson("{\"list\":[1]}")
    const first = read(text) as { readonly value: { readonly list: Array<number> } }
    first.value.list.push(2)
    assert.deepStrictEqual(read(text), { _tag: "Value", value: { list: [1] } })
  })

  it("what this version does not write is not read", () => {
    const foreign = [
      "",
      " ",
      "null",
      "1",
      "\"text\"",
      "[]",
      "[{\"value\":1}]",
      "{}",
      "{\"value\":1",
      "{\"Value\":1}",
      "{\"result\":1}",
      "{\"__proto__\":{\"value\":1}}",
      "{\"undefined\":false}",
      "{\"undefined\":1}",
      "{\"unavailable\":1}",
      "{\"unavailable\":null}",
      // what a newer version could mean by more members is unknown
      "{\"value\":1,\"encoding\":\"gzip\"}",
      "{\"undefined\":true,\"value\":1}",
      "{\"unavailable\":\"x\",\"value\":1}"
    ]
    for (const text of foreign) assert.isTrue(Option.isNone(RecordedResult.parse(text)), text)
  })
})
