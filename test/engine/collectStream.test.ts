import type { LanguageModelV4StreamPart, LanguageModelV4StreamResult } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { collectStream } from "../../src/ai/collectStream.ts"
import type { StepPart } from "../../src/ai/StepPart.ts"
import { provided, says } from "../support/streamModel.ts"

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 2, text: 2, reasoning: undefined }
}
const finish: LanguageModelV4StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "end" },
  usage,
  providerMetadata: { test: { finished: true } }
}

const collected = (
  parts: ReadonlyArray<LanguageModelV4StreamPart>,
  rest: Partial<LanguageModelV4StreamResult> = {}
) => {
  const told: Array<StepPart> = []
  return Effect.map(
    collectStream({ stream: provided(parts).stream, ...rest }, (part) => Effect.sync(() => void told.push(part))),
    (answer) => ({ answer, told })
  )
}

describe("an answer out of a model's stream", () => {
  it.effect("is what the model would have answered at once", () =>
    Effect.gen(function*() {
      const source = { type: "source", sourceType: "url", id: "s", url: "https://example.com" } as const
      const file = { type: "file", mediaType: "text/plain", data: { type: "data", data: "aGk=" } } as const
      const custom = { type: "custom", kind: "test.kind" } as const
      const call = { type: "tool-call", toolCallId: "a", toolName: "add", input: `{"a":1}` } as const
      const search = { ...call, toolCallId: "b", toolName: "search", input: "", providerExecuted: true } as const
      const found = { type: "tool-result", toolCallId: "b", toolName: "search", result: ["x"] } as const
      const failed = { ...found, result: "no", isError: true } as const
      const asks = { type: "tool-approval-request", approvalId: "p", toolCallId: "b" } as const
      const { answer, told } = yield* collected([
        { type: "stream-start", warnings: [{ type: "other", message: "careful" }] },
        { type: "response-metadata", id: "r", modelId: "m" },
        { type: "text-start", id: "1", providerMetadata: { test: { first: true } } },
        { type: "reasoning-start", id: "1" },
        { type: "text-delta", id: "1", delta: "Hel" },
        { type: "reasoning-delta", id: "1", delta: "Hm" },
        { type: "text-delta", id: "1", delta: "lo" },
        { type: "reasoning-end", id: "1", providerMetadata: { test: { signature: "x" } } },
        { type: "text-end", id: "1" },
        { type: "tool-input-start", id: "a", toolName: "add" },
        { type: "tool-input-delta", id: "a", delta: `{"a":1}` },
        { type: "tool-input-end", id: "a" },
        call,
        search,
        asks,
        found,
        failed,
        source,
        file,
        custom,
        // the id of a block that has ended
        { type: "text-start", id: "1" },
        { type: "text-delta", id: "1", delta: "!" },
        { type: "text-end", id: "1" },
        { type: "ping" },
        { type: "raw", rawValue: {} },
        finish
      ], { request: { body: "sent" }, response: { headers: { a: "b" } } })
      expect(answer).toEqual({
        content: [
          { type: "text", text: "Hello", providerMetadata: { test: { first: true } } },
          { type: "reasoning", text: "Hm", providerMetadata: { test: { signature: "x" } } },
          call,
          search,
          asks,
          found,
          failed,
          source,
          file,
          custom,
          { type: "text", text: "!" }
        ],
        finishReason: { unified: "stop", raw: "end" },
        usage,
        providerMetadata: { test: { finished: true } },
        warnings: [{ type: "other", message: "careful" }],
        request: { body: "sent" },
        response: { id: "r", modelId: "m", headers: { a: "b" } }
      })
      expect(told.map(({ type }) => type)).toEqual([
        "text-start",
        "reasoning-start",
        "text-delta",
        "reasoning-delta",
        "text-delta",
        "reasoning-end",
        "text-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-end",
        // the run's own call, and the file, are told when the answer is stored
        "tool-call",
        "tool-approval-request",
        "tool-result",
        "tool-error",
        "source",
        "custom",
        "text-start",
        "text-delta",
        "text-end"
      ])
      expect(told.find(({ type }) => type === "tool-call")).toMatchObject({ toolName: "search", input: {} })
    }))

  it.effect("is none where a part says that it failed, or where the stream ends without an end", () =>
    Effect.gen(function*() {
      const error = new Error("overloaded")
      expect(yield* Effect.flip(collected([{ type: "text-start", id: "1" }, { type: "error", error }, finish]))).toBe(
        error
      )
      expect(yield* Effect.flip(collected(says("Hello").slice(0, -1)))).toMatchObject({
        message: "The model's stream ended before its answer was finished."
      })
    }))

  it.live("waits for those who are told, and cancels the stream where nobody waits for it any more", () =>
    Effect.gen(function*() {
      const source = provided(says("a", "b", "c"), "wait")
      const told = yield* Deferred.make<void>()
      const reading = yield* Effect.forkChild(
        collectStream(
          { stream: source.stream },
          (part) =>
            part.type === "text-delta" ? Effect.andThen(Deferred.succeed(told, undefined), Effect.never) : Effect.void
        )
      )
      yield* Deferred.await(told)
      expect(source.pulled()).toBeLessThanOrEqual(4)
      yield* Fiber.interrupt(reading)
      expect(Exit.isFailure(yield* Fiber.await(reading))).toBe(true)
      expect(source.cancelled()).toBe(true)
    }))
})
