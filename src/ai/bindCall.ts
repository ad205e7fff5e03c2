/**
 * One call of the AI SDK as an Effect: its tools bound to the calling fiber, its signal aborted by interruption, and its end
 * put off until every tool has come to its own.
 */
import type { ToolSet } from "ai"
import { Cause, Context, Effect } from "effect"
import { Ai } from "../Ai.ts"
import { AiError } from "../AiError.ts"
import { fromAbortable } from "../internal/promiseBridge.ts"
import { mapTools } from "../internal/toolCopy.ts"
import { bindEffectTools } from "./bindEffectTools.ts"
import { bindCallbacks, type CallbackCall } from "./callbacks.ts"
import { bindTool, type Caller } from "./callContext.ts"
import { originalOf, ToolFailure } from "./ToolFailure.ts"

/** The options of the AI SDK that are bound. */
export interface CallOptions {
  readonly tools?: ToolSet | undefined
  /** A signal of the user's own. */
  readonly abortSignal?: AbortSignal | undefined
}

export interface BoundCall {
  readonly tools: ToolSet | undefined
  /** The callback options that the call has, able to answer Effects. */
  readonly callbacks: Record<string, unknown>
  readonly signal: AbortSignal
}

/**
 * Runs `make` with bound tools and callbacks. What it rejects with becomes an `AiError`; a decision's Effect that fails ends
 * the call, which then fails with the identical cause.
 */
export const bindCall = Effect.fnUntraced(function*<A>(
  options: CallOptions,
  context: Context.Context<Ai>,
  make: (bound: BoundCall) => PromiseLike<A>
) {
  const { abortSignal } = options
  const executions = new Executions(abortSignal)
  let failed: Cause.Cause<unknown> | undefined
  const bindTools = yield* boundTools(options.tools, context, executions)
  const called = fromAbortable({
    make: (signal, stop) => {
      const fail = (cause: Cause.Cause<unknown>): void => {
        failed ??= cause
        stop()
      }
      const call: CallbackCall = { context, signal, track: executions.track, fail }
      return ended(make({ tools: bindTools(call), callbacks: bindCallbacks(options, call), signal }), executions, stop)
    },
    foreign: abortSignal,
    drained: () => executions.ended()
  })
  // the AI SDK may have gone on without the decision's answer, or with a tool that was cut off as one that has failed
  return yield* Effect.matchEffect(called, {
    onSuccess: (result) =>
      failed !== undefined
        ? Effect.failCause(failed)
        : executions.cut
        ? Effect.fail(AiError.aborted(abortSignal?.reason))
        : Effect.succeed(result),
    onFailure: (error) => Effect.failCause(failed ?? Cause.fail(aiError(error, abortSignal)))
  })
}, Effect.scoped)

const aiError = (error: unknown, abortSignal: AbortSignal | undefined): AiError =>
  abortSignal?.aborted === true && error === abortSignal.reason ? AiError.aborted(error) : AiError.from(error)

/**
 * How to bind a call's tools to its fiber and to what stops it, for as long as the scope is open. (The first needs a scope,
 * and the second is known when the call begins.)
 */
export const boundTools = Effect.fnUntraced(function*(
  tools: ToolSet | undefined,
  context: Context.Context<Ai>,
  executions: Executions
) {
  if (tools === undefined) return (): undefined => undefined
  const reconciled = yield* bindEffectTools(tools, {
    context,
    track: executions.track,
    rejection: (failure) => new ToolFailure(failure)
  })
  const ai = Context.get(context, Ai)
  return (call: CallbackCall): ToolSet => {
    const caller: Caller = { context, ai, track: executions.track, call }
    return mapTools(reconciled, (tool) => bindTool(tool, caller)) as ToolSet
  }
})

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
export class Executions {
  running = 0
  /** Whether the abort of the caller's own signal has ended one of them. */
  cut = false
  readonly #foreign: AbortSignal | undefined
  readonly #waiting: Array<() => void> = []

  readonly #end = (): void => {
    this.running--
    if (this.running === 0) this.#waiting.splice(0).forEach((resume) => resume())
  }

  constructor(foreign?: AbortSignal) {
    this.#foreign = foreign
  }

  readonly track = <A>(start: () => Promise<A>): Promise<A> => {
    this.running++
    const execution = start()
    execution.then(this.#end, (error: unknown) => {
      this.cut ||= this.#foreign?.aborted === true && originalOf(error) === this.#foreign.reason
      this.#end()
    })
    return execution
  }

  async ended(): Promise<void> {
    while (this.running > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}
