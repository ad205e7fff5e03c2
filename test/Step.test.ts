import { assert, describe, it } from "@effect/vitest"
import { isStepCount, type ModelMessage } from "ai"
import { Ai, defineEffectTool, EffectStore, generateText, stepOf, ToolContext } from "chamvi-effect"
import { Effect, Layer, Schema } from "effect"
import { calls, says, scripted } from "./support/model.ts"

const user: ModelMessage = { role: "user", content: "go" }
const asks = (...ids: ReadonlyArray<string>): ModelMessage => ({
  role: "assistant",
  content: ids.map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "t", input: {} }))
})
const answers = (toolCallId: string): ModelMessage => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId, toolName: "t", output: { type: "text", value: "ok" } }]
})
const requests = (toolCallId: string): ModelMessage => ({
  role: "assistant",
  content: [
    { type: "tool-call", toolCallId, toolName: "t", input: {} },
    { type: "tool-approval-request", approvalId: "1", toolCallId }
  ]
})
const approves: ModelMessage = {
  role: "tool",
  content: [{ type: "tool-approval-response", approvalId: "1", approved: true }]
}

describe("stepOf", () => {
  const table: ReadonlyArray<readonly [string, ReadonlyArray<ModelMessage>, number]> = [
    ["the first step", [user], 0],
    ["no messages at all", [], 0],
    ["a later step", [user, asks("x"), answers("x")], 1],
    ["a step that uses a toolCallId of an earlier one again", [user, asks("a"), answers("a")], 1],
    ["a call that is resumed after its approval", [user, asks("a"), approves], 0],
    ["a call of a batch that is resumed, with a sibling that has its result", [
      user,
      asks("b", "a"),
      answers("b"),
      approves
    ], 0],
    ["a resumed call in a later step", [user, asks("x"), answers("x"), asks("a"), approves], 1],
    ["an approval that is sent again after the call's result", [user, requests("a"), answers("a"), approves], 0],
    ["an approval that is sent again after further steps", [
      user,
      asks("x"),
      answers("x"),
      requests("a"),
      approves,
      answers("a"),
      { role: "assistant", content: "done" },
      approves
    ], 1],
    ["a step that uses an approved toolCallId again", [user, requests("a"), approves, answers("a")], 1],
    ["the same, with the result beside the approval", [
      user,
      requests("a"),
      { role: "tool", content: [...approves.content as [], ...answers("a").content as []] }
    ], 1],
    ["an approval of another call, sent again", [user, requests("b"), answers("b"), approves], 1],
    ["another call after an approval", [user, asks("b"), approves], 1],
    ["an assistant message that is a text", [user, { role: "assistant", content: "hm" }, user], 1]
  ]
  for (const [name, messages, step] of table) {
    it(`tells ${name}`, () => {
      assert.strictEqual(stepOf({ toolCallId: "a", messages }), step)
    })
  }

  it.effect("tells the steps of a run as the AI SDK counts them, before and after an approval", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const noted = yield* defineEffectTool({
        inputSchema: Schema.Struct({ n: Schema.Int }),
        effectKey: ({ n }, _, options) => {
          seen.push(stepOf(options))
          return `n-${n}`
        },
        execute: () => Effect.succeed("ok")
      })
      const model = scripted(calls(["noted", { n: 1 }]), calls(["noted", { n: 2 }]), says("done"))
      yield* generateText({ model, prompt: "go", stopWhen: isStepCount(3), tools: { noted } })
      assert.deepStrictEqual(seen, [0, 1])

      const waiting = yield* generateText({
        model: scripted(calls(["noted", { n: 3 }])),
        prompt: "go",
        tools: { noted },
        toolApproval: () => "user-approval"
      })
      const request = waiting.content.find((part) => part.type === "tool-approval-request")!
      yield* generateText({
        model: scripted(says("done")),
        messages: [user, ...waiting.responseMessages, {
          role: "tool",
          content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }]
        }],
        tools: { noted },
        toolApproval: () => "user-approval"
      })
      assert.deepStrictEqual(seen, [0, 1, 0])
    }).pipe(Effect.provide(Layer.mergeAll(Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })))))
})
