/**
 * Tools whose side effect applies at most once per effect key.
 *
 * @since 0.1.0
 */
import { asSchema, type FlexibleSchema } from "@ai-sdk/provider-utils"
import { type Context, type Duration, Effect, Predicate, type Scope } from "effect"
import type { AnySchema, Decoded, DecodingServices, EncodingServices, Held } from "./ai/AnySchema.ts"
import { capture } from "./ai/callContext.ts"
import { type EffectToolDefinition, hideDefinition, refuseUnwrapped } from "./ai/effectToolDefinition.ts"
import { type AnyToolOptions, sdkTool, toolCodecs } from "./ai/sdkTool.ts"
import type {
  CallOptions,
  CommonOptions,
  ContextOf,
  EffectToolBrand,
  ExecuteAnswer,
  FailsWith,
  HeldContext,
  HeldResult,
  JsonOrSchema,
  ResultOf,
  Tool
} from "./ai/toolTypes.ts"
import type { EffectResolution } from "./EffectResolution.ts"
import { checkOptions, type OnInputChange, type WhenInDoubt } from "./EffectSettings.ts"
import { ToolContext } from "./ToolContext.ts"

export { isEffectTool } from "./ai/effectToolDefinition.ts"

/**
 * A tool whose calls are reconciled: `generateText` asks for an `EffectStore` and a `ToolContext` when one is among its
 * tools, and plain `ai` runs it through `wrapToolsForRun` only.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectTool<I, O, C = Record<string, unknown>, ST extends boolean = false>
  extends Tool<I, O, C, ST>, EffectToolBrand
{}

/**
 * What the hooks of an effect tool get as `ctx`, and `execute` as `options.context`: the tool's own validated context, with
 * the run above it.
 *
 * @category models
 * @since 0.1.0
 */
export type EffectToolContext<C> = Omit<C, keyof ToolContext["Service"]> & ToolContext["Service"]

type Ctx<CS> = Context_<ContextOf<CS>>
// without a schema nothing is known of the tool's own context, and the index signature would swallow misspelt members
type Context_<C> = string extends keyof C ? ToolContext["Service"] : EffectToolContext<C>

/** What `alreadyApplied` may answer. Until the result's type is known, anything. */
type Answer<O> = [O] extends [never] ? unknown : O | undefined | EffectResolution<O>

/** `run`, `state` and `artifacts` are the run's. */
type Unreserved<CS> = ContextOf<CS> extends infer C ? string extends keyof C ? unknown
  : [Extract<keyof C, "run" | "state" | "artifacts">] extends [never] ? unknown
  : { readonly contextSchema: { readonly "run, state and artifacts are reserved names in a contextSchema": never } }
  : unknown

/**
 * The options of `defineEffectTool`: those of `tool`, the two hooks, and settings.
 *
 * @category models
 * @since 0.1.0
 */
export interface EffectToolOptions<
  S extends AnySchema,
  O,
  E,
  R,
  OS extends AnySchema,
  CS extends AnySchema,
  KR,
  AR,
  SR,
  DR,
  VR,
  MR,
  ST extends boolean = false,
  NE = never,
  NR = never
> extends CommonOptions<S, O, OS, CS, ContextOf<CS>, SR, DR, VR, MR, NE, NR> {
  /**
   * The effect key of a call: what the side effect is about, for example `${ctx.run.runId}:comment:${issue}`. Calls with
   * one key are one effect. Default: the run, the tool and a hash of the whole input.
   */
  readonly effectKey?:
    | ((input: Decoded<S>, ctx: Ctx<CS>, options: CallOptions<Ctx<CS>>) => string | Effect.Effect<string, unknown, KR>)
    | undefined
  /**
   * Asks the remote whether the effect of `key` was applied already: its result, `undefined` for no, or an
   * `EffectResolution`. It is asked before `execute`, whenever nothing is recorded.
   */
  readonly alreadyApplied?:
    | ((key: string, input: Decoded<S>, ctx: Ctx<CS>) =>
      | NoInfer<Answer<O>>
      | PromiseLike<NoInfer<Answer<O>>>
      | Effect.Effect<NoInfer<Answer<O>>, unknown, AR>)
    | undefined
  /**
   * Whether `execute` answers a Stream: the values are preliminary results while the effect is applied, and the last one is
   * recorded as the result (`undefined` where there is none). Default: `false`.
   */
  readonly streaming?: ST
  /**
   * Applies the effect. `options.effectKey` is the key, for an `Idempotency-Key` header or a marker in what it writes.
   *
   * It fails plainly only where nothing was applied, and with `EffectOutcomeUnknownError` where it does not know.
   *
   * With `streaming: true` it answers a Stream (an Effect of one through `Stream.unwrap`).
   */
  readonly execute: (
    input: Decoded<S>,
    options: CallOptions<Ctx<CS>> & { readonly effectKey: string }
  ) => ExecuteAnswer<ST, O, E, R>
  /** What to do with a key in doubt that nothing can check. Default: that of `EffectSettings`. */
  readonly whenInDoubt?: WhenInDoubt | undefined
  /** What to do when the key is called with another input. Default: that of `EffectSettings`. */
  readonly onInputChange?: OnInputChange | undefined
  /** How long a remote may lag behind its own writes: a "no" of `alreadyApplied` is believed after this long. */
  readonly settle?: Duration.Input | undefined
  /** How long a claim is kept without a sign of life of its holder. Default: that of `EffectSettings`. */
  readonly lease?: Duration.Input | undefined
  /** How long to wait for another process that holds the key. Default: that of `EffectSettings`. */
  readonly waitFor?: Duration.Input | undefined
  /**
   * Whether `execute` and its record commit in one transaction of the ledger's database; for effects that are writes to
   * that database. Default: `false`.
   */
  readonly transactional?: boolean | undefined
}

