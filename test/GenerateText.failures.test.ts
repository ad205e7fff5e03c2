/** What becomes of a tool that fails: the parts of the result, and what the model reads. */
import { assert, describe, it } from "@effect/vitest"
import { isStepCount } from "ai"
import { Data, Effect, Redacted, Schema } from "effect"
import { Ai } from "../src/Ai.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, readBy, says, scripted } from "./support/model.ts"

const failing = (effect: Effect.Effect<unknown, unknown>) =>
  tool({ inputSchema: Schema.Struct({}), execute: () => Effect.asVoid(effect) })

const toolErrors = (result: { readonly content: ReadonlyArray<{ readonly type: string; readonly error?: unknown }> }) =>
  result.content.flatMap((part) => part.type === "tool-error" ? [part.error] : [])

class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: number
  readonly token: Redacted.Redacted
  readonly cause?: unknown
}> {}

describe("generateText", () => {
  const cyclic: Record<string, unknown> = {}
  cyclic["self"] = cyclic
  const values: ReadonlyArray<readonly [string, unknown]> = [
    ["a tagged error", new RateLimited({ retryAfter: 30, token: Redacted.make("secret") })],
    ["an Error", new Error("broken")],
    ["a string", "no such city"],
    ["null", null],
    ["undefined", undefined],
    ["a number", 42],
    ["NaN", Number.NaN],
    ["a BigInt", 10n],
    ["an object with a BigInt", { amount: 10n }],
    ["a cyclic object", cyclic],
    ["a symbol", Symbol("why")],
    ["a function", () => 1],
    ["an object with a throwing toJSON", { toJSON: () => assert.fail("toJSON") }],
    ["an Error with a throwing toString", Object.assign(new Error("x"), { toString: () => assert.fail("toString") })],
    [
      "an Error with a throwing message",
      Object.defineProperty(new Error(), "message", { get: () => assert.fail("get") })
    ]
  ]

  for (const [name, value] of values) {
    for (
      const [kind, effect] of [
        ["failure", Effect.fail(value)],
        ["defect", Effect.die(value)],
        [
          "exception",
          Effect.suspend((): Effect.Effect<never> => {
            throw value
          })
        ]
      ] as const
    ) {
      it.effect(`makes of ${name} as a ${kind} a tool-error with the identical value, and goes on`, () =>
        Effect.gen(function*() {
          const model = scripted(calls(["broken", {}]), says("sorry"))
          const broken = yield* failing(effect)
          const seen: Array<unknown> = []
          const result = yield* generateText({
            model,
            prompt: "go",
            tools: { broken },
            stopWhen: [isStepCount(2), ({ steps }) => {
              seen.push(...steps.flatMap((step) => toolErrors(step)))
              return false
            }],
            prepareStep: ({ steps }) => {
              seen.push(...steps.flatMap((step) => toolErrors(step)))
              return undefined
            },
            onToolExecutionEnd: ({ toolOutput }) => {
              seen.push(...toolErrors({ content: [toolOutput] }))
            },
            onStepEnd: (step) => {
              seen.push(...toolErrors(step))
            },
            onEnd: ({ steps }) => {
              seen.push(...steps.flatMap((step) => toolErrors(step)))
            }
          })
          const errors = toolErrors(result)
          assert.strictEqual(errors.length, 1)
          assert.isTrue(Object.is(errors[0], value))
          assert.isAtLeast(seen.length, 5)
          for (const each of seen) assert.isTrue(Object.is(each, value))
          assert.strictEqual(result.text, "sorry")
        }).pipe(Effect.provide(Ai.layer)))
    }
  }

  it.effect("ends with an empty text after a failing tool, with the default stop condition", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["broken", {}]))
      const result = yield* generateText({ model, prompt: "go", tools: { broken: yield* failing(Effect.fail("no")) } })
      assert.strictEqual(result.text, "")
      assert.deepStrictEqual(toolErrors(result), ["no"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("tells the model what happened: tag and fields, without the cause and redacted values", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["broken", {}]), says("sorry"))
      const error = new RateLimited({
        retryAfter: 30,
        token: Redacted.make("hunter2"),
        cause: new Error("a stranger's secret")
      })
      const broken = yield* failing(Effect.fail(error))
      yield* generateText({ model, prompt: "go", tools: { broken }, stopWhen: isStepCount(2) })
      assert.deepStrictEqual(readBy(model), [`RateLimited {"retryAfter":30,"token":"<redacted>"}`])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("tells the model at most 2 kB of a failure", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["broken", {}]), says("sorry"))
      const broken = yield* failing(Effect.fail({ _tag: "Long", text: "ä".repeat(10_000) }))
      yield* generateText({ model, prompt: "go", tools: { broken }, stopWhen: isStepCount(2) })
      const [text] = readBy(model)
      assert.isAtMost(Buffer.byteLength(String(text)), 2048)
      assert.isAtLeast(Buffer.byteLength(String(text)), 2000)
      assert.match(String(text), /^Long \{"text":"ä+…$/)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("makes a tool-error of a result that JSON cannot carry, where the types were not asked", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["count", {}]), says("sorry"))
      const count = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.succeed({ count: 10n } as unknown as { count: number })
      })
      const result = yield* generateText({ model, prompt: "go", tools: { count }, stopWhen: isStepCount(2) })
      assert.match(String(toolErrors(result)[0]), /done its work, but its result cannot be given.*outputSchema/)
      assert.strictEqual(result.text, "sorry")
    }).pipe(Effect.provide(Ai.layer)))
})
