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
import { bindEffectTools } from "../WrapTools.ts"
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
  const stop = new AbortController()
  const executions = new Executions()
  const caller: Caller = { context: call.context, ai: Context.get(call.context, Ai), track: executions.track }
  const effectTools = call.tools === undefined ? undefined : yield* bindEffectTools(call.tools, {
    context: call.context,
    track: executions.track,
    rejection: (failure) => new ToolFailure(failure)
  })
  const tools = effectTools === undefined
    ? undefined
    : mapTools(effectTools, (tool) => bindTool(tool, caller)) as ToolSet
  // The SDK can reject while other tools of the step still run. They are stopped, and waited for.
  const drained = (): Promise<void> => {
    if (executions.running > 0) stop.abort()
    return executions.ended()
  }
  return yield* fromAbortable(
    (signal) => endedWith(make({ tools, signal: AbortSignal.any([signal, stop.signal]) }), drained),
    { foreign: call.abortSignal, drained }
  ).pipe(
    Effect.mapError((error) =>
      call.abortSignal?.aborted === true && error === call.abortSignal.reason
        ? AiError.aborted(error)
        : AiError.from(error)
    )
  )
}, Effect.scoped)

const endedWith = async <A>(call: PromiseLike<A>, drained: () => Promise<void>): Promise<A> => {
  try {
    return await call
  } finally {
    await drained()
  }
}

/**
 * The executions of a call that have not ended. One is counted before it starts: its first, synchronous steps may already
 * lead to the end of the call.
 */
class Executions {
  running = 0
  readonly #waiting: Array<() => void> = []

  readonly track = async <A>(start: () => Promise<A>): Promise<A> => {
    this.running++
    try {
      return await start()
    } finally {
      this.running--
      if (this.running === 0) { for (const resume of this.#waiting.splice(0)) resume() }
    }
  }

  async ended(): Promise<void> {
    while (this.running > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
