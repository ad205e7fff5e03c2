/**
 * The verdicts on a key, and the guard that tells them from ordinary results of a remote check.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution } from "chamvi-effect"
import { Schema } from "effect"

const verdicts = [
  EffectResolution.applied(),
  EffectResolution.applied(1),
  EffectResolution.notApplied,
  EffectResolution.unknown
]

describe("EffectResolution", () => {
  it("applied without a result is not applied with the result undefined", () => {
    assert.strictEqual(EffectResolution.applied().result, undefined)
    assert.deepStrictEqual(EffectResolution.applied(undefined).result, { value: undefined })
    assert.deepStrictEqual(EffectResolution.applied(null).result, { value: null })
    assert.deepStrictEqual(EffectResolution.applied({ id: 1 }).result, { value: { id: 1 } })
  })

  it("each verdict is one, by its tag", () => {
    assert.deepStrictEqual(verdicts.map((verdict) => verdict._tag), ["Applied", "Applied", "NotApplied", "Unknown"])
    assert.isTrue(verdicts.every(EffectResolution.is))
  })

  it("the guard takes no look-alike", () => {
    const lookAlikes: ReadonlyArray<unknown> = [
      undefined,
      null,
      "NotApplied",
      { _tag: "NotApplied" },
      { _tag: "Unknown" },
      { _tag: "Applied", result: undefined },
      { _tag: "Applied", result: { value: 1 } },
      JSON.parse(JSON.stringify(EffectResolution.applied(1))),
      EffectResolution,
      EffectResolution.applied,
      [EffectResolution.notApplied],
      { verdict: EffectResolution.notApplied },
      { [Symbol.for("chamvi-effect/EffectResolution")]: true, _tag: "NotApplied" },
      // an object that says yes to every question, as recording proxies and mocks do
      new Proxy({}, { has: () => true, get: () => "x" })
    ]
    for (const value of lookAlikes) assert.isFalse(EffectResolution.is(value))
  })

  it.prop("the guard takes no JSON value", [Schema.Json], ([value]) => {
    assert.isFalse(EffectResolution.is(value))
  })

  it("a verdict of another copy of the library is one", () => {
    const brand = Symbol.for("chamvi-effect/EffectResolution")
    assert.isTrue(EffectResolution.is({ [brand]: brand, _tag: "NotApplied" }))
  })
})
