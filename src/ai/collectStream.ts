/**
 * A model's stream as the answer that the model would have given at once, and its parts as they come.
 */
import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult
} from "@ai-sdk/provider"
import { NoOutputGeneratedError } from "ai"
import { Effect } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import { jsonOf } from "./contentParts.ts"
import type { StepPart } from "./StepPart.ts"

type Answer = LanguageModelV4GenerateResult
type Block = Extract<LanguageModelV4Content, { readonly type: "text" | "reasoning" }>

/** The answer as far as it is written. */
class Collected {
  readonly content: Array<LanguageModelV4Content> = []
  readonly #open = new Map<string, Block>()
  warnings: Answer["warnings"] = []
  response: Answer["response"]
  finish: Extract<LanguageModelV4StreamPart, { readonly type: "finish" }> | undefined

  add(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        return this.#write("text", part)
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.#write("reasoning", part)
      case "tool-call":
      case "tool-result":
      case "tool-approval-request":
      case "file":
      case "reasoning-file":
      case "source":
      case "custom":
        this.content.push(part)
        return
      case "stream-start":
        this.warnings = part.warnings
        return
      case "response-metadata": {
        const { type: _, ...metadata } = part
        this.response = { ...this.response, ...metadata }
        return
      }
      case "finish":
        this.finish = part
    }
  }

  /** Blocks are interleaved; each stands where it began. Metadata that comes later replaces what came before. */
  #write(
    type: Block["type"],
    part: Extract<LanguageModelV4StreamPart, { readonly type: `${"text" | "reasoning"}-${"start" | "delta" | "end"}` }>
  ): void {
    const key = `${type}/${part.id}`
    const block: Block = this.#open.get(key) ?? { type, text: "" }
    if (!this.#open.has(key)) {
      this.#open.set(key, block)
      this.content.push(block)
    }
    if (part.type === "text-delta" || part.type === "reasoning-delta") block.text += part.delta
    if (part.providerMetadata !== undefined) block.providerMetadata = part.providerMetadata
    if (part.type === "text-end" && part.citations !== undefined && block.type === "text") {
      block.citations = part.citations
    }
    if (part.type.endsWith("-end")) this.#open.delete(key)
  }
}

/**
 * What of a model's part is told at once. Calls of the run's own tools, and files, are told when the answer is stored: the calls as
 * they will be executed, the files once they were downloaded.
 */
const livePart = (part: LanguageModelV4StreamPart, calls: ReadonlyMap<string, string>): StepPart | undefined => {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta": {
      const { delta, ...rest } = part
      return { ...rest, text: delta }
    }
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
    case "tool-input-start":
    case "tool-input-delta":
    case "tool-input-end":
    case "source":
    case "custom":
      return part
    case "tool-call":
      return part.providerExecuted === true ? { ...part, input: jsonOf(part.input) } : undefined
    case "tool-result": {
      const { isError, result, type: _, ...call } = part
      return isError === true
        ? { ...call, type: "tool-error", providerExecuted: true, error: textOf(result) }
        : { ...call, type: "tool-result", providerExecuted: true, output: result }
    }
    case "tool-approval-request": {
      const { approvalId, toolCallId } = part
      return { type: "tool-approval-request", approvalId, toolCallId, toolName: calls.get(toolCallId) ?? "" }
    }
  }
  return undefined
}

const textOf = (value: unknown): string => typeof value === "string" ? value : JSON.stringify(value) ?? ""

/** Whoever leaves cancels the stream, and does not wait for what its source does about it. */
const readAll = <A>(
  stream: ReadableStream<A>,
  use: (value: A) => Effect.Effect<void, unknown>
): Effect.Effect<void, unknown> =>
  Effect.acquireUseRelease(
    Effect.sync(() => stream.getReader()),
    (reader) => {
      const next: Effect.Effect<void, unknown> = Effect.flatMap(
        hookAnswer("model", () => reader.read()) as Effect.Effect<ReadableStreamReadResult<A>, unknown>,
        ({ done, value }) => done ? Effect.void : Effect.andThen(use(value), Effect.suspend(() => next))
      )
      return next
    },
    (reader, exit) => Effect.sync(() => exit._tag === "Success" || void reader.cancel().catch(() => {}))
  )

/** Reads the stream to its end. A part of type `error`, and an end without a `finish`, are failures. */
export const collectStream = (
  { request, response, stream }: LanguageModelV4StreamResult,
  publish: (part: StepPart) => Effect.Effect<void>
): Effect.Effect<Answer, unknown> =>
  Effect.suspend(() => {
    const collected = new Collected()
    const calls = new Map<string, string>()
    const read = readAll(stream, (part) => {
      if (part.type === "error") return Effect.fail(part.error)
      if (part.type === "tool-call") calls.set(part.toolCallId, part.toolName)
      collected.add(part)
      const told = livePart(part, calls)
      return told === undefined ? Effect.void : publish(told)
    })
    return Effect.flatMap(read, () => {
      const { content, finish, response: metadata, warnings } = collected
      return finish === undefined
        ? Effect.fail(
          new NoOutputGeneratedError({ message: "The model's stream ended before its answer was finished." })
        )
        : Effect.succeed<Answer>({
          content,
          finishReason: finish.finishReason,
          usage: finish.usage,
          warnings,
          ...finish.providerMetadata === undefined ? {} : { providerMetadata: finish.providerMetadata },
          ...request === undefined ? {} : { request },
          ...response === undefined && metadata === undefined ? {} : { response: { ...response, ...metadata } }
        })
    })
  })
