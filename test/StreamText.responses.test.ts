/** `streamText` as the AI SDK's UI message stream: in its own chunks, and over a real HTTP server. */
import { assert, describe, it } from "@effect/vitest"
import * as ai from "ai"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Schema, Stream } from "effect"
import { HttpClient, HttpEffect, HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { localServer } from "../examples/support/localServer.ts"
import { Ai } from "../src/Ai.ts"
import { streamText } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { begins, calls, provided, says, streaming, type Turn } from "./support/streamModel.ts"

const secret = { _tag: "Refused", password: "hunter2" }
const lost = new Error("hunter2 at db.internal")

const makeTools = Effect.gen(function*() {
  const add = yield* tool({
    inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
    execute: ({ a, b }) => Effect.succeed(a + b)
  })
  const refuses = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail(secret) })
  return { add, refuses }
})

const user: ai.UIMessage = { id: "m-1", role: "user", parts: [{ type: "text", text: "1 + 2?" }] }

const allOf = <A>(items: AsyncIterable<A>): Effect.Effect<Array<A>> =>
  Effect.promise(async () => {
    const all: Array<A> = []
    for await (const item of items) all.push(item)
    return all
  })

const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
})

const quiet = Layer.merge(Ai.layer, Logger.layer([]))
const json = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const bodyOf = (response: Response) => Effect.promise(() => response.text())

