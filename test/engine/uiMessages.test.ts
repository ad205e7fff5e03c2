/** Runs behind an HTTP server of Effect, and the AI SDK's own chat before it: what `useChat` is made of. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { describe, expect, it } from "@effect/vitest"
import {
  AbstractChat,
  APICallError,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage
} from "ai"
import { type Agent, defineAgent, Engine, RunStream, tool } from "chamvi-effect"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { begins, calls, says, streaming } from "../support/streamModel.ts"
import { breaking, waiting } from "../support/streams.ts"

type AnyAgent = Agent<string, undefined, string, never>

/** A chat whose state is plain, where those of the frameworks are reactive. It tells of its changes. */
class Chat extends AbstractChat<UIMessage> {
  readonly #waiting: Set<() => void>

  constructor(api: string, messages: Array<UIMessage> = []) {
    const waiting = new Set<() => void>()
    let status: ChatStatus = "ready"
    const change = (next: Array<UIMessage>) => {
      state.messages = next
      waiting.forEach((look) => look())
    }
    const state: ChatState<UIMessage> = {
      get status() {
        return status
      },
      set status(next) {
        status = next
        waiting.forEach((look) => look())
      },
      error: undefined,
      messages,
      pushMessage: (message) => change([...state.messages, message]),
      popMessage: () => change(state.messages.slice(0, -1)),
      replaceMessage: (index, message) => change(state.messages.with(index, structuredClone(message))),
      snapshot: (thing) => structuredClone(thing)
    }
    super({
      id: "chat-1",
      state,
      transport: new DefaultChatTransport({ api }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
    })
    this.#waiting = waiting
  }

  until(isIt: () => boolean): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const look = () => {
        if (!isIt()) return
        this.#waiting.delete(look)
        resume(Effect.void)
      }
      this.#waiting.add(look)
      look()
    })
  }
}

const respond = (...args: Parameters<typeof RunStream.uiMessages>) =>
  Effect.map(
    RunStream.toSse(RunStream.uiMessages(...args)),
    (body) => HttpServerResponse.stream(body, { headers: RunStream.sseHeaders })
  )

/** The handlers of an application: one run for each chat. */
const routes = (agent: AnyAgent) =>
  Layer.mergeAll(
    HttpRouter.add(
      "POST",
      "/chat",
      Effect.gen(function*() {
        const { id, messages } = yield* HttpServerRequest.schemaBodyJson(
          Schema.Struct({ id: Schema.String, messages: Schema.Array(Schema.Unknown) })
        )
        const position = yield* RunStream.answered(id, messages.at(-1))
        if (position === undefined) yield* Engine.start(agent, { runId: id, prompt: "Go." })
        return yield* respond(id, { after: position?.after })
      })
    ),
    HttpRouter.add(
      "GET",
      "/chat/:id/stream",
      Effect.flatMap(HttpRouter.schemaPathParams(Schema.Struct({ id: Schema.String })), ({ id }) => respond(id))
    )
  )

const withServer = <A>(
  agent: AnyAgent,
  use: (api: string) => Effect.Effect<A, unknown, Engine>
) =>
  HttpServer.addressFormattedWith((address) => use(`${address}/chat`)).pipe(
    Effect.provide(
      HttpRouter.serve(routes(agent), { disableLogger: true, disableListenLog: true }).pipe(
        Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" })),
        Layer.provideMerge(agent.layer),
        Layer.provideMerge(Engine.layerMemory())
      )
    )
  )

const send = (chat: Chat) => Effect.promise(() => chat.sendMessage({ text: "Go." }))

/** What a person sees of the answer. */
const seen = (chat: Chat) =>
  (chat.messages.at(-1)?.parts ?? []).flatMap((part) =>
    part.type === "text" || part.type === "reasoning"
      ? [part.text]
      : isToolUIPart(part)
      ? [`${part.type} ${part.state}`]
      : part.type === "file"
      ? [part.url]
      : []
  )

