/**
 * The types of callback options that may answer Effects.
 *
 * The services and errors of all callbacks are read from the options as they were inferred (`O`). One type parameter for
 * them all would be inferred from the first callback, and refuse the services of the second.
 *
 * @since 0.1.0
 */
import type { Effect, Scope } from "effect"
import type { ApprovalError } from "./toolTypes.ts"

/** Callbacks that are told what happens. They cannot fail, and change nothing for the call. */
export type NotificationName =
  | "onStart"
  | "experimental_onStart"
  | "onStepStart"
  | "experimental_onStepStart"
  | "onLanguageModelCallStart"
  | "experimental_onLanguageModelCallStart"
  | "onLanguageModelCallEnd"
  | "experimental_onLanguageModelCallEnd"
  | "onToolExecutionStart"
  | "experimental_onToolCallStart"
  | "onToolExecutionEnd"
  | "experimental_onToolCallFinish"
  | "onStepEnd"
  | "onStepFinish"
  | "onStepError"
  | "onEnd"
  | "onFinish"
  | "onChunk"
  | "onAbort"
  | "onError"

/** Callbacks whose answer the call goes on with: a function, several, or one for each tool. */
export type DecisionName =
  | "prepareStep"
  | "stopWhen"
  | "toolApproval"
  | "repairToolCall"
  | "experimental_repairToolCall"
  | "experimental_refineToolInput"
  | "experimental_download"

/** A notification that may also answer an Effect that cannot fail. */
export type Notification<T> = T extends (...args: infer A) => infer V
  ? (...args: A) => V | Effect.Effect<unknown, never, unknown>
  : T

/** A decision that may also answer an Effect. */
export type Decision<T> = T extends (...args: infer A) => infer V
  ? (...args: A) => Awaited<V> | PromiseLike<Awaited<V>> | Effect.Effect<Awaited<V>, unknown, unknown>
  : T extends ReadonlyArray<infer F> ? ReadonlyArray<Decision<F>>
  : T extends object ? { [K in keyof T]: Decision<T[K]> }
  : T

/** Options of the AI SDK with all their callbacks able to answer Effects. */
export type Effectful<Sdk> = {
  [K in keyof Sdk]: K extends NotificationName ? Notification<Sdk[K]>
    : K extends DecisionName ? Decision<Sdk[K]>
    : Sdk[K]
}

/** What a callback option answers: a function, several, or one for each tool. */
type AnswerOf<T> = T extends (...args: never) => infer V ? V
  : T extends ReadonlyArray<infer F> ? AnswerOf<F>
  : T extends object ? { [K in keyof T]-?: AnswerOf<T[K]> }[keyof T]
  : never

type IsAny<T> = 0 extends 1 & T ? true : false

// `Effect.callback` without type arguments takes `unknown` services from what the option asks for; it needs none
type ServicesOf<V> = IsAny<V> extends true ? never
  : V extends Effect.Effect<unknown, unknown, infer R> ? unknown extends R ? never : R
  : never
type ErrorOf<V> = IsAny<V> extends true ? never : V extends Effect.Effect<unknown, infer E, unknown> ? E : never

/** The services that the callbacks of inferred options need. Each run of a callback has a Scope of its own. */
export type CallbackServices<O> = Exclude<
  { [K in keyof O]-?: K extends NotificationName | DecisionName ? ServicesOf<AnswerOf<O[K]>> : never }[keyof O],
  Scope.Scope
>

/** What the decisions of inferred options fail with, and those of the tools among them. */
export type CallbackError<O> =
  | { [K in keyof O]-?: K extends DecisionName ? ErrorOf<AnswerOf<O[K]>> : never }[keyof O]
  | ToolsError<O>

type ToolsError<O> = O extends { readonly tools?: infer T } ? T extends object ? ApprovalError<T[keyof T]> : never
  : never
