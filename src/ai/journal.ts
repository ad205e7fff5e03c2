/**
 * The AI SDK's own loop, replayed: its model calls, its tool calls and its requests for approval go through a journal, which
 * answers from storage what was finished before.
 */
import {
  getErrorMessage,
  type LanguageModelV4GenerateResult,
  type LanguageModelV4StreamResult,
  type LanguageModelV4ToolCall
} from "@ai-sdk/provider"
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { gateway, type LanguageModel, type StepResult, type ToolSet, wrapLanguageModel } from "ai"
import { Effect, Predicate } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import { copyTool, mapTools } from "../internal/toolCopy.ts"
import {
  type ApprovalOptions,
  mayNeedApproval,
  type Ruled,
  ruledTools,
  type Verdict,
  verdictOf
} from "./approvalRules.ts"
import { collectStream } from "./collectStream.ts"
import { contentParts, isSeries, ofCall } from "./contentParts.ts"
import { distinctCalls } from "./distinctCalls.ts"
import { goodCalls } from "./goodCalls.ts"
import { inputDecisions } from "./inputDecisions.ts"
import type { EndsLoop, Loop } from "./Loop.ts"
import type { Publisher } from "./Publisher.ts"
import type { StepPart } from "./StepPart.ts"
import { showReplay } from "./telemetry/callSpan.ts"
import { ToolFailure } from "./ToolFailure.ts"

export type { Verdict } from "./approvalRules.ts"
export { EndsLoop, Loop, ParksLoop } from "./Loop.ts"

/** A tool call of a run. Providers repeat call ids over steps; within one they are made different (`distinctCalls`). */
export interface CallPlace {
  /** -1 for calls of the prompt, which were approved there. */
  readonly step: number
  readonly toolCallId: string
  /** How many calls of this step had the same id before: calls of a prompt may have one id. */
  readonly occurrence: number
  readonly toolName: string
  /** Whether the model's provider executes it, and nobody here can hold it back. */
  readonly providerExecuted?: boolean | undefined
}

/** What came of a tool call: its result, or the text that the model reads of its failure. */
export type ToolOutcome =
  | { readonly _tag: "Result"; readonly output: unknown }
  | { readonly _tag: "Failure"; readonly text: string }

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
  /** What the loop ends with where a call that was made, or may have been, is none any more that can be made. */
  readonly gone: (call: Pick<CallPlace, "step" | "toolCallId" | "toolName">) => EndsLoop
  /**
   * What the agent makes of an input, the first time it is asked: of that of a call, by the call's id, or of any that is the
   * same. Whatever comes of it is an answer.
   */
  readonly input: (
    step: number,
    kind: "repair" | "refine",
    about: string | { readonly toolName: string; readonly input: unknown },
    decide: Effect.Effect<unknown, unknown>
  ) => Effect.Effect<unknown, unknown>
  /** What a person who answers calls a call. */
  readonly approvalId: (place: CallPlace) => string
  /**
   * The verdict on a call, out of what the agent's rules say: `user-approval` where a person has still to answer. It is one on
   * this very input: where the call comes with another one later, the run ends.
   */
  readonly approval: (
    place: CallPlace,
    input: unknown,
    rules: Effect.Effect<Verdict, unknown>
  ) => Effect.Effect<Verdict, unknown>
}

type AnyFunction = (...args: ReadonlyArray<never>) => unknown

/** What of a loop's options goes through the journal, bound to its fiber already. */
export interface JournaledOptions {
  readonly model: LanguageModel
  readonly tools: ToolSet | undefined
  readonly prepareStep: AnyFunction | undefined
  readonly toolApproval: unknown
  /** The callbacks of the loop. */
  readonly callbacks: Readonly<Record<string, unknown>>
  /** Whether models stream their answers. They are stored as a whole all the same, before anything else happens. */
  readonly stream: boolean
  /** Asked before each execution of a tool; what it fails with is what the tool fails with. */
  readonly allow: ((toolName: string) => Effect.Effect<void, unknown>) | undefined
  /** The signal of the whole call. */
  readonly signal: AbortSignal
}