const add = tool({ inputSchema: Schema.Struct({ a: Schema.Finite }), execute: ({ a }) => Effect.succeed(a + 1) })

describe("a chat of the AI SDK on a run", () => {
  it.live("reads texts, reasoning, files and tool calls", () => {
    const agent = defineAgent({
      name: "chat",
      stream: true,
      model: streaming([
        { type: "reasoning-start", id: "r" },
        { type: "reasoning-delta", id: "r", delta: "Hm." },
        { type: "reasoning-end", id: "r" },
        { type: "file", mediaType: "text/plain", data: { type: "data", data: "aGk=" } },
        ...calls(["add", { a: 1 }])
      ], says("It ", "is 2.")),
      tools: { add }
    })
    return withServer(agent, (api) =>
      Effect.gen(function*() {
        const chat = new Chat(api)
        yield* send(chat)
        expect(chat.error).toBeUndefined()
        expect(chat.status).toBe("ready")
        expect(seen(chat)).toEqual(["Hm.", "data:text/plain;base64,aGk=", "tool-add output-available", "It is 2."])
        expect(chat.messages.map(({ id, role }) => [role, id])).toEqual([
          ["user", expect.any(String)],
          ["assistant", "run-chat-1"]
        ])
      }))
  })

  it.live("that comes back builds the same message", () =>
    Effect.gen(function*() {
      const go = yield* Deferred.make<void>()
      const agent = defineAgent({
        name: "back",
        stream: true,
        model: streaming(() =>
          waiting([go], begins("Hel"), [
            { type: "text-delta", id: "t", delta: "lo." },
            ...says().slice(2)
          ])
        )
      })
      yield* withServer(agent, (api) =>
        Effect.gen(function*() {
          const chat = new Chat(api)
          yield* Effect.forkChild(send(chat))
          yield* chat.until(() => seen(chat)[0] === "Hel")
          // the connection is lost, and a new page knows what the old one has saved
          yield* Effect.promise(() => chat.stop())
          const again = new Chat(api, structuredClone(chat.messages))
          const resumed = yield* Effect.forkChild(Effect.promise(() => again.resumeStream()))
          yield* Deferred.succeed(go, undefined)
          yield* Fiber.join(resumed)
          expect(again.messages.length).toBe(2)
          expect(seen(again)).toEqual(["Hello."])
        }))
    }))

  it.live("answers a request for approval in the message, and goes on with it", () => {
    let paid = 0
    const pay = tool({
      inputSchema: Schema.Struct({ amount: Schema.Int }),
      needsApproval: true,
      execute: () => Effect.sync(() => ++paid)
    })
    const agent = defineAgent({
      name: "approval",
      stream: true,
      model: streaming(
        [...begins("I pay."), ...calls(["pay", { amount: 1 }], ["pay", { amount: 2 }])],
        says("Done.")
      ),
      tools: { pay }
    })
    return withServer(agent, (api) =>
      Effect.gen(function*() {
        const chat = new Chat(api)
        yield* send(chat)
        const requests = () =>
          chat.messages.at(-1)!.parts.flatMap((part) =>
            isToolUIPart(part) && part.state === "approval-requested" ? [part.approval.id] : []
          )
        expect(requests().length).toBe(2)
        const [first, second] = requests()
        yield* Effect.promise(async () => chat.addToolApprovalResponse({ id: first!, approved: true }))
        yield* Effect.promise(async () => chat.addToolApprovalResponse({ id: second!, approved: false, reason: "No." }))
        yield* chat.until(() => seen(chat).includes("Done.") && chat.status === "ready")
        expect(chat.error).toBeUndefined()
        expect(seen(chat)).toEqual(["I pay.", "tool-pay output-available", "tool-pay output-denied", "Done."])
        expect(chat.messages.length).toBe(2)
        expect(paid).toBe(1)
      }))
  })

  it.live("forgets what a step had written that is generated again", () => {
    const broken = new APICallError({ message: "overloaded", url: "", requestBodyValues: {}, isRetryable: true })
    const agent = defineAgent({
      name: "again",
      stream: true,
      model: streaming(calls(["add", { a: 1 }]), () => breaking(broken, ...begins("It ", "mi")), says("It is 2.")),
      tools: { add },
      maxRetries: 1
    })
    return withServer(agent, (api) =>
      Effect.gen(function*() {
        const chat = new Chat(api)
        yield* send(chat)
        expect(seen(chat)).toEqual(["tool-add output-available", "It is 2."])
        const late = new Chat(api)
        yield* Effect.promise(() => late.resumeStream())
        expect(late.messages.at(-1)).toEqual(chat.messages.at(-1))
      }))
  })

  it.live("reads no text of a failure, unless it is told so", () => {
    const fails = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail("secret of the tool") })
    const agent = defineAgent({
      name: "fails",
      stream: true,
      model: streaming(calls(["fails", {}]), () => breaking(new Error("secret of the model"))),
      tools: { fails }
    })
    return withServer(agent, (api) =>
      Effect.gen(function*() {
        const chat = new Chat(api)
        yield* send(chat)
        expect(chat.status).toBe("error")
        expect(chat.error?.message).toBe("An error occurred.")
        expect(JSON.stringify(chat.messages)).not.toContain("secret")
        const told = (options: Parameters<typeof RunStream.uiMessages>[1]) =>
          Effect.map(Stream.runCollect(RunStream.uiMessages("chat-1", options)), (chunks) =>
            chunks.flatMap((chunk) => "errorText" in chunk ? [chunk.errorText] : []))
        expect(yield* told({ redactToolErrors: false })).toEqual(["secret of the tool", "An error occurred."])
        const onError = (failure: unknown) =>
          typeof failure === "string" ? failure : "The run failed."
        expect(yield* told({ onError })).toEqual(["secret of the tool", "The run failed."])
      }))
  })

  it.effect("is told that the connection lives, as often as the server likes", () =>
    Effect.gen(function*() {
      const chunks = Stream.concat(
        Stream.succeed<RunStream.RunChunk>({ type: "start" }),
        Stream.fromEffect(Effect.as(Effect.sleep("25 seconds"), { type: "finish" } as const))
      )
      const body = yield* RunStream.toSse(chunks, { keepAlive: "10 seconds" })
      const read = yield* Effect.forkChild(Stream.mkString(Stream.decodeText(body)))
      yield* Effect.repeat(TestClock.adjust("5 seconds"), { times: 10 })
      const text = yield* Fiber.join(read)
      expect(text.replaceAll(": wait\n\n", "")).toBe(
        `data: {"type":"start"}\n\ndata: {"type":"finish"}\n\ndata: [DONE]\n\n`
      )
      expect(text.split(": wait\n\n").length - 1).toBeGreaterThanOrEqual(2)
    }))

  it("takes no answers from a message that is none of this run, or of one that had not waited", async () => {
    const answered = (message: unknown) =>
      Effect.runPromise(Effect.provide(RunStream.answered("nothing", message), Engine.layerMemory()))
    const parts = [{ state: "approval-responded", approval: { id: "0/0/a", approved: true } }]
    expect(await answered(undefined)).toBeUndefined()
    expect(await answered({ role: "user", parts: [{ type: "text", text: "Go." }] })).toBeUndefined()
    expect(await answered({ role: "assistant", parts })).toBeUndefined()
    const position = { type: "data-run", data: { runId: "nothing", after: "1" } }
    expect(await answered({ role: "user", parts: [...parts, position] })).toBeUndefined()
    const another = { ...position, data: { ...position.data, runId: "another" } }
    expect(await answered({ role: "assistant", parts: [...parts, another] })).toBeUndefined()
    await expect(answered({ role: "assistant", parts: [...parts, position] })).rejects.toThrow("There is no run")
  })
})
