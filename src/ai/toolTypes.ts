/**
 * The options that `tool` and `defineEffectTool` share, and the tool that they make.
 *
 * One signature, not overloads, so that a mistake in a hook is reported at the hook. The defaults of the type parameters
 * matter: TypeScript first checks a call without its lambdas, and a check that fails there ends inference. What is not
 * inferred yet is `never` (results) or the widest type (schemas), and both must pass.
 *
 * @since 0.1.0
 */
import type { JSONObject } from "@ai-sdk/provider"
import type {
  Experimental_SandboxSession as SandboxSession,
  FlexibleSchema,
  ProviderOptions,
  ToolExecutionOptions,
  ToolNeedsApprovalFunction,
  ToolResultOutput
} from "@ai-sdk/provider-utils"
import type { Effect, Schema, Scope, Stream } from "effect"
import type { Absent, AnySchema, Decoded, DecodingServices, EncodingServices, Held } from "./AnySchema.ts"
import type { IsJson } from "../internal/jsonForm.ts"

/** What an `outputSchema` allows as a result. */
export type ResultOf<OS> = Absent<OS> extends true ? unknown : Decoded<OS>

/**
 * What the AI SDK holds as the result of a tool. (A tool that never succeeds has no result, and the SDK takes `never` for a
 * tool without `execute`.)
 */
export type HeldResult<O, OS> = Absent<OS> extends true ? [O] extends [never] ? undefined : O : Held<OS>

/** What hooks see of the tool's own context: the decoded side of its `contextSchema`. */
export type ContextOf<CS> = Absent<CS> extends true ? Record<string, unknown> : Decoded<CS>

/** What `toolsContext` takes for the tool: contexts are live values, so this is the encoded side, not JSON. */
export type HeldContext<CS> = Absent<CS> extends true ? Record<string, unknown>
  : CS extends Schema.Constraint ? CS["Encoded"]
  : Decoded<CS>

/** A schema whose values are results of the tool. It gives the result's type where `execute` cannot be looked into. */
export type SchemaFor<O> = { readonly Type: O } | FlexibleSchema<O>

/** Asks for an Effect Schema as `outputSchema` where JSON cannot carry the result: other libraries' have no encoder. */
export type JsonOrSchema<O, OS> = Absent<OS> extends true
  ? IsJson<O> extends true ? unknown : { readonly outputSchema: SchemaFor<NoInfer<O>> }
  : OS extends Schema.Constraint ? unknown
  : IsJson<O> extends true ? unknown
  : { readonly outputSchema: { readonly "only an Effect Schema carries what is not JSON": never } }

/** The services of hooks, without the Scope that each call has of its own. */
export type HookServices<R, S, OS, CS> = Exclude<
  R | DecodingServices<S> | DecodingServices<OS> | EncodingServices<OS> | DecodingServices<CS>,
  Scope.Scope
>

/**
 * No error, once the result is known. Before that anything passes, so that a callback that can fail is reported as such,
 * and does not end inference.
 */
type NoError<O> = NoInfer<[O] extends [never] ? unknown : never>

/** What a callback may answer: nothing, or an Effect that cannot fail. */
export type CallbackAnswer<R, O> = void | PromiseLike<void> | Effect.Effect<unknown, NoError<O>, R>

/**
 * What `execute` answers: a Stream in a tool that says `streaming: true`, an Effect in every other one. A flag that is only
 * known at run time would leave open what the tool answers, and fits nothing.
 */
export type ExecuteAnswer<ST extends boolean, O, E, R> = [ST] extends [true] ? Stream.Stream<O, E, R>
  : [ST] extends [false] ? Effect.Effect<O, E, R>
  : never

/** The AI SDK's call options, with the tool's own context. */
export type CallOptions<C> = ToolExecutionOptions<C>

