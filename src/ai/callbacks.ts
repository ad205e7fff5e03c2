/**
 * Callback options whose functions may answer Effects, as the functions that the AI SDK calls.
 *
 * Notifications are told what happens. They run in the fibers of `Ai`: the call's end does not cut them, the `Ai`'s end
 * does, and what goes wrong in one is logged, for the SDK swallows it.
 *
 * Decisions are what a call goes on with. They are interrupted with it, and one whose Effect fails ends it. What a plain
 * function throws, or its Promise rejects with, stays the SDK's business: it knows better answers than an end.
 */
import { Cause, Context, Effect, Predicate, type Scope } from "effect"
import { Ai } from "../Ai.ts"
import { hookAnswer, runCall } from "../internal/promiseBridge.ts"
import { warn } from "../reconciliation/log.ts"
import type { DecisionName, NotificationName } from "./callbackTypes.ts"

/** The call that callbacks belong to. */
export interface CallbackCall {
  readonly context: Context.Context<Ai>
  /** Interrupts decisions. Notifications go on, and are not waited for any more. */
  readonly signal: AbortSignal
  /** Keeps an eye on a decision, so that its finalizers are done before the call is. */
  readonly track: <A>(start: () => Promise<A>) => Promise<A>
  /** Told when a decision's Effect fails: stops the call, which then fails with the first of these causes. */
  readonly fail: (cause: Cause.Cause<unknown>) => void
}

type Callback = (...args: ReadonlyArray<unknown>) => unknown
type Bind = (name: string, callback: Callback, call: CallbackCall) => Callback

/** The callback options among `options`, bound; to be spread behind them. */
export const bindCallbacks = (options: object, call: CallbackCall): Record<string, unknown> => {
  const bound: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(options)) {
    const bind = kinds.get(name)
    if (bind !== undefined && option !== undefined) bound[name] = bindOption(name, option, bind, call)
  }
  return bound
}

/** A function, several, or one for each tool; what is no function stays as it is. */
const bindOption = (name: string, option: unknown, bind: Bind, call: CallbackCall): unknown => {
  const bindOne = (value: unknown) => typeof value === "function" ? bind(name, value as Callback, call) : value
  if (Array.isArray(option)) return option.map(bindOne)
  return Predicate.isObject(option)
    ? Object.fromEntries(Object.entries(option).map(([tool, value]) => [tool, bindOne(value)]))
    : bindOne(option)
}

const notification: Bind = (name, callback, { context, signal }) => {
  const ai = Context.get(context, Ai)
  const run = runCall(context)
  return (...args) =>
    untilAborted(run(heard(`The callback ${name}`, hookAnswer(name, () => callback(...args)), ai)), signal)
}

/**
 * What `answer` comes to, or `undefined` as soon as `signal` aborts. What is behind `answer` goes on: but the AI SDK waits for
 * callbacks, and whoever ends a call shall not have to.
 */
export const untilAborted = <A>(answer: Promise<A>, signal: AbortSignal | undefined): Promise<A | undefined> =>
  signal === undefined ? answer : new Promise((resolve, reject) => {
    const release = () => resolve(undefined)
    const settled = () => signal.removeEventListener("abort", release)
    signal.addEventListener("abort", release)
    answer.then(resolve, reject).finally(settled)
    if (signal.aborted) release()
  })

/**
 * A callback that nobody may suffer from. It runs in a fiber of `ai` if there is one, with a Scope of its own, and where it
 * comes to no answer, that is logged.
 */
export const heard = <A, E, R>(
  who: string,
  callback: Effect.Effect<A, E, R>,
  ai: Ai["Service"] | undefined
): Effect.Effect<A | undefined, never, Exclude<R, Scope.Scope>> => {
  const scoped = Effect.scoped(callback)
  return Effect.catchCause(
    ai === undefined ? scoped : ai.runCallback(scoped),
    (cause) =>
      Effect.as(
        warn(
          Cause.hasInterruptsOnly(cause) ? `${who} was stopped, or came after its Ai had closed` : `${who} failed`,
          cause
        ),
        undefined
      )
  )
}

const decision: Bind = (name, callback, call) => {
  const decide = decider(name, runCall(call.context), call)
  return (...args) => {
    const answer = callback(...args)
    return mayHoldEffect(answer) ? decide(answer) : answer
  }
}

/** Other answers need nobody's help: most of them are given at once, and shall cost nothing. */
export const mayHoldEffect = (answer: unknown): boolean => Effect.isEffect(answer) || Predicate.isPromiseLike(answer)

/** What comes of a decision that answered an Effect or a Promise, for a call, or on its own where there is none. */
export const decider = (name: string, run: ReturnType<typeof runCall<never>>, call: CallbackCall | undefined) => {
  const answered = (answer: unknown, fails: (cause: Cause.Cause<unknown>) => boolean) =>
    Effect.tapCause(
      hookAnswer(name, () => answer),
      (cause) => Effect.sync(() => fails(cause) ? call?.fail(cause) : undefined)
    )
  const signal = call?.signal
  return (answer: unknown): Promise<unknown> => {
    // nobody would run an Effect inside of a Promise: that is a mistake, and no answer
    if (!Effect.isEffect(answer)) return run(answered(answer, Cause.hasDies))
    const isStopped = (cause: Cause.Cause<unknown>) => signal?.aborted === true && Cause.hasInterruptsOnly(cause)
    const start = () => run(answered(answer, (cause) => !isStopped(cause)), signal)
    return call === undefined ? start() : call.track(start)
  }
}

const notifications: Record<NotificationName, Bind> = {
  onStart: notification,
  experimental_onStart: notification,
  onStepStart: notification,
  experimental_onStepStart: notification,
  onLanguageModelCallStart: notification,
  experimental_onLanguageModelCallStart: notification,
  onLanguageModelCallEnd: notification,
  experimental_onLanguageModelCallEnd: notification,
  onToolExecutionStart: notification,
  experimental_onToolCallStart: notification,
  onToolExecutionEnd: notification,
  experimental_onToolCallFinish: notification,
  onStepEnd: notification,
  onStepFinish: notification,
  onStepError: notification,
  onEnd: notification,
  onFinish: notification,
  onChunk: notification,
  onAbort: notification,
  onError: notification
}

const decisions: Record<DecisionName, Bind> = {
  prepareStep: decision,
  stopWhen: decision,
  toolApproval: decision,
  repairToolCall: decision,
  experimental_repairToolCall: decision,
  experimental_refineToolInput: decision,
  experimental_download: decision
}

const kinds: ReadonlyMap<string, Bind> = new Map(Object.entries({ ...notifications, ...decisions }))
