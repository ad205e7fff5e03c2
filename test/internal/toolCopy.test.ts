import { assert, describe, it } from "@effect/vitest"
import { copyHidden, copyTool, hideOnTool, mapTools } from "../../src/internal/toolCopy.ts"

const mark = Symbol("mark")

describe("copies of tools", () => {
  it("keep the prototype, symbols, accessors and properties that are not enumerable", () => {
    const prototype = { inherited: true }
    const args = {}
    const original = hideOnTool(
      Object.defineProperties(Object.create(prototype), {
        args: { value: args, enumerable: true },
        experimental_toolCaller: { value: "caller", enumerable: false },
        computed: { get: () => 7, enumerable: true },
        [Symbol.for("vercel.ai.toolSearch")]: { value: true, enumerable: true }
      }) as object & { execute?: unknown },
      mark,
      "hidden"
    )
    const copy = copyTool(original, { execute: 1 }) as unknown as Record<PropertyKey, unknown>
    assert.strictEqual(Object.getPrototypeOf(copy), prototype)
    assert.strictEqual(copy["args"], args)
    assert.deepStrictEqual(
      [
        copy["execute"],
        copy["experimental_toolCaller"],
        copy["computed"],
        copy[mark],
        copy[Symbol.for("vercel.ai.toolSearch")]
      ],
      [1, "caller", 7, "hidden", true]
    )
    assert.deepStrictEqual(Object.keys(copy), ["args", "computed", "execute"])
    assert.isUndefined(original.execute)
  })

  it("hide a value from spreads and JSON", () => {
    const tool = hideOnTool({ a: 1 }, mark, "hidden")
    assert.deepStrictEqual(Reflect.ownKeys({ ...tool }), ["a"])
    assert.strictEqual(JSON.stringify(tool), `{"a":1}`)
  })

  it("keep every name of a set, whatever it is", () => {
    const names = ["__proto__", "constructor", "toString", "", "10", "a"]
    const tools = Object.fromEntries(names.map((name) => [name, { name }]))
    const mapped = mapTools(tools, (tool, name) => [tool.name, name])
    assert.deepStrictEqual(Object.keys(mapped).sort(), [...names].sort())
    for (const name of names) assert.deepStrictEqual(Object.getOwnPropertyDescriptor(mapped, name)?.value, [name, name])
  })

  it("keep the prototype of a set", () => {
    const mapped = mapTools(Object.assign(Object.create(null) as object, { ["__proto__"]: 1, a: 2 }), (tool) => tool)
    assert.isNull(Object.getPrototypeOf(mapped))
    assert.strictEqual(mapped["a"], 2)
  })

  it("take hidden properties and symbols over, but nothing that this library hid, and nothing that is there", () => {
    const symbol = Symbol.for("vercel.ai.toolSearch")
    const from = Object.defineProperties({ shown: 1 }, {
      hidden: { value: "hidden" },
      taken: { value: "from" },
      [symbol]: { value: true, enumerable: true },
      [Symbol.for("chamvi-effect/EffectToolDefinition")]: { value: "ours" }
    })
    const to = copyHidden(from, { taken: "to" }) as Record<PropertyKey, unknown>
    assert.deepStrictEqual(Reflect.ownKeys(to), ["taken", "hidden", symbol])
    assert.deepStrictEqual([to["taken"], to["hidden"], to[symbol]], ["to", "hidden", true])
  })
})
