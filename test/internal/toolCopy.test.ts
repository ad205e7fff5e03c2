import { assert, describe, it } from "@effect/vitest"
import { copyTool, hideOnTool, mapTools } from "../../src/internal/toolCopy.ts"

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
})
