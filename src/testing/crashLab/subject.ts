/**
 * What a lab examines, tool or `applyOnce`, as one call that it can make again and again, with hooks that it can reach.
 */
import { type Context, Deferred, Effect, Exit, Option, type Scope, Stream } from "effect"
import {
  type EffectToolDefinition,
  getEffectToolDefinition,
  hideDefinition,
  refuseUnwrapped
} from "../../ai/effectToolDefinition.ts"
import type { EffectToolBrand } from "../../ai/toolTypes.ts"
import { EffectResolution } from "../../EffectResolution.ts"
import { EffectStore } from "../../EffectStore.ts"
import { hookAnswer } from "../../internal/promiseBridge.ts"
import { copyTool } from "../../internal/toolCopy.ts"
import { applyOnce, type ApplyOnceOptions } from "../../Reconciliation.ts"
import { ToolContext } from "../../ToolContext.ts"
import { wrapToolsForRun } from "../../WrapTools.ts"
import type { LabProcess } from "./LabProcess.ts"

/** What the hooks of a call report to, and are told by. */
export interface Hooks {
  readonly process: LabProcess
  /** The effect is at the remote. */
  readonly applied: () => void
  /** Whether the remote does not show its newest effect yet. */
  readonly lags: () => boolean
  /** How to ask the check of the last call once more. */
  readonly asked: <R>(check: Effect.Effect<unknown, unknown, R>, services: Context.Context<R>) => void
}

/** One call: `again` says whether it is another attempt, which may come in other words. */
export interface Subject<R> {
  readonly name: string
  readonly call: (hooks: Hooks, again: boolean) => Effect.Effect<unknown, unknown, R>
  /** What is known of it once it was called. */
  readonly facts: Facts
}

export interface Facts {
  checks: boolean
  transactional: boolean
}

/** Whether an answer of a check says that the effect is there. */
export const isYes = (answer: unknown): boolean =>
  EffectResolution.is(answer) ? answer._tag === "Applied" : answer !== undefined

/** A check: its answer is late by as much as the remote lags. */
const checking = <A, E, R>(hooks: Hooks, ask: Effect.Effect<A, E, R>): Effect.Effect<A | undefined, E, R> =>
  Effect.contextWith((context) => {
    hooks.asked(ask, context)
    return hooks.process.within(
      "check",
      Effect.map(ask, (answer) => isYes(answer) && hooks.lags() ? undefined : answer)
    )
  })

const executing = <A, E, R>(hooks: Hooks, execute: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const { process } = hooks
  const applied = Effect.tap(execute, () => Effect.sync(hooks.applied))
  return Effect.flatMap(process.within("execute", applied), (value) => {
    const end = process.executeEndsWith
    process.executeEndsWith = undefined
    return end === undefined ? Effect.succeed(value) : end as Effect.Effect<never>
  })
}

const streaming = (hooks: Hooks, answer: () => unknown): Stream.Stream<unknown, unknown> => {
  const values = Stream.suspend(() => {
    const given = answer()
    return Stream.isStream(given)
      ? given as Stream.Stream<unknown, unknown>
      : Stream.fromEffect(hookAnswer("execute", () => given))
  })
  const applied = Stream.drain(Stream.fromEffect(Effect.sync(hooks.applied)))
  return hooks.process.streamWithin("execute", Stream.concat(values, applied))
}

const reached = (definition: EffectToolDefinition, hooks: Hooks): EffectToolDefinition => {
  const { alreadyApplied, effectKey, execute, streaming: streams } = definition
  return {
    ...definition,
    effectKey: effectKey
      && ((input, ctx, options) => hooks.process.atWork(hookAnswer("effectKey", () => effectKey(input, ctx, options)))),
    execute: (input, options) =>
      streams
        ? streaming(hooks, () => execute(input, options))
        : executing(hooks, hookAnswer("execute", () => execute(input, options))),
    alreadyApplied: alreadyApplied
      && ((key, input, ctx) => checking(hooks, hookAnswer("alreadyApplied", () => alreadyApplied(key, input, ctx))))
  }
}