/**
 * Defines a tool whose side effect applies at most once per effect key, over retries, parallel calls, crashes and
 * several processes.
 *
 * **Details**
 *
 * Each call answers the recorded result; else what `alreadyApplied` finds; else it executes and records. The services of
 * the hooks are captured here; `ToolContext` and the Scope of a call are the call's own.
 *
 * With `streaming: true` the wrapped tool's `execute` answers an async iterable, and nothing is asked or invoked before its
 * first `next`. The call that applies the effect gets the values as they come; a call that joins it, and a replay, get the
 * recorded one, and nothing is invoked. The iterable ends when the result is recorded. A Stream that fails midway records
 * nothing: what it has shown was a preview.
 *
 * The Stream never waits for a reader, since it holds a claim and others may wait for its result: a reader that is more
 * than 64 values behind misses the oldest ones, never the last. A reader that leaves is a caller that leaves. An interrupt
 * reaches the Stream where it waits; a last step that is uninterruptible still counts, with its value.
 *
 * With `transactional: true` (an effect that is a write to the ledger's own database) `execute` and its record are one
 * transaction of the `SqlClient` that the `SqlEffectStore` was made with. What `execute` writes through that client commits
 * with the record, or neither is there: a failure, a defect, an interrupt, a crash leave nothing behind, no claim and no
 * doubt, and the next call applies. The lock of the key's row is the claim: another process waits for the end of the
 * transaction. The program's own `withTransaction` inside of `execute` is a savepoint. What `execute` does elsewhere is not
 * rolled back, so that it must not call another effect tool (`EffectNestedError`), and the call must not be made inside of
 * a transaction. Other stores fail the call with `EffectStoreError`.
 *
 * **Gotchas**
 *
 * A transactional `execute` holds a connection, and in SQLite the database's only writer, until it ends: let it do database
 * work only. All callers of a key say `transactional`, or none does: one that does not waits for the row without a word.
 *
 * An interrupt of the last caller interrupts `execute` where it is interruptible. Let it reach the request
 * (`Effect.tryPromise((signal) => ...)`), or mark the request `Effect.uninterruptible`: one that is left behind may land after
 * a remote check has truly said "no".
 *
 * Handed to plain `ai` as it is, the tool fails its calls: wrap the tools with `wrapToolsForRun` first.
 *
 * `alreadyApplied` with literal results: an arrow without parameters that answers a plain literal is read as `string`; give
 * it a parameter, or `as const`.
 *
 * **Example** (A comment that is posted once per run and issue)
 *
 * ```ts
 * import { Ai, defineEffectTool, effectMarker, isEffectTool } from "chamvi-effect"
 * import { Context, Effect, Schema } from "effect"
 *
 * class GitHub extends Context.Service<GitHub, {
 *   readonly postComment: (issue: number, body: string) => Effect.Effect<{ readonly id: number }>
 *   readonly findComment: (issue: number, text: string) => Effect.Effect<{ readonly id: number } | undefined>
 * }>()("app/GitHub") {}
 *
 * const comment = defineEffectTool({
 *   description: "Posts a comment on the issue.",
 *   inputSchema: Schema.Struct({ issue: Schema.Int, body: Schema.String }),
 *   effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
 *   alreadyApplied: (key, { issue }) =>
 *     Effect.flatMap(GitHub, (github) => github.findComment(issue, effectMarker(key))),
 *   execute: ({ issue, body }, { effectKey }) =>
 *     Effect.flatMap(GitHub, (github) => github.postComment(issue, `${body}\n${effectMarker(effectKey)}`))
 * })
 *
 * const github = { postComment: () => Effect.succeed({ id: 1 }), findComment: () => Effect.succeed(undefined) }
 *
 * await Effect.runPromise(Effect.map(Effect.provideService(comment, GitHub, github), isEffectTool)) // => true
 * ```
 *
 * **Example** (A deployment that tells how it goes, and happens once)
 *
 * ```ts
 * import { defineEffectTool, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
 * import { Effect, Schema, Stream } from "effect"
 *
 * let deployments = 0
 * const deploy = defineEffectTool({
 *   description: "Deploys a version.",
 *   streaming: true,
 *   inputSchema: Schema.Struct({ version: Schema.String }),
 *   execute: ({ version }) =>
 *     Stream.concat(
 *       Stream.succeed(`building ${version}`),
 *       Stream.fromEffect(Effect.sync(() => `${version} is deployment ${++deployments}`))
 *     )
 * })
 *
 * const program = Effect.gen(function*() {
 *   const tools = yield* wrapToolsForRun({ deploy: yield* deploy }, yield* ToolContext, yield* EffectStore)
 *   const call = (toolCallId: string) =>
 *     Stream.runCollect(
 *       Stream.fromAsyncIterable(
 *         tools.deploy.execute({ version: "1.4" }, { toolCallId, messages: [], context: {} }),
 *         (error) => error
 *       )
 *     )
 *   return [yield* call("1"), yield* call("2")]
 * }).pipe(Effect.scoped, Effect.provide([EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })]))
 *
 * await Effect.runPromise(program) // => [["building 1.4", "1.4 is deployment 1"], ["1.4 is deployment 1"]]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const defineEffectTool = <
  S extends AnySchema,
  O extends ResultOf<OS> = never,
  E = never,
  R = never,
  OS extends AnySchema = AnySchema,
  CS extends AnySchema = AnySchema,
  KR = never,
  AR = never,
  SR = never,
  DR = never,
  VR = never,
  MR = never,
  ST extends boolean = false,
  NE = never,
  NR = never
>(
  options:
    & EffectToolOptions<S, O, E, R, OS, CS, KR, AR, SR, DR, VR, MR, ST, NE, NR>
    & JsonOrSchema<O, OS>
    & Unreserved<NoInfer<CS>>
): Effect.Effect<
  EffectTool<Held<S>, HeldResult<O, OS>, HeldContext<CS>, ST> & FailsWith<NE>,
  never,
  Exclude<
    | R
    | KR
    | AR
    | SR
    | DR
    | VR
    | MR
    | NR
    | DecodingServices<S>
    | EncodingServices<S>
    | DecodingServices<OS>
    | EncodingServices<OS>
    | DecodingServices<CS>,
    Scope.Scope | ToolContext
  >
> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => makeEffectTool(options as unknown as RawOptions, context) as never)
  )

type RawOptions = AnyToolOptions & Partial<Omit<EffectToolDefinition, "captured" | "codecs">>

/** The options that the AI SDK does not know. */
const ours: ReadonlySet<string> = new Set([
  "execute",
  "streaming",
  "effectKey",
  "alreadyApplied",
  "whenInDoubt",
  "onInputChange",
  "settle",
  "lease",
  "waitFor",
  "transactional"
])

