/**
 * `execute` as the AI SDK calls it: JSON in and out, a Promise, an `AbortSignal`.
 *
 * @since 0.1.0
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Data, Effect, Fiber } from "effect"
import { hookAnswer, runCall } from "../internal/promiseBridge.ts"
import { type Caller, type Captured, contextOf } from "./callContext.ts"
import { asHeld, type OutputCodec } from "./codecs.ts"
import type { AnyToolOptions, ToolCodecs } from "./sdkTool.ts"
import { carryable, ToolFailure } from "./ToolFailure.ts"

/**
 * `execute` is done, but its result does not fit its `outputSchema`, or JSON where there is none. The value of a `tool-error`
 * part: the model reads that the work itself was done.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolResultError extends Data.TaggedError("ToolResultError")<{
  readonly problem: string
  readonly cause: unknown
}> {
  override get message(): string {
    return `The tool has done its work, but its result cannot be given: ${this.problem}. Return what the tool's outputSchema `
      + `describes; what JSON cannot carry needs an Effect Schema there.`
  }
}

/** The function for a tool, bound to `caller` or to nobody. */
export const executor = (
  { execute: hook }: AnyToolOptions,
  captured: Captured,
  codecs: ToolCodecs,
  caller: Caller | undefined
) => {
  const runner = runnerOf(captured, caller)
  const reject = rejecter(caller)
  const encode = encoder(codecs.output)
  const execute = decoding(
    codecs,
    (decoded, call) => Effect.flatMap(hookAnswer("execute", () => hook?.(decoded as never, call as never)), encode)
  )
  return (input: unknown, call: ToolExecutionOptions<unknown>): Promise<unknown> => {
    const run = runner()
    const start = () => run(execute(input, call), call.abortSignal).catch(reject)
    return caller === undefined ? start() : caller.track(start)
  }
}

/**
 * What runs a call: it belongs to the fiber that makes it, if one does. The AI SDK's calls are made in one only where there
 * are spans (that of the execution); otherwise they belong to the fiber that the tool is bound to.
 */
export const runnerOf = (captured: Captured, caller: Caller | undefined) => {
  const alone = runCall(captured.all)
  if (caller !== undefined) {
    const bound = runCall(contextOf(captured, caller.context))
    return () => {
      const here = Fiber.getCurrent()
      return here === undefined ? bound : runCall(contextOf(captured, here.context))
    }
  }
  return () => {
    const context = contextOf(captured, undefined)
    return context === captured.all ? alone : runCall(context)
  }
}

/** Where nobody takes a failure's carrier off again, the value travels by itself if it can. */
export const rejecter = (caller: Caller | undefined) => (error: unknown): Promise<never> =>
  Promise.reject(caller === undefined ? carryable(error) : new ToolFailure(error))

type Answer = (decoded: unknown, call: ToolExecutionOptions<unknown>) => Effect.Effect<unknown, unknown>

/** Decodes what a call gets, with as few steps as the schemas allow: every tool call of every agent comes along here. */
export const decoding = ({ context, input }: ToolCodecs, answer: Answer): Answer => {
  if (input.decode === asHeld && context.decode === asHeld) return answer
  return (held, call) =>
    Effect.flatMap(
      Effect.interruptible(input.decode(held)),
      context.decode === asHeld
        ? (decoded) => answer(decoded, call)
        : (decoded) =>
          Effect.flatMap(
            Effect.interruptible(context.decode(call.context)),
            (own) => answer(decoded, { ...call, context: own })
          )
    )
}

/** Results as the AI SDK holds them. */
export const encoder = (output: OutputCodec) =>
  output.lifted ? (value: unknown) => Effect.mapError(output.encode(value), unwritable) : checkJson

// The AI SDK writes results with JSON.stringify, and where that throws the whole call rejects: after the work was done.
const checkJson = (value: unknown): Effect.Effect<unknown, ToolResultError> =>
  typeof value !== "object" && typeof value !== "bigint" || value === null
    ? Effect.succeed(value)
    : Effect.try({
      try: () => {
        JSON.stringify(value)
        return value
      },
      catch: unwritable
    })

const unwritable = (cause: unknown): ToolResultError =>
  new ToolResultError({ problem: cause instanceof Error ? cause.message : "it cannot be written as JSON", cause })