describe("a UI message stream", () => {
  const options = (tools: ai.ToolSet) => ({
    model: streaming(calls(["add", { a: 1, b: 2 }]), says("It is ", "3.")),
    prompt: "1 + 2?",
    tools,
    stopWhen: ai.isStepCount(2)
  })

  it.effect("has the AI SDK's chunks, with its options", () =>
    Effect.gen(function*() {
      const { add } = yield* makeTools
      const given = {
        originalMessages: [user],
        generateMessageId: () => "m-2",
        messageMetadata: ({ part }: { readonly part: { readonly type: string } }) =>
          part.type === "finish" ? { model: "mock" } : undefined,
        sendReasoning: false
      }
      const result = yield* streamText(options({ add }))
      const chunks = yield* Stream.runCollect(result.toUIMessageStream(given))
      const expected = yield* allOf(ai.streamText(options({ add })).toUIMessageStream(given))
      assert.deepStrictEqual(json(chunks), json(expected))
      assert.deepStrictEqual(json(chunks[0]), { type: "start", messageId: "m-2" })
    }).pipe(Effect.provide(quiet)))

  it.effect("is read by the AI SDK into a message", () =>
    Effect.gen(function*() {
      const { add } = yield* makeTools
      const result = yield* streamText(options({ add }))
      const response = yield* result.toUIMessageStreamResponse({ status: 201, headers: { "x-run": "7" } })
      assert.strictEqual(response.status, 201)
      assert.strictEqual(response.headers.get("x-run"), "7")
      assert.strictEqual(response.headers.get("content-type"), "text/event-stream")
      const stream = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(
        new TransformStream<string, ai.UIMessageChunk>({
          transform: (text, controller) => {
            const data = text.replace(/^data: /, "").trim()
            if (data !== "[DONE]") controller.enqueue(JSON.parse(data) as ai.UIMessageChunk)
          }
        })
      )
      const message = (yield* allOf(ai.readUIMessageStream({ stream }))).at(-1)!
      assert.deepStrictEqual(message.parts.map(({ type }) => type), ["step-start", "tool-add", "step-start", "text"])
      assert.deepInclude(message.parts[3], { type: "text", text: "It is 3.", state: "done" })
    }).pipe(Effect.provide(quiet)))

  class Chats extends Context.Service<Chats, { readonly save: (ids: ReadonlyArray<string>) => Effect.Effect<void> }>()(
    "Chats"
  ) {}

  it.effect("tells its end and its steps to Effects, with services of where it was made", () =>
    Effect.gen(function*() {
      const { add } = yield* makeTools
      const saved: Array<unknown> = []
      const chats = Chats.of({ save: (ids) => Effect.sync(() => void saved.push(ids)) })
      const result = yield* streamText(options({ add }))
      const response = yield* result.toUIMessageStreamResponse({
        originalMessages: [user],
        generateMessageId: () => "m-2",
        onStepEnd: () => Effect.sync(() => saved.push("step")),
        onEnd: ({ messages, outcome }) =>
          Effect.flatMap(Chats, ({ save }) => save([...messages.map(({ id }) => id), outcome.status]))
      }).pipe(Effect.provideService(Chats, chats))
      yield* bodyOf(response)
      assert.deepStrictEqual(saved, ["step", "step", ["m-1", "m-2", "completed"]])
      // the other names of the same
      const again = yield* streamText(options({ add }))
      yield* Stream.runDrain(again.toUIMessageStream({
        onStepFinish: () => Effect.sync(() => saved.push("step")),
        onFinish: () => Effect.sync(() => saved.push("end"))
      }))
      assert.deepStrictEqual(saved.slice(3), ["step", "step", "end"])
    }).pipe(Effect.provide(quiet)))

  it.effect("goes on where one of these dies: that is logged", () =>
    Effect.gen(function*() {
      const logged: Array<unknown> = []
      const logger = Logger.make<unknown, void>(({ message }) => void logged.push(message))
      yield* Effect.gen(function*() {
        const result = yield* streamText({ model: streaming(says("a")), prompt: "go" })
        const response = yield* result.toUIMessageStreamResponse({ onEnd: () => Effect.die("no disk") })
        assert.include(yield* bodyOf(response), "[DONE]")
      }).pipe(Effect.provide(Logger.layer([logger])))
      assert.match(String(logged), /onEnd/)
    }).pipe(Effect.provide(Ai.layer)))

  const failing = (tools: ai.ToolSet): { readonly model: ai.LanguageModel; readonly tools: ai.ToolSet } => ({
    model: streaming(calls(["refuses", {}]), [...begins("a"), { type: "error", error: lost }]),
    tools
  })

  it.effect("shows nothing of failures, neither of the call nor of a tool", () =>
    Effect.gen(function*() {
      const { refuses } = yield* makeTools
      const call = { ...failing({ refuses }), prompt: "go", stopWhen: ai.isStepCount(2) }
      const body = yield* bodyOf(yield* (yield* streamText(call)).toUIMessageStreamResponse())
      assert.notInclude(body, "hunter2")
      assert.include(body, `"type":"error","errorText":"An error occurred."`)
      assert.match(body, /"type":"tool-output-error".*"errorText":"An error occurred\."/)
    }).pipe(Effect.provide(quiet)))

  it.effect("shows of them what onError makes of the identical values", () =>
    Effect.gen(function*() {
      const { refuses } = yield* makeTools
      const seen: Array<unknown> = []
      const result = yield* streamText({ ...failing({ refuses }), prompt: "go", stopWhen: ai.isStepCount(2) })
      const chunks = yield* Stream.runCollect(result.toUIMessageStream({
        onError: (error) => `problem ${seen.push(error)}`
      }))
      assert.deepStrictEqual(seen, [secret, lost])
      assert.strictEqual(seen[0], secret)
      assert.deepStrictEqual(
        chunks.flatMap((chunk) => "errorText" in chunk ? [chunk.errorText] : []),
        ["problem 1", "problem 2"]
      )
    }).pipe(Effect.provide(quiet)))

  it.effect("shows what the model read of a tool's failure with redactToolErrors: false, to late readers too", () =>
    Effect.gen(function*() {
      const { refuses } = yield* makeTools
      const model = streaming(calls(["refuses", {}]), says("Sorry."))
      const result = yield* streamText({ model, prompt: "go", tools: { refuses }, stopWhen: ai.isStepCount(2) })
      const read = Stream.runCollect(result.toUIMessageStream({ redactToolErrors: false }))
      const texts = [...yield* read, ...yield* read].flatMap((chunk) => "errorText" in chunk ? [chunk.errorText] : [])
      const message = model.doStreamCalls[1]!.prompt.find(({ role }) => role === "tool")
      assert.strictEqual(texts.length, 2)
      for (const text of texts) {
        assert.include(text, "Refused")
        assert.include(JSON.stringify(message), JSON.stringify(text).slice(1, -1))
      }
    }).pipe(Effect.provide(quiet)))

  it.effect("fails where a conversion of the user's does", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: streaming(says("a")), prompt: "go" })
      const problem = new Error("no metadata")
      const failure = yield* Effect.flip(Stream.runCollect(result.toUIMessageStream({
        messageMetadata: () => {
          throw problem
        }
      })))
      assert.strictEqual(failure.cause, problem)
    }).pipe(Effect.provide(quiet)))

  it.effect("whose body is cancelled has left; its onEnd is told", () =>
    Effect.gen(function*() {
      const { cancelled, stream } = provided(begins("a", "b"), "wait")
      const told = yield* Deferred.make<boolean>()
      const model = streaming(stream)
      const result = yield* streamText({ model, prompt: "go" })
      const response = yield* result.toUIMessageStreamResponse({
        onEnd: ({ isCancelled }) => Deferred.succeed(told, isCancelled === true)
      })
      const reader = response.body!.getReader()
      yield* Effect.promise(() => reader.read())
      yield* Effect.promise(() => reader.cancel())
      assert.isTrue(yield* Deferred.await(told))
      yield* settled
      assert.isTrue(model.doStreamCalls[0]?.abortSignal?.aborted)
      assert.isTrue(cancelled())
    }).pipe(Effect.provide(quiet)))

  it.effect("goes on for consumeSseStream when its client goes away", () =>
    Effect.gen(function*() {
      const model = streaming(says("a", "b", "c"))
      const result = yield* streamText({ model, prompt: "go" })
      const kept = yield* Deferred.make<string>()
      const response = yield* result.toUIMessageStreamResponse({
        consumeSseStream: ({ stream }) =>
          new Response(stream.pipeThrough(new TextEncoderStream())).text()
            .then((text) => Deferred.doneUnsafe(kept, Exit.succeed(text)))
            .then(() => undefined)
      })
      yield* Effect.promise(() => response.body!.cancel())
      assert.include(yield* Deferred.await(kept), "[DONE]")
      assert.strictEqual(yield* result.text, "abc")
    }).pipe(Effect.provide(quiet)))
})