/**
 * The options that every tool has, beside `execute`.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommonOptions<
  S extends AnySchema,
  O,
  OS extends AnySchema,
  CS extends AnySchema,
  C,
  SR,
  DR,
  VR,
  MR,
  NE = never,
  NR = never
> {
  /** What the tool does, for the model; a function makes it anew for each step, from the tool's context. */
  readonly description?:
    | string
    | ((options: {
      readonly context: HeldContext<CS>
      readonly experimental_sandbox?: SandboxSession
    }) => string)
    | undefined
  /** The input that the model gives: an Effect Schema, Zod, `jsonSchema()` or Standard Schema. */
  readonly inputSchema: S
  /** The result. An Effect Schema encodes it, so that it need not be JSON. */
  readonly outputSchema?: OS & SchemaFor<O> | undefined
  /** The tool's own context, as `toolsContext` of a call gives it. */
  readonly contextSchema?: CS | undefined
  /** The model has begun to write an input. Cannot fail; one that dies is logged. */
  readonly onInputStart?: ((options: CallOptions<C>) => CallbackAnswer<SR, O>) | undefined
  /** The model has written a part of an input (streams only). Cannot fail; one that dies is logged. */
  readonly onInputDelta?:
    | ((options: { readonly inputTextDelta: string } & CallOptions<C>) => CallbackAnswer<DR, O>)
    | undefined
  /** An input is complete. Cannot fail; one that dies is logged. */
  readonly onInputAvailable?:
    | ((options: { readonly input: Decoded<S> } & CallOptions<C>) => CallbackAnswer<VR, O>)
    | undefined
  /** What the model reads instead of the result. Cannot fail; where it dies, the model reads the result. */
  readonly toModelOutput?:
    | ((options: {
      readonly toolCallId: string
      readonly input: Decoded<S>
      readonly output: NoInfer<Absent<OS> extends true ? O : Decoded<OS>>
    }) => ToolResultOutput | PromiseLike<ToolResultOutput> | Effect.Effect<ToolResultOutput, NoError<O>, MR>)
    | undefined
  /**
   * Whether a person has to approve a call; a function may answer an Effect. One that fails ends the call, which then fails
   * with the identical failure. The AI SDK prefers `toolApproval` of the call.
   */
  readonly needsApproval?:
    | boolean
    | ((...args: Parameters<ToolNeedsApprovalFunction<Held<S>, HeldContext<CS>>>) =>
      | boolean
      | PromiseLike<boolean>
      | Effect.Effect<boolean, NE, NR>)
    | undefined
  /** Whether the provider shall make sure that inputs fit the schema. */
  readonly strict?: boolean | undefined
  /** Examples of inputs, for the model. */
  readonly inputExamples?: Array<{ input: NoInfer<Held<S>> }> | undefined
  readonly providerOptions?: ProviderOptions | undefined
  /** Comes back as `toolMetadata` of the tool's calls and results; the model does not see it. */
  readonly metadata?: JSONObject | undefined
  /** The model finds the tool by `toolSearch` only. */
  readonly deferLoading?: boolean | undefined
  readonly title?: string | undefined
}

/**
 * A tool as the AI SDK takes it, with an `execute` that is an Effect inside.
 *
 * **Details**
 *
 * `I` and `O` are JSON forms: what the SDK holds, stores and sends. `execute` is called with them, and answers with them: in
 * a Promise, or, in a tool that streams (`ST` is `true`), one value after the other in an async iterable.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tool<I, O, C = Record<string, unknown>, ST extends boolean = false> {
  type?: undefined
  description?: string | ((options: { context: NoInfer<C>; experimental_sandbox?: SandboxSession }) => string)
  inputSchema: FlexibleSchema<I>
  outputSchema?: FlexibleSchema<O>
  contextSchema?: FlexibleSchema<C>
  execute: (
    input: I,
    options: ToolExecutionOptions<C>
  ) => [ST] extends [true] ? AsyncIterableIterator<O> : PromiseLike<O>
  onInputStart?: (options: ToolExecutionOptions<NoInfer<C>>) => PromiseLike<void>
  onInputDelta?: (options: { inputTextDelta: string } & ToolExecutionOptions<NoInfer<C>>) => PromiseLike<void>
  onInputAvailable?: (options: { input: I } & ToolExecutionOptions<NoInfer<C>>) => PromiseLike<void>
  toModelOutput?: (options: { toolCallId: string; input: I; output: NoInfer<O> }) => PromiseLike<ToolResultOutput>
  needsApproval?: boolean | ToolNeedsApprovalFunction<I, NoInfer<C>>
  strict?: boolean
  inputExamples?: Array<{ input: NoInfer<I> }>
  providerOptions?: ProviderOptions
  metadata?: JSONObject
  deferLoading?: boolean
  title?: string
  id?: never
  isProviderExecuted?: never
  args?: never
  supportsDeferredResults?: never
}

declare const ApprovalErrorTypeId: unique symbol

/**
 * What a tool's `needsApproval` fails with, and so the calls that use the tool. At the level of types only.
 *
 * @category models
 * @since 0.1.0
 */
export interface ApprovalFailure<NE> {
  readonly [ApprovalErrorTypeId]: NE
}

/** That, where it can fail. */
export type FailsWith<NE> = [NE] extends [never] ? unknown : ApprovalFailure<NE>

/** What calls fail with that use tools of the types in a union. */
export type ApprovalError<T> = T extends ApprovalFailure<infer NE> ? NE : never

declare const EffectToolTypeId: unique symbol

/** What tells the type of an effect tool from that of other tools. */
export interface EffectToolBrand {
  readonly [EffectToolTypeId]: true
}