/** A tool as the lab needs it: what it is called with depends on the tool. */
export type LabTool = EffectToolBrand & { readonly execute: (input: never, options: never) => unknown }

/** What a tool is called with. */
export type InputOf<T> = T extends { readonly execute: (input: infer I, options: never) => unknown } ? I : never

interface ToolSubject<R> {
  readonly tool: Effect.Effect<LabTool, never, R>
  readonly name: string
  readonly input: unknown
  readonly inOtherWords: unknown
  readonly context: unknown
}

type Execute = (input: unknown, options: object) => PromiseLike<unknown> | AsyncIterable<unknown>

/** The last value of a tool that streams, or the value of one that does not. */
const answerOf = (
  execute: Execute,
  streams: boolean,
  input: unknown,
  options: object
): Effect.Effect<unknown, unknown> =>
  streams
    ? Effect.suspend(() =>
      Effect.map(
        Stream.runLast(
          Stream.fromAsyncIterable(execute(input, options) as AsyncIterable<unknown>, (error) => error)
        ),
        Option.getOrUndefined
      )
    )
    : Effect.callback((resume, abortSignal) => {
      const settled = Deferred.makeUnsafe<void>()
      const end = (exit: Exit.Exit<unknown, unknown>): void => {
        Deferred.doneUnsafe(settled, Effect.void)
        resume(exit)
      }
      const called = execute(input, { ...options, abortSignal }) as PromiseLike<unknown>
      called.then((value) => end(Exit.succeed(value)), (error: unknown) => end(Exit.fail(error)))
      // how the call ended is only known when it has
      return Deferred.await(settled)
    })

export const toolSubject = <R>(
  { context, inOtherWords, input, name, tool }: ToolSubject<R>
): Subject<R | EffectStore | ToolContext | Scope.Scope> => {
  const facts: Facts = { checks: false, transactional: false }
  let calls = 0
  return {
    name,
    facts,
    call: Effect.fnUntraced(function*(hooks, again) {
      const made = yield* tool
      const definition = getEffectToolDefinition(made)
      if (definition === undefined) {
        return yield* Effect.die(new TypeError(`"${name}" is no effect tool: make it with defineEffectTool.`))
      }
      facts.checks = definition.alreadyApplied !== undefined
      facts.transactional = definition.transactional
      const copy = copyTool(made, { execute: refuseUnwrapped(definition.streaming) })
      const tools = yield* wrapToolsForRun(
        { [name]: hideDefinition(copy as never, reached(definition, hooks)) as never },
        yield* ToolContext,
        yield* EffectStore
      )
      const { execute } = tools[name]! as { readonly execute: Execute }
      return yield* answerOf(execute, definition.streaming, again ? inOtherWords : input, {
        toolCallId: `call-${++calls}`,
        messages: [],
        context: context ?? {}
      })
    })
  }
}

/** `applyOnce`, without the tie between its result and its schema, which its caller has kept. */
const apply = applyOnce as <A, E, R, AE, AR>(
  options: ApplyOnceOptions<A, E, R, AE, AR>
) => Effect.Effect<A, unknown, EffectStore | R | AR>

export const applyOnceSubject = <A, E, R, AE, AR>(
  options: ApplyOnceOptions<A, E, R, AE, AR>
): Subject<R | AR | EffectStore> => {
  const { alreadyApplied, execute, tool = "applyOnce" } = options
  return {
    name: tool,
    facts: { checks: alreadyApplied !== undefined, transactional: options.transactional === true },
    call: (hooks) =>
      apply({
        ...options,
        execute: (key) => executing(hooks, hookAnswer("execute", () => execute(key)) as Effect.Effect<A, E, R>),
        alreadyApplied: alreadyApplied && ((key) =>
          checking(
            hooks,
            hookAnswer("alreadyApplied", () => alreadyApplied(key)) as Effect.Effect<A | undefined, AE, AR>
          ))
      })
  }
}