describe("a text response", () => {
  it.effect("has the text, and the options of a response", () =>
    Effect.gen(function*() {
      const result = yield* streamText({ model: streaming(says("a", "b")), prompt: "go" })
      const response = yield* result.toTextStreamResponse({ headers: { "x-run": "7" } })
      assert.strictEqual(response.headers.get("x-run"), "7")
      assert.strictEqual(response.headers.get("content-type"), "text/plain; charset=utf-8")
      assert.strictEqual(yield* bodyOf(response), "ab")
    }).pipe(Effect.provide(quiet)))

  it.effect("breaks off where the call fails, and does not end as if that were all", () =>
    Effect.gen(function*() {
      const result = yield* streamText({
        model: streaming([...begins("a"), { type: "error", error: lost }]),
        prompt: "go"
      })
      const response = yield* result.toTextStreamResponse()
      const broken = yield* Effect.promise(() => response.text().then(() => undefined, (error: unknown) => error))
      assert.strictEqual(broken, yield* Effect.flip(result.text))
    }).pipe(Effect.provide(quiet)))
})

describe("as a web handler", () => {
  it.live("keeps the request's scope open until the body is sent, and ends the call where it is cancelled", () =>
    Effect.gen(function*() {
      const { cancelled, stream } = provided(begins("a", "b"), "wait")
      const endless = streaming(stream)
      const models = [streaming(says("a")), endless]
      const handler = Effect.gen(function*() {
        const result = yield* streamText({ model: models.shift()!, prompt: "go" })
        return HttpServerResponse.fromWeb(yield* result.toUIMessageStreamResponse())
      })
      const web = HttpEffect.toWebHandlerLayer(handler, Ai.layer)
      yield* Effect.addFinalizer(() => Effect.promise(web.dispose))
      const ask = Effect.promise(() => web.handler(new Request("http://localhost/", { method: "POST" })))
      assert.match(yield* bodyOf(yield* ask), /"delta":"a".*\[DONE\]/s)
      const reader = (yield* ask).body!.getReader()
      yield* Effect.promise(() => reader.read())
      yield* settled
      assert.isFalse(endless.doStreamCalls[0]?.abortSignal?.aborted)
      yield* Effect.promise(() => reader.cancel())
      yield* settled
      assert.isTrue(endless.doStreamCalls[0]?.abortSignal?.aborted)
      assert.isTrue(cancelled())
    }))
})