const makeEffectTool = (options: RawOptions, context: Context.Context<never>): object => {
  if (typeof options.execute !== "function") {
    throw new TypeError("defineEffectTool needs an execute: without one there is no effect to apply. Use tool instead.")
  }
  checkOptions("defineEffectTool", options)
  const streaming = options.streaming === true
  const captured = capture(context, ToolContext)
  const codecs = toolCodecs(options, captured)
  checkReserved(codecs.context.sdkSchema)
  return hideDefinition(sdkTool(options, captured, codecs, ours, refuseUnwrapped(streaming)), {
    execute: options.execute as EffectToolDefinition["execute"],
    streaming,
    effectKey: options.effectKey,
    alreadyApplied: options.alreadyApplied,
    whenInDoubt: options.whenInDoubt,
    onInputChange: options.onInputChange,
    settle: options.settle,
    lease: options.lease,
    waitFor: options.waitFor,
    transactional: options.transactional === true,
    captured,
    codecs
  })
}

const reserved = ["run", "state", "artifacts"]

const checkReserved = (schema: FlexibleSchema<unknown> | undefined): void => {
  // a schema that is still being loaded is not waited for: the run's members beat the tool's own anyway
  const described = schema === undefined ? undefined : asSchema(schema).jsonSchema
  if (!Predicate.hasProperty(described, "properties") || !Predicate.isObject(described.properties)) return
  const taken = reserved.filter((name) => Object.hasOwn(described.properties as object, name))
  if (taken.length === 0) return
  throw new TypeError(
    `The contextSchema of an effect tool has the reserved ${taken.length === 1 ? "name" : "names"} ${
      taken.join(", ")
    }: `
      + "run, state and artifacts are the run's own. Rename them in the schema."
  )
}
