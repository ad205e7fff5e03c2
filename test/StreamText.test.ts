/** `streamText`: what its readers get. The AI SDK's own result, over the same model, says what is right. */
import { assert, describe, it } from "@effect/vitest"
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import * as ai from "ai"
import { Effect, Fiber, Layer, Logger, Schema, Stream } from "effect"
import { Ai } from "../src/Ai.ts"
import * as Output from "../src/Output.ts"
import { streamText, type StreamTextResult } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { begins, calls, readBy, says, streaming, type Turn } from "./support/streamModel.ts"

type AnyStream = Stream.Stream<unknown, unknown>
type Loose = Record<string, Effect.Effect<unknown, unknown>> & {
  readonly textStream: AnyStream
  readonly stream: AnyStream
}
const loose = (result: unknown) => result as Loose

/** What would differ from call to call. */
const fixed = () => {
  let id = 0
  let call = 0
  return {
    now: () => 0,
    generateId: () => `id-${++id}`,
    generateCallId: () => `call-id-${++call}`
  }
}

const withoutTimes = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value ?? null, (key, value: unknown) =>
      key === "timestamp" || key === "toolExecutionMs" ? "then" : value)
  )

const allOf = <A>(items: AsyncIterable<A>): Effect.Effect<Array<A>> =>
  Effect.promise(async () => {
    const all: Array<A> = []
    for await (const item of items) all.push(item)
    return all
  })

const rich: ReadonlyArray<LanguageModelV4StreamPart> = [
  { type: "stream-start", warnings: [{ type: "other", message: "careful" }] },
  { type: "response-metadata", id: "r-1", modelId: "m-1", timestamp: new Date(0) },
  { type: "reasoning-start", id: "r" },
  { type: "reasoning-delta", id: "r", delta: "hm" },
  { type: "reasoning-delta", id: "r", delta: "m" },
  { type: "reasoning-end", id: "r", providerMetadata: { p: { signed: true } } },
  { type: "source", sourceType: "url", id: "s", url: "https://example.com/", title: "An example" },
  { type: "file", mediaType: "text/plain", data: { type: "data", data: "aGk=" } },
  ...calls(["add", { a: 1, b: 2 }], ["fails", {}], ["unknown", {}]).slice(1)
]

const turns = (): ReadonlyArray<Turn> => [rich, says("It ", "is ", "3.")]

const tools = Effect.gen(function*() {
  const add = yield* tool({
    inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    execute: ({ a, b }) => Effect.succeed(a + b)
  })
  const fails = yield* tool({
    inputSchema: Schema.Struct({}),
    execute: () => Effect.fail("no luck")
  })
  return { add, fails }
})

const options = (tools: ai.ToolSet, given: ReadonlyArray<Turn>) => ({
  model: streaming(...given),
  prompt: "1 + 2?",
  tools,
  stopWhen: ai.isStepCount(3),
  _internal: fixed()
})

const promises = [
  "text",
  "content",
  "reasoning",
  "reasoningText",
  "files",
  "sources",
  "toolCalls",
  "staticToolCalls",
  "dynamicToolCalls",
  "toolResults",
  "staticToolResults",
  "dynamicToolResults",
  "finishReason",
  "rawFinishReason",
  "usage",
  "totalUsage",
  "warnings",
  "steps",
  "finalStep",
  "request",
  "response",
  "responseMessages",
  "providerMetadata",
  "output"
] as const satisfies ReadonlyArray<keyof StreamTextResult>

const quiet = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const before = globalThis.AI_SDK_LOG_WARNINGS
      globalThis.AI_SDK_LOG_WARNINGS = false
      return before
    }),
    () => effect,
    (before) =>
      Effect.sync(() => {
        globalThis.AI_SDK_LOG_WARNINGS = before
      })
  )

const live = Layer.merge(Ai.layer, Logger.layer([]))