const resolve = (model: LanguageModel) =>
  typeof model === "string" ? (globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(model) : model

/** The answer of a model, as it is kept. */
export interface ModelAnswer {
  /** What it is called among all that were generated for the step. */
  readonly answer: string
  readonly result: LanguageModelV4GenerateResult
  /** The tools that had rules then. Their calls keep them, whatever a later version of the agent says. */
  readonly ruled: Ruled
  /** The ids of the calls that could be made then. */
  readonly good: ReadonlyArray<string>
}

/** The options of a loop that goes through `journal`, and tells `publisher`; to be spread behind the others. */
export const journaled = (options: JournaledOptions, journal: Journal, publisher: Publisher, loop: Loop) => {
  const { callbacks, signal, tools } = options
  /** What stops the step: the signal of the whole call, or a timeout of the loop or of the step. */
  let stops = signal
  /** What the step's answer is called. */
  let answer = ""
  /** The tools that had rules when it was given. */
  let ruled: Ruled = []
  /** The calls of the step by their ids: those that its model made, and how many of them were decided on and executed. */
  let made = new Set<string>()
  let decided = new Map<string, number>()
  let executed = new Map<string, number>()
  /** The ids of the calls that wait for a person. */
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
        wrapGenerate: async ({ doGenerate, doStream, params }) => {
          const { step } = loop
          const stop = params.abortSignal ?? signal
          stops = stop
          const generated = hookAnswer("model", doGenerate) as Effect.Effect<LanguageModelV4GenerateResult, unknown>
          const streamed = (answer: string) =>
            hookAnswer("model", doStream).pipe(
              Effect.flatMap((result) =>
                collectStream(result as LanguageModelV4StreamResult, (part) => publisher.live(step, part))
              ),
              Effect.tap(() => publisher.written(step, answer))
            )
          const good = ({ content }: LanguageModelV4GenerateResult) =>
            Effect.promise(() => goodCalls(content, tools, params.tools))
          const stillGood = ({ good: before, result }: ModelAnswer) =>
            Effect.flatMap(good(result), (now) => {
              const lost = result.content.find((part) =>
                part.type === "tool-call" && before.includes(part.toolCallId) && !now.includes(part.toolCallId)
              ) as LanguageModelV4ToolCall | undefined
              return lost === undefined ? Effect.void : Effect.fail(journal.gone({ step, ...lost }))
            })
          let isReplay = true
          const call = Effect.flatMap(publisher.begin(step), (answer) => {
            isReplay = false
            return Effect.flatMap(options.stream ? streamed(answer) : generated, (given) => {
              const result = distinctCalls(withoutBodies(given))
              return Effect.map(good(result), (good): ModelAnswer => ({
                answer,
                result,
                ruled: ruledTools(options.toolApproval, tools),
                good
              }))
            })
          })
          // an activity may outlive the run that asked for it: that its request was aborted is no answer, and is not kept
          const whole = Effect.catch(call, (error) => stop.aborted ? Effect.never : Effect.fail(error))
          const stored = await loop.run(
            Effect.tap(
              journal.model(step, whole) as Effect.Effect<ModelAnswer, unknown>,
              (stored) => isReplay ? stillGood(stored) : Effect.void
            ),
            stop
          )
          loop.replayed.model = isReplay
          if (isReplay) showReplay()
          answer = stored.answer
          ruled = stored.ruled
          const { result } = stored
          made = new Set(result.content.flatMap((part) => part.type === "tool-call" ? [part.toolCallId] : []))
          return result
        }
      }
    })

  /** The callback of the loop, by the first of its names that is taken. */
  const told = (...names: ReadonlyArray<string>): AnyFunction | undefined =>
    names.map((name) => callbacks[name] as AnyFunction | undefined).find((callback) => callback !== undefined)

  const prepareStep = async (given: { readonly stepNumber: number }) => {
    loop.step = given.stepNumber
    decided = new Map()
    executed = new Map()
    waiting.clear()
    loop.replayed.calls.clear()
    const prepared: unknown = await options.prepareStep?.(given as never)
    return Predicate.isObject(prepared) && "model" in prepared && prepared.model !== undefined
      ? { ...prepared, model: wrapModel(prepared.model as LanguageModel) }
      : prepared
  }

  // In a failed call's text there is all that the model reads of it; the rest of the failure is not kept.
  const outcomeOf = (
    execute: AnyFunction,
    input: unknown,
    call: ToolExecutionOptions<unknown>,
    show: (value: unknown) => Effect.Effect<void>
  ) => {
    let series = false
    const noted = (answer: unknown): unknown => {
      series ||= isSeries(answer)
      return answer
    }
    const called = () => {
      const answer = execute(input as never, call as never)
      return Predicate.isPromiseLike(answer) ? answer.then(noted) : noted(answer)
    }
    return Effect.matchEffect(hookAnswer("execute", called, undefined, (value) => series ? show(value) : Effect.void), {
      onSuccess: (output): Effect.Effect<ToolOutcome, unknown> => Effect.succeed({ _tag: "Result", output }),
      onFailure: (error) => {
        // what an interrupted call says is no word about its effect, and is not kept
        if (stops.aborted) return Effect.never
        const failure = error instanceof ToolFailure ? error.original : error
        return journal.isOurs(failure)
          ? Effect.fail(failure)
          : Effect.succeed<ToolOutcome>({ _tag: "Failure", text: getErrorMessage(error) })
      }
    })
  }

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
      if (waiting.has(call.toolCallId)) return loop.park()
      const ofThis = ofCall({
        toolCallId: call.toolCallId,
        toolName,
        dynamic: tools?.[toolName]?.type === "dynamic",
        toolMetadata: tools?.[toolName]?.metadata
      })
      const show = (output: unknown) =>
        publisher.live(step, { type: "tool-result", ...ofThis, output, preliminary: true })
      let isReplay = true
      const called = Effect.suspend(() => {
        isReplay = false
        return outcomeOf(execute, input, call, show)
      })
      const ended = Effect.tap(
        journal.tool(place, called),
        (outcome) =>
          publisher.once(
            step,
            `tool/${nameOf(place)}`,
            outcome._tag === "Result"
              ? { type: "tool-result", ...ofThis, output: outcome.output }
              : { type: "tool-error", ...ofThis, error: outcome.text }
          )
      )
      const outcome = await loop.run(ended, stops)
      if (isReplay) {
        loop.replayed.calls.add(call.toolCallId)
        showReplay()
      }
      if (outcome._tag === "Failure") throw new ToolFailure(outcome.text)
      return outcome.output
    }

  const tellOf = (place: CallPlace, { asked = false, reason, type }: Verdict) => {
    const { step, toolCallId, toolName } = place
    const approval = {
      approvalId: journal.approvalId(place),
      toolCallId,
      toolName,
      ...reason === undefined ? {} : { reason }
    }
    const tell = (name: string, part: StepPart) => publisher.once(step, `${name}/${nameOf(place)}`, part)
    const request = asked ? tell("request", { type: "tool-approval-request", ...approval }) : Effect.void
    if (type !== "approved" && type !== "denied") return request
    const response = tell("response", { type: "tool-approval-response", ...approval, approved: type === "approved" })
    const denied = tell("denied", { type: "tool-output-denied", toolCallId, toolName })
    return Effect.andThen(
      asked ? Effect.andThen(request, response) : Effect.void,
      type === "denied" ? denied : Effect.void
    )
  }

  const toolApproval = async (given: ApprovalOptions) => {
    const { input, providerExecuted, toolCallId, toolName } = given.toolCall
    const { step } = loop
    const hadRules = step < 0 || ruled === "all" || ruled.includes(toolName)
    if (!hadRules && !mayNeedApproval(options.toolApproval, tools?.[toolName], toolName)) return undefined
    const place = { step, toolCallId, occurrence: next(decided, toolCallId), toolName, providerExecuted }
    const rules = Effect.map(
      hookAnswer("toolApproval", () => verdictOf(options.toolApproval, tools, given)),
      (verdict) => verdict as Verdict
    )
    const { asked: _, ...verdict } = await loop.run(
      Effect.tap(journal.approval(place, input, rules), (verdict) => tellOf(place, verdict)),
      signal
    )
    if (verdict.type !== "user-approval") return verdict
    waiting.add(toolCallId)
    // the AI SDK makes the calls beside it, and the loop is parked when they are done; a call of the prompt, which it takes for
    // approved, is parked where it would be executed
    return step < 0 ? { type: "approved" } : verdict
  }

  return {
    // a retry of the SDK's would ask for a step that is stored as failed
    maxRetries: 0,
    model: wrapModel(options.model),
    prepareStep,
    ...inputDecisions(callbacks, journal, loop, signal),
    toolApproval,
    onLanguageModelCallEnd: async (event: Pick<StepResult<ToolSet>, "content">) => {
      await loop.run(publisher.answered(loop.step, answer, contentParts(event.content)), signal)
      await told("onLanguageModelCallEnd", "experimental_onLanguageModelCallEnd")?.(event as never)
    },
    onStepEnd: async (event: StepResult<ToolSet>) => {
      if (waiting.size > 0) return loop.park()
      const { finishReason, providerMetadata, stepNumber: step, usage } = event
      const part = { type: "finish-step", step, finishReason, usage } as const
      const finished = providerMetadata === undefined ? part : { ...part, providerMetadata }
      await loop.run(publisher.once(step, "finish", finished), signal)
      await told("onStepEnd", "onStepFinish")?.(event as never)
    },
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
