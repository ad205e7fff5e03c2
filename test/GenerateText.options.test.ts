/** `generateText` takes every option of the AI SDK's: what plain `ai` makes of them all says what is right. */
import { expect, it } from "@effect/vitest"
import * as ai from "ai"
import { Effect, Schema } from "effect"
import { describe } from "vitest"
import type { DecisionName, NotificationName } from "../src/ai/callbackTypes.ts"
import type { GenerateTextSdkOptions } from "../src/ai/callTypes.ts"
import { Ai } from "../src/Ai.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, says, scripted } from "./support/model.ts"

type Plain = Exclude<
  keyof GenerateTextSdkOptions<ai.ToolSet, Record<string, unknown>, ai.OutputInterface>,
  NotificationName | DecisionName | "prompt" | "messages" | "instructions" | "system" | "tools" | "model"
>

/** All options but callbacks, each with a value that shows. `satisfies` holds the list to the AI SDK's. */
const options = () => {
  let id = 0
  return {
    toolChoice: "required",
    activeTools: ["who", "other"],
    toolOrder: ["who"],
    toolCallConcurrency: 1,
    allowSystemInMessages: true,
    maxOutputTokens: 100,
    temperature: 0.1,
    topP: 0.2,
    topK: 3,
    presencePenalty: 0.4,
    frequencyPenalty: 0.5,
    stopSequences: ["stop"],
    seed: 6,
    reasoning: "low",
    maxRetries: 1,
    abortSignal: new AbortController().signal,
    timeout: { totalMs: 100_000 },
    headers: { "x-seven": "7" },
    providerOptions: { provider: { eight: 8 } },
    output: ai.Output.json({ name: "nine" }),
    telemetry: { functionId: "ten", isEnabled: false },
    experimental_telemetry: { functionId: "eleven", isEnabled: false },
    runtimeContext: { tenant: 12 },
    toolsContext: { who: { name: "thirteen" } },
    experimental_sandbox: { kind: "fourteen" } as never,
    experimental_steering: ai.experimental_createSteering(),
    experimental_toolCallers: {},
    experimental_toolApprovalSecret: "fifteen",
    include: { requestBody: true, responseBody: true, requestMessages: true },
    experimental_include: { requestBody: false },
    _internal: { generateId: () => `id-${++id}`, generateCallId: () => `call-${++id}`, now: () => 0 }
  } as const satisfies Record<Plain, unknown>
}

const callbackNames = [
  "onStart",
  "onStepStart",
  "onLanguageModelCallStart",
  "onLanguageModelCallEnd",
  "onToolExecutionStart",
  "onToolExecutionEnd",
  "onStepEnd",
  "onEnd"
]
const deprecatedNames = [
  "experimental_onStart",
  "experimental_onStepStart",
  "experimental_onLanguageModelCallStart",
  "experimental_onLanguageModelCallEnd",
  "experimental_onToolCallStart",
  "experimental_onToolCallFinish",
  "onStepFinish",
  "onFinish"
]

/** As JSON, without what differs from run to run. */
const shown = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, value: unknown) =>
      key === "timestamp" || key === "toolExecutionMs" || key === "abortSignal" ? undefined : value)
  )

const who = tool({
  inputSchema: Schema.Struct({}),
  contextSchema: Schema.Struct({ name: Schema.String }),
  execute: (_, { context, experimental_sandbox }) =>
    Effect.succeed({ ...context, sandbox: JSON.stringify(experimental_sandbox) })
})
const other = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed("other") })

/** What a call does with the options: what the model is asked, what callbacks are told, and what comes of it. */
const observed = (names: ReadonlyArray<string>, run: (options: object) => Effect.Effect<unknown, unknown, Ai>) =>
  Effect.gen(function*() {
    const model = scripted(calls(["who", {}], ["other", {}]), says(`{"a":1}`))
    const told: Array<unknown> = []
    const callbacks = Object.fromEntries(names.map((name) => [name, (event: unknown) => {
      told.push([name, shown(event)])
    }]))
    const decided: Array<string> = []
    const result = yield* run({
      model,
      messages: [{ role: "system", content: "be brief" }, { role: "user", content: "who?" }],
      tools: { who: yield* who, other: yield* other },
      ...options(),
      ...callbacks,
      stopWhen: ({ steps }: { readonly steps: ReadonlyArray<unknown> }) => steps.length === 3,
      prepareStep: ({ stepNumber }: { readonly stepNumber: number }) => {
        decided.push(`step ${stepNumber}`)
        return stepNumber === 1 ? { toolChoice: "auto" } : {}
      },
      toolApproval: ({ toolCall }: { readonly toolCall: { readonly toolName: string } }) => {
        decided.push(`approve ${toolCall.toolName}`)
      }
    })
    const { output, text, toolResults } = result as ai.GenerateTextResult<ai.ToolSet, {}, ai.OutputInterface>
    return { asked: shown(model.doGenerateCalls), told, decided, result: shown({ output, text, toolResults }) }
  })

describe("generateText", () => {
  for (const [what, names] of [["callbacks", callbackNames], ["deprecated callbacks", deprecatedNames]] as const) {
    it.effect(`passes every option of the AI SDK's through, and ${what}`, () =>
      Effect.gen(function*() {
        const right = yield* observed(names, (options) => Effect.promise(() => ai.generateText(options as never)))
        const ours = yield* observed(names, (options) => generateText(options as never))
        expect(ours).toEqual(right)
        expect(right.told.length).toBe(names.length + 6)
        expect(right.decided).toEqual(["step 0", "approve who", "approve other", "step 1"])
        expect(JSON.stringify(right.result)).toMatch(/thirteen.*fourteen/)
      }).pipe(Effect.provide(Ai.layer)))
  }

  it.effect("prefers the options that deprecated ones are aliases of", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      yield* generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () => Effect.sync(() => void told.push("onStart")),
        experimental_onStart: () => Effect.sync(() => void told.push("experimental_onStart")),
        onEnd: () => Effect.sync(() => void told.push("onEnd")),
        onFinish: () => Effect.sync(() => void told.push("onFinish"))
      })
      expect(told).toEqual(["onStart", "onEnd"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("tells onStepError of a step that fails", () =>
    Effect.gen(function*() {
      const told: Array<unknown> = []
      const failing = scripted(() => Promise.reject(new Error("no model")))
      const error = yield* Effect.flip(generateText({
        model: failing,
        prompt: "hi",
        maxRetries: 0,
        onStepError: ({ error }) => Effect.sync(() => void told.push(error))
      }))
      expect(told).toEqual([error.cause])
    }).pipe(Effect.provide(Ai.layer)))
})
