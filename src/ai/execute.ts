/**
 * `execute` as the AI SDK calls it: JSON in and out, a Promise, an `AbortSignal`.
 *
 * @since 0.1.0
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Data, Effect } from "effect"
import { hookAnswer, runCall } from "../internal/promiseBridge.ts"
import { type Caller, type Captured, contextOf } from "./callContext.ts"
import { asHeld } from "./codecs.ts"
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
  options: AnyToolOptions,
  captured: Captured,
  codecs: ToolCodecs,
  caller: Caller | undefined
) => {
  const bound = caller === undefined ? undefined : runCall(contextOf(captured, caller.context))
  const alone = runCall(captured.all)
  const reject = (error: unknown) => Promise.reject(caller === undefined ? carryable(error) : new ToolFailure(error))
  const execute = executeOf(options, codecs)
  return (input: unknown, call: ToolExecutionOptions<unknown>): Promise<unknown> => {
    const run = bound ?? runHere(captured, alone)
    const start = () => run(execute(input, call), call.abortSignal).catch(reject)
    return caller === undefined ? start() : caller.track(start)
  }
}

/** Where nobody has bound the tool, it belongs to the fiber that calls it, if one does. */
const runHere = (captured: Captured, alone: ReturnType<typeof runCall<never>>) => {
  const context = contextOf(captured, undefined)
  return context === captured.all ? alone : runCall(context)
}

/** What a call does, with as few steps as the tool's schemas allow: every tool call of every agent comes along here. */
const executeOf = ({ execute: hook }: AnyToolOptions, { context, input, output }: ToolCodecs) => {
  const answer = (decoded: unknown, call: ToolExecutionOptions<unknown>) =>
    Effect.flatMap(hookAnswer("execute", () => hook?.(decoded as never, call as never)), encode)
  const encode = output.lifted
    ? (value: unknown) => Effect.mapError(output.encode(value), unwritable)
    : checkJson
  if (input.decode === asHeld && context.decode === asHeld) return answer
  return (held: unknown, call: ToolExecutionOptions<unknown>) =>
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
