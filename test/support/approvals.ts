/** Asking for an approval and resuming with it, in every way in which a call can be made. */
import * as ai from "ai"
import {
  type Allow,
  EffectStore,
  generateText,
  runAgent,
  streamText,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import type { Ai } from "chamvi-effect"
import { Effect } from "effect"
import { calls, readBy, says, scripted } from "./model.ts"
import { calls as streamsCalls, readBy as readByStream, says as streamsText, streaming } from "./streamModel.ts"
import { settle } from "./wrapped.ts"

export type Messages = ReadonlyArray<ai.ModelMessage>
export type Services = Ai | EffectStore | ToolContext

/** What came of a call. */
export interface Answer {
  /** What the model read as results of tools. */
  readonly read: ReadonlyArray<unknown>
  /** The messages that the call added. */
  readonly messages: Messages
}

export interface Options {
  readonly tools: ai.ToolSet
  readonly allow?: Allow
  readonly toolApproval?: unknown
  readonly experimental_toolApprovalSecret?: string
}

export interface Way {
  readonly name: string
  /** Whether calls fail with an `AiError`; else with the AI SDK's own errors. */
  readonly ours: boolean
  readonly call: (
    messages: Messages,
    options: Options,
    tool?: readonly [toolName: string, input: unknown]
  ) => Effect.Effect<Answer, unknown, Services>
}

/** The options for plain `ai`. */
const wrapped = ({ allow, tools, ...options }: Options) =>
  Effect.gen(function*() {
    return { ...options, tools: yield* wrapToolsForRun(tools, yield* ToolContext, yield* EffectStore, allow) }
  })

/** What `toolApproval` may be depends on the tools, which are any here. */
const known = (options: Options): { readonly tools: ai.ToolSet } => options

const generating = (tool: readonly [string, unknown] | undefined) =>
  scripted(tool === undefined ? says("done") : calls(tool))
const streams = (tool: readonly [string, unknown] | undefined) =>
  streaming(tool === undefined ? streamsText("done") : streamsCalls(tool))

export const ways: ReadonlyArray<Way> = [
  {
    name: "generateText",
    ours: true,
    call: (messages, options, tool) =>
      Effect.gen(function*() {
        const model = generating(tool)
        const result = yield* generateText({ ...known(options), model, messages: [...messages] })
        return { read: readBy(model), messages: result.responseMessages }
      })
  },
  {
    name: "streamText",
    ours: true,
    call: (messages, options, tool) =>
      Effect.gen(function*() {
        const model = streams(tool)
        const result = yield* streamText({ ...known(options), model, messages: [...messages] })
        return { messages: yield* result.responseMessages, read: readByStream(model) }
      }).pipe(Effect.scoped)
  },
  {
    name: "runAgent",
    ours: true,
    call: (messages, options, tool) =>
      Effect.gen(function*() {
        const model = generating(tool)
        const agent = new ai.ToolLoopAgent({ ...known(options), model })
        const result = yield* runAgent(agent, { messages: [...messages] })
        return { read: readBy(model), messages: result.responseMessages }
      })
  },
  {
    name: "wrapToolsForRun and plain generateText",
    ours: false,
    call: (messages, options, tool) =>
      Effect.gen(function*() {
        const model = generating(tool)
        const plain = { ...known(yield* wrapped(options)), model, messages: [...messages] }
        const result = yield* settle(() => ai.generateText(plain))
        return { read: readBy(model), messages: result.responseMessages }
      }).pipe(Effect.scoped)
  },
  {
    name: "wrapToolsForRun and plain streamText",
    ours: false,
    call: (messages, options, tool) =>
      Effect.gen(function*() {
        const model = streams(tool)
        let failed: unknown
        const onError = ({ error }: { readonly error: unknown }) => {
          failed = error
        }
        const plain = { ...known(yield* wrapped(options)), model, messages: [...messages], onError }
        const added = yield* Effect.mapError(
          settle(() => ai.streamText(plain).responseMessages),
          (error) => failed ?? error
        )
        return { messages: added, read: readByStream(model) }
      }).pipe(Effect.scoped)
  }
]

export const user: ai.ModelMessage = { role: "user", content: "go" }

/** A person's answer. */
export const answers = (approvalId: string, approved = true): ai.ModelMessage => ({
  role: "tool",
  content: [{ type: "tool-approval-response", approvalId, approved }]
})

export interface Asked {
  /** The history so far, as it was stored. */
  readonly history: Messages
  readonly approvalId: string
}

/** Lets the model call a tool that has to be approved. */
export const ask = (way: Way, options: Options, tool: readonly [toolName: string, input: unknown]) =>
  Effect.map(way.call([user], options, tool), ({ messages }): Asked => {
    const history = JSON.parse(JSON.stringify([user, ...messages])) as Messages
    const request = history.flatMap((message) =>
      message.role === "assistant" && typeof message.content !== "string" ? message.content : []
    ).find((part) => part.type === "tool-approval-request")
    if (request === undefined) throw new Error("no approval was asked for")
    return { history, approvalId: request.approvalId }
  })

/** The history with each of its parts changed. */
export const edited = (history: Messages, edit: (part: Record<string, unknown>) => object): Messages =>
  history.map((message) =>
    Array.isArray(message.content)
      ? { ...message, content: message.content.map((part) => edit(part as unknown as Record<string, unknown>)) }
      : message
  ) as Messages
