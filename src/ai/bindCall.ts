/**
 * One call of the AI SDK as an Effect: its tools bound to the calling fiber, its signal aborted by interruption, and its end
 * put off until every tool has come to its own.
 */
import type { ToolSet } from "ai"
import { Context, Effect } from "effect"
import { Ai } from "../Ai.ts"
import { AiError } from "../AiError.ts"
import { fromAbortable } from "../internal/promiseBridge.ts"
import { mapTools } from "../internal/toolCopy.ts"
import { bindEffectTools } from "./bindEffectTools.ts"
import { bindTool, type Caller } from "./callContext.ts"
import { ToolFailure } from "./ToolFailure.ts"

export interface Call {
  readonly tools: ToolSet | undefined
  /** A signal of the user's own. */
  readonly abortSignal: AbortSignal | undefined
  readonly context: Context.Context<Ai>
}

export interface BoundCall {
  readonly tools: ToolSet | undefined
  readonly signal: AbortSignal
}

/** Runs `make` with the bound tools. What it rejects with becomes an `AiError`. */
export const bindCall = Effect.fnUntraced(function*<A>(call: Call, make: (bound: BoundCall) => PromiseLike<A>) {
  const { abortSignal, context } = call
  const executions = new Executions()
  const tools = call.tools === undefined ? undefined : bindTools(
    yield* bindEffectTools(call.tools, {
      context,
      track: executions.track,
      rejection: (failure) => new ToolFailure(failure)
    }),
    { context, ai: Context.get(context, Ai), track: executions.track }
  )
  return yield* Effect.mapError(
    fromAbortable({
      make: (signal, stop) => ended(make({ tools, signal }), executions, stop),
      foreign: abortSignal,
      drained: () => executions.ended()
    }),
    (error) =>
      abortSignal?.aborted === true && error === abortSignal.reason ? AiError.aborted(error) : AiError.from(error)
  )
}, Effect.scoped)

const bindTools = (tools: ToolSet, caller: Caller): ToolSet =>
  mapTools(tools, (tool) => bindTool(tool, caller)) as ToolSet

// The SDK can reject while other tools of the step still run. They are stopped, and waited for.
const ended = async <A>(call: PromiseLike<A>, executions: Executions, stop: () => void): Promise<A> => {
  try {
    return await call
  } finally {
    if (executions.running > 0) {
      stop()
      await executions.ended()
    }
  }
}

/**
 * The executions of a call that have not ended. One is counted before it starts: its first, synchronous steps may already
 * lead to the end of the call.
 */
class Executions {
  running = 0
  readonly #waiting: Array<() => void> = []

  readonly #end = (): void => {
    this.running--
    if (this.running === 0) this.#waiting.splice(0).forEach((resume) => resume())
  }

  readonly track = <A>(start: () => Promise<A>): Promise<A> => {
    this.running++
    const execution = start()
    execution.then(this.#end, this.#end)
    return execution
  }

  async ended(): Promise<void> {
    while (this.running > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
