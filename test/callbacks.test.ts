/** Callback options that answer Effects, in `generateText`: what they may do to a call, and what happens to them. */
import { expect, it } from "@effect/vitest"
import { isStepCount } from "ai"
import { Cause, Context, Data, Effect, Layer, Logger, Schema } from "effect"
import { describe } from "vitest"
import { Ai } from "../src/Ai.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, readBy, says, scripted } from "./support/model.ts"

class Log extends Context.Service<Log, { readonly lines: Array<string> }>()("Log") {
  static readonly layer = Layer.sync(Log, () => Log.of({ lines: [] }))
}
const add = (line: string) => Effect.map(Log, ({ lines }) => void lines.push(line))
const lines = Effect.map(Log, (log) => log.lines)

class Refused extends Data.TaggedError("Refused")<{ readonly why: string }> {}

const base = Layer.merge(Ai.layer, Log.layer)
const makeAdd = tool({
  inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(a + b)
})

/** A logger that keeps what it gets. */
const keeping = () => {
  const logged: Array<{ readonly message: unknown; readonly cause: Cause.Cause<unknown>; readonly level: string }> = []
  const logger = Logger.make<unknown, void>(({ cause, logLevel, message }) => {
    logged.push({ message, cause, level: logLevel })
  })
  return { logged, layer: Logger.layer([logger]) }
}

describe("notifications", () => {
  it.effect("use services of the call, in the order of what they tell, whatever their names", () =>
    Effect.gen(function*() {
      yield* generateText({
        model: scripted(calls(["add", { a: 1, b: 2 }]), says("3")),
        prompt: "1 + 2?",
        tools: { add: yield* makeAdd },
        stopWhen: isStepCount(2),
        experimental_onStart: () => add("start"),
        onStepStart: ({ stepNumber }) => add(`step ${stepNumber}`),
        experimental_onLanguageModelCallStart: () => add("model"),
        onLanguageModelCallEnd: async () => {},
        onToolExecutionStart: ({ toolCall }) => add(`tool ${toolCall.toolName}`),
        experimental_onToolCallFinish: ({ toolOutput }) => add(toolOutput.type),
        onStepFinish: (step) => add(`end ${step.finishReason}`),
        onFinish: ({ text }) => add(text)
      })
      expect(yield* lines).toEqual([
        "start",
        "step 0",
        "model",
        "tool add",
        "tool-result",
        "end tool-calls",
        "step 1",
        "model",
        "end stop",
        "3"
      ])
    }).pipe(Effect.provide(base)))

  it.effect("that die, throw, reject or fail are logged with their cause, and the call goes on", () =>
    Effect.gen(function*() {
      const { layer, logged } = keeping()
      const result = yield* generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () => Effect.die("dies"),
        onStepStart: () => {
          throw new Error("throws")
        },
        onStepEnd: () => Promise.reject(new Error("rejects")),
        onEnd: (() => Effect.fail("fails")) as never
      }).pipe(Effect.provide(layer))
      expect(result.text).toBe("hi")
      expect(logged.map(({ message }) => message)).toEqual([
        ["The callback onStart failed"],
        ["The callback onStepStart failed"],
        ["The callback onStepEnd failed"],
        ["The callback onEnd failed"]
      ])
      expect(logged.every(({ level }) => level === "Warn")).toBe(true)
      expect(logged.map(({ cause }) => Cause.squash(cause))).toEqual([
        "dies",
        new Error("throws"),
        new Error("rejects"),
        "fails"
      ])
    }).pipe(Effect.provide(base)))
})

describe("decisions", () => {
  it.effect("use services of the call, and the call goes on with what they answer", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }]), calls(["add", { a: 10, b: 2 }]), says("12"))
      const result = yield* generateText({
        model,
        prompt: "1 + 2?",
        tools: { add: yield* makeAdd },
        stopWhen: [isStepCount(9), ({ steps }) => Effect.as(add("stop?"), steps.length === 2)],
        prepareStep: ({ stepNumber }) => Effect.as(add(`prepare ${stepNumber}`), { temperature: stepNumber }),
        toolApproval: {
          add: ({ a }) => Effect.succeed(a > 5 ? { type: "denied" as const, reason: "big" } : undefined)
        },
        experimental_refineToolInput: { add: ({ a, b }) => Effect.succeed({ a, b: b * 2 }) }
      })
      expect(yield* lines).toEqual(["prepare 0", "stop?", "prepare 1", "stop?"])
      expect(model.doGenerateCalls.map(({ temperature }) => temperature)).toEqual([0, 1])
      expect(result.toolResults.map(({ output }) => output)).toEqual([5])
      expect(readBy(model)).toEqual([5])
      expect(result.steps[1]!.content.map(({ type }) => type)).toContain("tool-approval-response")
    }).pipe(Effect.provide(base)))

  it.effect("whose Effect fails end the call with the identical failure", () =>
    Effect.gen(function*() {
      const refused = new Refused({ why: "no" })
      const model = scripted(says("hi"))
      const error = yield* Effect.flip(generateText({ model, prompt: "hi", prepareStep: () => refused }))
      expect(error).toBe(refused)
      expect(model.doGenerateCalls).toEqual([])
    }).pipe(Effect.provide(base)))
})
