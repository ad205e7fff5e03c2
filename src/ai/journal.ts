/**
 * The AI SDK's own loop, replayed: its model calls, its tool calls and its requests for approval go through a journal, which
 * answers from storage what was finished before.
 *
 * Whatever suspends the run leaves a Promise of the loop pending: an error would become a result that the model reads. The
 * owner of the loop sees that it is parked, and drops it as a whole.
 */
import { getErrorMessage, type LanguageModelV4GenerateResult } from "@ai-sdk/provider"
import { asSchema, type ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { gateway, type LanguageModel, type ToolSet, wrapLanguageModel } from "ai"
import { Cause, type Context, Deferred, Effect, Fiber, Predicate } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import { copyTool, mapTools } from "../internal/toolCopy.ts"
import { ToolFailure } from "./ToolFailure.ts"

/** A tool call of a run. Providers repeat call ids, over steps and within one. */
export interface CallPlace {
  /** -1 for calls of the prompt, which were approved there. */
  readonly step: number
  readonly toolCallId: string
  /** How many calls of this step had the same id before. */
  readonly occurrence: number
  readonly toolName: string
}

/** What came of a tool call: its result, or the text that the model reads of its failure. */
export type ToolOutcome =
  | { readonly _tag: "Result"; readonly output: unknown }
  | { readonly _tag: "Failure"; readonly text: string }

/** What a person, or a rule, says to a call. */
export interface Verdict {
  readonly type: "not-applicable" | "approved" | "denied" | "user-approval"
  readonly reason?: string | undefined
}

/** Whatever an Effect of the journal fails with ends the loop, but the failure of a model or of a decision. */
export interface Journal {
  readonly model: (step: number, call: Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>
  /** `call` answers how the execution ended; a failure of its own is nothing that the model shall read. */
  readonly tool: (
    place: CallPlace,
    call: Effect.Effect<ToolOutcome, unknown>
  ) => Effect.Effect<ToolOutcome, unknown>
  /** A tool's failure that the model must not read: the call is tried again, or the run ends. */
  readonly isOurs: (failure: unknown) => boolean
  /** The verdict on a call, out of what the agent's rules say: `user-approval` where a person has still to answer. */
  readonly approval: (
    place: CallPlace,
    input: unknown,
    rules: Effect.Effect<Verdict, unknown>
  ) => Effect.Effect<Verdict, unknown>
}

/** What ends the loop from outside of it. */
export class EndsLoop {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

/** What parks the loop: the call is made again later, in another pass. The calls beside it go on. */
export class ParksLoop {}

/** Runs parts of a loop for its Promises. */
export class Loop {
  readonly #context: Context.Context<never>
  readonly #running = new Set<Fiber.Fiber<unknown, unknown>>()
  readonly #parked = Deferred.makeUnsafe<void, unknown>()
  /** The step that the loop is in. */
  step = -1
  /** Whether the execution was suspended under the loop. */
  suspended = false
  #idle = Deferred.makeUnsafe<void>()

  constructor(context: Context.Context<never>) {
    this.#context = context
  }

  /** Settles as `effect` ends; stays pending where the run was suspended, or ends because of it. */
  readonly run = <A>(effect: Effect.Effect<A, unknown>, signal: AbortSignal): Promise<A> => {
    if (signal.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const fiber = Effect.runForkWith(this.#context)(effect)
      this.#running.add(fiber)
      const stop = () => fiber.interruptUnsafe()
      signal.addEventListener("abort", stop)
      fiber.addObserver((exit) => {
        this.#running.delete(fiber)
        signal.removeEventListener("abort", stop)
        if (exit._tag === "Success") resolve(exit.value)
        else if (signal.aborted) reject(signal.reason)
        else if (Cause.hasInterruptsOnly(exit.cause)) {
          this.suspended = true
          void this.park()
        } else {
          const failure = Cause.squash(exit.cause)
          if (failure instanceof ParksLoop) void this.park()
          else if (failure instanceof EndsLoop) Deferred.doneUnsafe(this.#parked, Effect.fail(failure.error))
          else reject(failure)
        }
        if (this.#running.size === 0) Deferred.doneUnsafe(this.#idle, Effect.void)
      })
    })
  }

  /** What `question` fails with, as a tool's failure travels; nothing where it succeeds. */
  readonly ask = (question: Effect.Effect<void, unknown>): Promise<ToolFailure | undefined> =>
    Effect.runPromiseWith(this.#context)(
      Effect.matchCause(question, {
        onSuccess: () => undefined,
        onFailure: (cause) => new ToolFailure(Cause.squash(cause))
      })
    )

  /** Stays pending, and says so. */
  readonly park = (): Promise<never> => {
    Deferred.doneUnsafe(this.#parked, Effect.void)
    return new Promise(() => {})
  }

  /** Goes on when the loop is parked and nothing of it runs any more; fails with what ends the loop. */
  readonly parked: Effect.Effect<void, unknown> = Effect.suspend(() =>
    Effect.andThen(
      Deferred.await(this.#parked),
      Effect.suspend(() => this.#settle())
    )
  )

  #settle(): Effect.Effect<void> {
    if (this.#running.size === 0) return Effect.void
    this.#idle = Deferred.makeUnsafe()
    return Effect.andThen(Deferred.await(this.#idle), Effect.suspend(() => this.#settle()))
  }

  /** Interrupts what still runs, and waits for it. */
  readonly end: Effect.Effect<void> = Effect.suspend(() => Effect.asVoid(Fiber.interruptAll([...this.#running])))
}

type AnyFunction = (...args: ReadonlyArray<never>) => unknown

/** What of a loop's options goes through the journal, bound to its fiber already. */
export interface JournaledOptions {
  readonly model: LanguageModel
  readonly tools: ToolSet | undefined
  readonly prepareStep: AnyFunction | undefined
  readonly toolApproval: unknown
  /** Asked before each execution of a tool; what it fails with is what the tool fails with. */
  readonly allow: ((toolName: string) => Effect.Effect<void, unknown>) | undefined
  /** The signal of the whole call. */
  readonly signal: AbortSignal
}

const resolve = (model: LanguageModel) =>
  typeof model === "string" ? (globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(model) : model

/** The options of a loop that goes through `journal`; to be spread behind the others. */
export const journaled = (options: JournaledOptions, journal: Journal, loop: Loop) => {
  const { signal, tools } = options
  /** The calls of the step by their ids: those that its model made, and how many of them were decided on and executed. */
  let made = new Set<string>()
  let decided = new Map<string, number>()
  let executed = new Map<string, number>()
  const waiting = new Set<string>()

  const next = (counts: Map<string, number>, id: string): number => {
    const occurrence = counts.get(id) ?? 0
    counts.set(id, occurrence + 1)
    return occurrence
  }
  const nameOf = ({ occurrence, toolCallId }: CallPlace) => `${occurrence}/${toolCallId}`

  const wrapModel = (model: LanguageModel): LanguageModel =>
    wrapLanguageModel({
      model: resolve(model),
      middleware: {
        specificationVersion: "v4",
        wrapGenerate: async ({ doGenerate, params }) => {
          const call = journal.model(
            loop.step,
            Effect.map(
              hookAnswer("model", doGenerate),
              (result) => withoutBodies(result as LanguageModelV4GenerateResult)
            )
          )
          const result = await loop.run(call, params.abortSignal ?? signal) as LanguageModelV4GenerateResult
          made = new Set(result.content.flatMap((part) => part.type === "tool-call" ? [part.toolCallId] : []))
          return result
        }
      }
    })

  const prepareStep = async (given: { readonly stepNumber: number }) => {
    loop.step = given.stepNumber
    decided = new Map()
    executed = new Map()
    waiting.clear()
    const prepared: unknown = await options.prepareStep?.(given as never)
    return Predicate.isObject(prepared) && "model" in prepared && prepared.model !== undefined
      ? { ...prepared, model: wrapModel(prepared.model as LanguageModel) }
      : prepared
  }

  // In a failed call's text there is all that the model reads of it; the rest of the failure is not kept.
  const outcomeOf = (execute: AnyFunction, input: unknown, call: ToolExecutionOptions<unknown>) =>
    Effect.matchEffect(hookAnswer("execute", () => execute(input as never, call as never)), {
      onSuccess: (output): Effect.Effect<ToolOutcome, unknown> => Effect.succeed({ _tag: "Result", output }),
      onFailure: (error) => {
        // what an interrupted call says is no word about its effect, and is not kept
        if (signal.aborted) return Effect.never
        const failure = error instanceof ToolFailure ? error.original : error
        return journal.isOurs(failure)
          ? Effect.fail(failure)
          : Effect.succeed<ToolOutcome>({ _tag: "Failure", text: getErrorMessage(error) })
      }
    })

  const { allow } = options
  const guarded = (toolName: string, execute: AnyFunction): AnyFunction =>
    allow === undefined ? execute : async (...call) => {
      const refusal = await loop.ask(allow(toolName))
      if (refusal !== undefined) throw refusal
      return execute(...call)
    }

  const wrapTool =
    (toolName: string, execute: AnyFunction) =>
    async (input: unknown, call: ToolExecutionOptions<unknown>): Promise<unknown> => {
      // a call that another tool makes is a part of that one
      const { step } = loop
      if (step >= 0 && !made.has(call.toolCallId)) return execute(input as never, call as never)
      const place = { step, toolCallId: call.toolCallId, occurrence: next(executed, call.toolCallId), toolName }
      if (waiting.has(nameOf(place))) return loop.park()
      const outcome = await loop.run(journal.tool(place, outcomeOf(execute, input, call)), signal)
      if (outcome._tag === "Failure") throw new ToolFailure(outcome.text)
      return outcome.output
    }

  const toolApproval = async (given: ApprovalOptions) => {
    const { input, toolCallId, toolName } = given.toolCall
    const place = { step: loop.step, toolCallId, occurrence: next(decided, toolCallId), toolName }
    const rules = Effect.map(
      hookAnswer("toolApproval", () => verdictOf(options.toolApproval, tools, given)),
      (verdict) => verdict as Verdict
    )
    if (!mayNeedApproval(options.toolApproval, tools?.[toolName], toolName)) return undefined
    const verdict = await loop.run(journal.approval(place, input, rules), signal)
    if (verdict.type !== "user-approval") return verdict
    // the calls beside it go on; this one is parked where it would be executed
    waiting.add(nameOf(place))
    return { type: "approved" }
  }

  return {
    // a retry of the SDK's would ask for a step that is stored as failed
    maxRetries: 0,
    model: wrapModel(options.model),
    prepareStep,
    toolApproval,
    ...tools === undefined ? {} : {
      tools: mapTools(tools, (tool, name) => {
        const execute: unknown = tool.execute
        return typeof execute === "function"
          ? copyTool(tool, { execute: wrapTool(name, guarded(name, (execute as AnyFunction).bind(tool))) } as object)
          : tool
      })
    }
  }
}

/** Bodies repeat the whole prompt in every step, and nothing reads them. */
const withoutBodies = ({ request: _, response, ...result }: LanguageModelV4GenerateResult) => {
  if (response === undefined) return result
  const { body: __, ...rest } = response
  return { ...result, response: rest }
}

interface ApprovalOptions {
  readonly toolCall: { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }
  readonly toolsContext: Readonly<Record<string, unknown>> | undefined
  readonly messages: ReadonlyArray<unknown>
  readonly runtimeContext: unknown
}

const own = (record: unknown, name: string): unknown =>
  Predicate.isObject(record) && Object.hasOwn(record, name) ? (record as Record<string, unknown>)[name] : undefined

const mayNeedApproval = (toolApproval: unknown, tool: ToolSet[string] | undefined, name: string): boolean =>
  typeof toolApproval === "function" || own(toolApproval, name) != null || tool?.needsApproval != null

/** What the AI SDK's `toolApproval`, or a tool's own `needsApproval`, says to a call. */
const verdictOf = async (
  toolApproval: unknown,
  tools: ToolSet | undefined,
  given: ApprovalOptions
): Promise<Verdict> => {
  if (typeof toolApproval === "function") return normalized(await (toolApproval as AnyFunction)(given as never))
  const { messages, runtimeContext, toolCall: { input, toolCallId, toolName }, toolsContext } = given
  const tool = tools?.[toolName]
  const context = async () => {
    const value = own(toolsContext, toolName)
    const validate = tool?.contextSchema === undefined ? undefined : asSchema(tool.contextSchema).validate
    const valid = await validate?.(value)
    if (valid?.success === false) throw valid.error
    return valid === undefined ? value : valid.value
  }
  const rule = own(toolApproval, toolName)
  if (rule != null) {
    return normalized(
      typeof rule === "function"
        ? await (rule as AnyFunction)(
          input as never,
          { toolCallId, messages, toolContext: await context(), runtimeContext } as never
        )
        : rule
    )
  }
  const needed: unknown = typeof tool?.needsApproval === "function"
    ? await (tool.needsApproval as AnyFunction)(
      input as never,
      { toolCallId, messages, context: await context() } as never
    )
    : tool?.needsApproval
  return { type: needed === true ? "user-approval" : "not-applicable" }
}

const normalized = (status: unknown): Verdict =>
  status === undefined
    ? { type: "not-applicable" }
    : typeof status === "string"
    ? { type: status as Verdict["type"] }
    : status as Verdict