describe("over HTTP", () => {
  const serving = (turns: () => ReadonlyArray<Turn>, tools: ai.ToolSet, models: Array<ReturnType<typeof streaming>>) =>
    localServer(Layer.mergeAll(
      HttpRouter.add("POST", "/chat", () =>
        Effect.gen(function*() {
          const model = streaming(...turns())
          models.push(model)
          const result = yield* streamText({ model, prompt: "go", tools, stopWhen: ai.isStepCount(2) })
          return HttpServerResponse.fromWeb(yield* result.toUIMessageStreamResponse())
        })),
      HttpRouter.add("POST", "/text", () =>
        Effect.gen(function*() {
          const result = yield* streamText({ model: streaming(...turns()), prompt: "go" })
          return HttpServerResponse.fromWeb(yield* result.toTextStreamResponse())
        }))
    )).pipe(Layer.provide(Ai.layer))

  const address = HttpServer.addressFormattedWith(Effect.succeed)

  const send = (path: string, abortSignal?: AbortSignal) =>
    Effect.flatMap(
      address,
      (url) =>
        Effect.promise(() =>
          new ai.DefaultChatTransport({ api: `${url}${path}` }).sendMessages({
            chatId: "c",
            messageId: undefined,
            messages: [user],
            trigger: "submit-message",
            abortSignal
          })
        )
    )

  it.live("is read by the AI SDK's chat transport", () =>
    Effect.gen(function*() {
      const { add } = yield* makeTools
      const turns = () => [calls(["add", { a: 1, b: 2 }]), says("It is ", "3.")]
      yield* Effect.gen(function*() {
        const message = (yield* allOf(ai.readUIMessageStream({ stream: yield* send("/chat") }))).at(-1)!
        assert.deepInclude(message.parts[1], { type: "tool-add", output: 3 })
        assert.deepInclude(message.parts[3], { type: "text", text: "It is 3." })
      }).pipe(Effect.provide(serving(turns, { add }, [])))
    }).pipe(Effect.provide(quiet)))

  it.live("ends the call of a client that goes away, and the tools with it", () =>
    Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const stopped = yield* Deferred.make<void>()
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Deferred.succeed(stopped, undefined))
          )
      })
      const models: Array<ReturnType<typeof streaming>> = []
      yield* Effect.gen(function*() {
        const controller = new AbortController()
        const stream = yield* send("/chat", controller.signal)
        const reading = yield* Effect.forkChild(Effect.exit(allOf(ai.readUIMessageStream({ stream }))), {
          startImmediately: true
        })
        yield* Deferred.await(started)
        controller.abort()
        yield* Deferred.await(stopped)
        yield* Fiber.join(reading)
        assert.isTrue(models[0]?.doStreamCalls[0]?.abortSignal?.aborted)
      }).pipe(Effect.provide(serving(() => [calls(["slow", {}])], { slow }, models)))
    }).pipe(Effect.provide(quiet)))

  it.live("a failing text stream is no complete response", () =>
    Effect.gen(function*() {
      const turns = () => [[...begins("a"), { type: "error", error: lost } as const]]
      const exit = yield* HttpClient.post("/text").pipe(
        Effect.flatMap((response) => response.text),
        Effect.exit,
        Effect.provide(serving(turns, {}, []))
      )
      assert.isTrue(Exit.isFailure(exit))
    }).pipe(Effect.provide(quiet)))
})