describe("streamText", () => {
  it.effect("answers what the AI SDK's result answers, member by member", () =>
    quiet(Effect.gen(function*() {
      const made = yield* tools
      const ours = loose(yield* streamText(options(made, turns())))
      const theirs = ai.streamText(options(made, turns())) as unknown as Record<string, PromiseLike<unknown>>
      for (const name of promises) {
        const expected = yield* Effect.promise(async () => theirs[name])
        assert.deepStrictEqual(withoutTimes(yield* ours[name]!), withoutTimes(expected), name)
      }
    })).pipe(Effect.provide(live)))

  it.effect("has the AI SDK's parts in its stream, and its pieces of text", () =>
    quiet(Effect.gen(function*() {
      const made = yield* tools
      const parts = yield* Stream.runCollect(loose(yield* streamText(options(made, turns()))).stream)
      const theirs = ai.streamText(options(made, turns()))
      const expected = yield* allOf(theirs.stream)
      assert.deepStrictEqual(withoutTimes(parts), withoutTimes(expected))
      const texts = yield* Stream.runCollect((yield* streamText(options(made, turns()))).textStream)
      assert.deepStrictEqual(texts, ["It ", "is ", "3."])
    })).pipe(Effect.provide(live)))

  it.effect("makes the call when it is run, as the AI SDK does, and makes it once for all readers", () =>
    Effect.gen(function*() {
      const model = streaming(says("a", "b", "c"))
      const result = yield* streamText({ model, prompt: "go" })
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.strictEqual(model.doStreamCalls.length, 1)
      const [parts, texts, text, , usage] = yield* Effect.all([
        Stream.runCollect(result.stream),
        Stream.runCollect(result.textStream),
        result.text,
        result.consumeStream,
        result.usage
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual(texts, ["a", "b", "c"])
      assert.strictEqual(parts.filter(({ type }) => type === "text-delta").length, 3)
      assert.strictEqual(text, "abc")
      assert.strictEqual(usage.totalTokens, 3)
      assert.strictEqual(model.doStreamCalls.length, 1)
    }).pipe(Effect.provide(live)))

  it.effect("gives a reader that comes late all that there was, with the pieces of a text in one", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: streaming(says("a", "b", "c")), prompt: "go" })
      yield* result.consumeStream
      assert.deepStrictEqual(yield* Stream.runCollect(result.textStream), ["abc"])
      assert.deepStrictEqual(yield* Stream.runCollect(result.textStream), ["abc"])
      const types = (yield* Stream.runCollect(result.stream)).map(({ type }) => type)
      assert.deepStrictEqual(types, [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish"
      ])
      assert.deepStrictEqual(yield* Stream.runCollect(result.partialOutputStream), ["abc"])
      assert.strictEqual(yield* result.text, "abc")
    }).pipe(Effect.provide(live)))

  it.effect("gives a reader that comes in the middle what was, and then what comes", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: streaming(says("a", "b", "c", "d")), prompt: "go" })
      let second: Fiber.Fiber<Array<string>, unknown> | undefined
      const first = yield* Stream.runCollect(Stream.tap(result.textStream, (text) =>
        text !== "b" ? Effect.void : Effect.map(
          Effect.forkChild(Stream.runCollect(result.textStream), { startImmediately: true }),
          (fiber) => {
            second = fiber
          }
        )))
      assert.deepStrictEqual(first, ["a", "b", "c", "d"])
      assert.strictEqual((yield* Fiber.join(second!)).join(""), "abcd")
    }).pipe(Effect.provide(live)))

  it.effect("keeps the identical failure of a tool in its parts and steps, and tells the model of it", () =>
    Effect.gen(function*() {
      const failure = { _tag: "OutOfStock", item: "tea", count: 3n }
      const order = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail(failure) })
      const model = streaming(calls(["order", {}]), says("Sorry."))
      const seen: Array<unknown> = []
      const keep = (part: { readonly type: string; readonly error?: unknown }) =>
        void (part.type === "tool-error" && seen.push(part.error))
      const result = yield* streamText({
        model,
        prompt: "Order tea.",
        tools: { order },
        stopWhen: ai.isStepCount(2),
        onChunk: ({ chunk }) => keep(chunk),
        onStepEnd: ({ content }) => content.forEach(keep),
        onToolExecutionEnd: ({ toolOutput }) => keep(toolOutput)
      })
      yield* Stream.runForEach(result.stream, (part) => Effect.sync(() => keep(part)))
      yield* Stream.runForEach(result.stream, (part) => Effect.sync(() => keep(part)))
      ;(yield* result.steps).forEach(({ content }) => content.forEach(keep))
      assert.strictEqual(seen.length, 6)
      assert.isTrue(seen.every((error) => error === failure))
      assert.match(String(readBy(model)[0]), /OutOfStock.*tea/)
    }).pipe(Effect.provide(live)))

  it.effect("answers the messages of an approved call that it ran before the first step", () =>
    Effect.gen(function*() {
      const { add } = yield* tools
      const messages: Array<ai.ModelMessage> = [
        { role: "user", content: "1 + 2?" },
        {
          role: "assistant",
          content: [
            { type: "tool-call", toolCallId: "c", toolName: "add", input: { a: 1, b: 2 } },
            { type: "tool-approval-request", approvalId: "p", toolCallId: "c" }
          ]
        },
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: "p", approved: true }] }
      ]
      const model = streaming(says("3"))
      const result = yield* streamText({ model, messages, tools: { add }, toolApproval: { add: "user-approval" } })
      const [tools_, assistant] = yield* result.responseMessages
      assert.strictEqual(tools_?.role, "tool")
      assert.strictEqual(assistant?.role, "assistant")
      assert.deepStrictEqual(readBy(model), [3])
    }).pipe(Effect.provide(live)))

  it.effect("uses the defaults of its Ai, and fails at once where nobody names a model", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(streamText({ prompt: "go" }))
      assert.strictEqual(error.reason, "InvalidArgumentError")
      const text = Effect.flatMap(streamText({ prompt: "go" }), (result) => result.text)
      assert.strictEqual(
        yield* text.pipe(Effect.scoped, Effect.provide(Ai.layerDefaults({ model: streaming(says("hi")) }))),
        "hi"
      )
    }).pipe(Effect.provide(live)))

  describe("options", () => {
    it.effect("experimental_transform and smoothStream change the stream for all readers", () =>
      Effect.gen(function*() {
        const shout: ai.StreamTextTransform<{}> = () =>
          new TransformStream({
            transform: (part, controller) =>
              controller.enqueue(part.type === "text-delta" ? { ...part, text: part.text.toUpperCase() } : part)
          })
        const result = yield* streamText({
          model: streaming(says("one t", "wo thr", "ee")),
          prompt: "go",
          experimental_transform: [shout, ai.smoothStream({ delayInMs: null })]
        })
        assert.deepStrictEqual(yield* Stream.runCollect(result.textStream), ["ONE ", "TWO ", "THREE"])
        assert.strictEqual(yield* result.text, "ONE TWO THREE")
      }).pipe(Effect.provide(live)))

    it.effect("includeRawChunks puts the provider's own chunks into the stream", () =>
      Effect.gen(function*() {
        const raw: LanguageModelV4StreamPart = { type: "raw", rawValue: { event: 1 } }
        const model = streaming([...begins("a"), raw, ...says().slice(2)])
        const result = yield* streamText({ model, prompt: "go", includeRawChunks: true })
        const parts = yield* Stream.runCollect(result.stream)
        assert.deepStrictEqual(parts.filter(({ type }) => type === "raw"), [{ type: "raw", rawValue: { event: 1 } }])
        assert.strictEqual(model.doStreamCalls[0]?.includeRawChunks, true)
      }).pipe(Effect.provide(live)))

    it.effect("streamRetries begins a stream anew, and its output with it", () =>
      Effect.gen(function*() {
        const turns = () => [
          [...begins(`{"a":`, `"x`), { type: "error", error: new Error("lost") } as const],
          says(`{"a":`, `"y"`, `}`)
        ]
        const options = () => ({
          model: streaming(...turns()),
          prompt: "go",
          streamRetries: 1,
          output: Output.object({ schema: Schema.Struct({ a: Schema.String }) })
        })
        const result = yield* streamText(options())
        const theirs = ai.streamText({ ...options(), onError: () => {} })
        const expected = yield* allOf(theirs.partialOutputStream)
        assert.deepStrictEqual(yield* Stream.runCollect(result.partialOutputStream), expected)
        assert.deepStrictEqual(expected.at(-1), { a: "y" })
        assert.deepStrictEqual(yield* result.output, { a: "y" })
      }).pipe(Effect.provide(live)))

    it.effect("onError may ask for a retry by an Effect", () =>
      Effect.gen(function*() {
        const result = yield* streamText({
          model: streaming([...begins("a"), { type: "error", error: new Error("lost") }], says("b")),
          prompt: "go",
          streamRetries: 0,
          onError: () => Effect.succeed({ retry: true } as const)
        })
        assert.strictEqual(yield* result.text, "b")
      }).pipe(Effect.provide(live)))
  })

  describe("output", () => {
    const Meeting = Schema.Struct({ title: Schema.String, at: Schema.Date })
    const json = [`{"elements":[{"title":"a","at":"2030-01-01T00:00:00.000Z"}`, `,{"title":"b",`, `"at":"2031-01-01T`]
    const pieces = [...json, `00:00:00.000Z"}`, `]}`]

    it.effect("comes in parts, as elements, and decoded at the end", () =>
      Effect.gen(function*() {
        const output = Output.array({ element: Meeting })
        const result = yield* streamText({ model: streaming(says(...pieces)), prompt: "go", output })
        const elements = yield* Stream.runCollect(result.elementStream)
        assert.deepStrictEqual(elements.map(({ at, title }) => [title, at.getUTCFullYear()]), [["a", 2030], [
          "b",
          2031
        ]])
        assert.deepStrictEqual((yield* result.output).map(({ at }) => at.getUTCFullYear()), [2030, 2031])
        const theirs = ai.streamText({ model: streaming(says(...pieces)), prompt: "go", output })
        const expected = yield* allOf(theirs.partialOutputStream)
        const again = yield* streamText({ model: streaming(says(...pieces)), prompt: "go", output })
        assert.deepStrictEqual(yield* Stream.runCollect(again.partialOutputStream), expected)
        assert.isAbove(expected.length, 1)
      }).pipe(Effect.provide(live)))

    it.effect("of an object grows in its parts, each told once", () =>
      Effect.gen(function*() {
        const options = () => ({
          model: streaming(says(`{"title":"La`, `unch"`, ` `, `,"at":"2030-01-02T00:00:00.000Z"}`)),
          prompt: "go",
          output: Output.object({ schema: Meeting })
        })
        const result = yield* streamText(options())
        const expected = yield* allOf(ai.streamText(options()).partialOutputStream)
        assert.deepStrictEqual(yield* Stream.runCollect(result.partialOutputStream), expected)
        assert.strictEqual((yield* result.output).at.getUTCFullYear(), 2030)
      }).pipe(Effect.provide(live)))

    it.effect("counts anew in each step", () =>
      Effect.gen(function*() {
        const { add } = yield* tools
        const first = [...begins("one"), ...says().slice(2, -1), ...calls(["add", { a: 1, b: 2 }]).slice(1)]
        const options = () => ({
          model: streaming(first, says("two")),
          prompt: "go",
          tools: { add },
          stopWhen: ai.isStepCount(2)
        })
        const result = yield* streamText(options())
        const expected = yield* allOf(ai.streamText(options()).partialOutputStream)
        assert.deepStrictEqual(yield* Stream.runCollect(result.partialOutputStream), expected)
        assert.deepStrictEqual(expected, ["one", "two"])
      }).pipe(Effect.provide(live)))

    it.effect("that does not fit its schema is a failure, with the text that the model wrote", () =>
      Effect.gen(function*() {
        const output = Output.object({ schema: Meeting })
        const result = yield* streamText({ model: streaming(says(`{"title":1}`)), prompt: "go", output })
        const error = yield* Effect.flip(result.output)
        assert.strictEqual(error.reason, "NoObjectGeneratedError")
        assert.isTrue(ai.NoObjectGeneratedError.isInstance(error.cause))
        assert.strictEqual(yield* result.text, `{"title":1}`)
      }).pipe(Effect.provide(live)))

    it.effect("that is no list has no elements: their stream fails", () =>
      Effect.gen(function*() {
        const result = yield* streamText({ model: streaming(says("a")), prompt: "go" })
        const error = yield* Effect.flip(Stream.runCollect(result.elementStream))
        assert.strictEqual(error.reason, "UnsupportedFunctionalityError")
        assert.strictEqual(yield* result.text, "a")
      }).pipe(Effect.provide(live)))
  })
})
