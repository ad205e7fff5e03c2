/**
 * Applying an effect at most once per key, without the AI SDK.
 *
 * @since 0.1.0
 */
import { Context, Duration, Effect, Result, type Schema, type Scope } from "effect"
import type { IsJson } from "./internal/jsonForm.ts"
import { checkKey, fingerprint } from "./EffectKey.ts"
import type { EffectResolution } from "./EffectResolution.ts"
import { checkOptions, EffectSettings, override, type SettingsOptions } from "./EffectSettings.ts"
import { noFlags } from "./EffectEvent.ts"
import { EffectStore } from "./EffectStore.ts"
import type { EffectToolError } from "./errors.ts"
import { hookAnswer } from "./internal/promiseBridge.ts"
import type { Call, Report } from "./reconciliation/Call.ts"
import { reconcile, reporting } from "./reconciliation/reconcile.ts"
import { jsonCodec, read, schemaCodec } from "./reconciliation/resultCodec.ts"
import { ToolContext } from "./ToolContext.ts"

/**
 * What `applyOnce` takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface ApplyOnceOptions<A, E, R, AE, AR> extends SettingsOptions {
  /** What makes two calls the same effect; not blank. */
  readonly key: string
  /** Whose key it is; a key belongs to the tool that first held it. Default: `"applyOnce"`. */
  readonly tool?: string | undefined
  /** The run, for the ledger. Default: that of the `ToolContext`, if there is one, else `""`. */
  readonly runId?: string | undefined
  /** What the effect is made from, to notice when one key is used for two inputs. Not stored. */
  readonly input?: unknown
  /**
   * Asks the remote whether the effect is there already. A result, or `EffectResolution.applied()`, is recorded and
   * returned; `undefined`, or `EffectResolution.notApplied`, lets `execute` run.
   */
  readonly alreadyApplied?:
    | ((key: string) =>
      | NoInfer<A>
      | undefined
      | EffectResolution<NoInfer<A>>
      | Effect.Effect<
        NoInfer<A> | undefined | EffectResolution<NoInfer<A>>,
        AE,
        AR
      >)
    | undefined
  /** For how long a "no" of the remote about an earlier attempt is asked again before it is believed. Default: not at all. */
  readonly settle?: Duration.Input | undefined
  /**
   * Whether `execute` and its record commit in one transaction of the ledger's database; for effects that are writes to
   * that database, through the `SqlClient` that the `SqlEffectStore` was made with. Default: `false`. See `defineEffectTool`.
   */
  readonly transactional?: boolean | undefined
  /** Applies the effect. */
  readonly execute: (key: string) => Effect.Effect<A, E, R>
}

/**
 * The schema through which a result is recorded and read; needed where JSON cannot carry the result.
 *
 * @category models
 * @since 0.1.0
 */
export type ApplyOnceSchema<A> = [A] extends [never]
  // before the result is inferred: what is asked for here would end the inference
  ? { readonly schema?: Schema.Constraint | undefined }
  : [IsJson<A>] extends [true] ? { readonly schema?: Schema.Codec<A, unknown> | undefined }
  : { readonly schema: Schema.Codec<A, unknown> }

/**
 * Applies an effect at most once for its key: the recorded result, else what `alreadyApplied` finds, else `execute`, whose
 * result is recorded.
 *
 * **Details**
 *
 * The promise: at most one application per key, as long as no live holder outlives its lease, and either `alreadyApplied`
 * answers truly, or `whenInDoubt` is `"fail"` and `execute` fails plainly only where nothing was applied.
 *
 * - Calls of one process with the same key and store share one application: its result, or its identical failure.
 * - `execute` fails: nothing is recorded, and a later call may execute. It fails with `EffectOutcomeUnknownError`, dies or
 *   is interrupted: the key is in doubt, and the next call asks `alreadyApplied`, or follows `whenInDoubt`.
 * - Interrupting the last caller interrupts `execute` where it is interruptible, and waits for its finalizers. A result
 *   that exists is recorded even then.
 *
 * **Gotchas**
 *
 * Let an interrupt of `execute` reach its request (`Effect.tryPromise((signal) => ...)`), or mark the request
 * `Effect.uninterruptible`: one that is left behind may land after a remote check has truly said "no".
 *
 * The first result is what later calls return, for another `input` too, unless `onInputChange` is `"fail"`.
 *
 * **Example** (A charge that a retry does not repeat)
 *
 * ```ts
 * import { applyOnce, EffectStore } from "chamvi-effect"
 * import { Effect } from "effect"
 *
 * let charges = 0
 * const charge = applyOnce({
 *   key: "order-42:charge",
 *   tool: "charge",
 *   execute: () => Effect.sync(() => ({ receipt: `receipt-${++charges}` }))
 * })
 *
 * const program = Effect.all([charge, charge], { concurrency: 2 }).pipe(
 *   Effect.andThen(charge),
 *   Effect.provide(EffectStore.layerMemory)
 * )
 *
 * await Effect.runPromise(program) // => { receipt: "receipt-1" }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const applyOnce = <A = never, E = never, R = never, AE = never, AR = never>(
  options: ApplyOnceOptions<A, E, R, AE, AR> & ApplyOnceSchema<NoInfer<A>>
): Effect.Effect<A, E | AE | EffectToolError, EffectStore | Exclude<R | AR, Scope.Scope>> => {
  const { alreadyApplied, execute, input, key, schema, settle, tool = "applyOnce" } = options
  const codec = schema === undefined ? jsonCodec : schemaCodec(schema)
  return Effect.withFiber((fiber) => {
    checkOptions(`applyOnce for tool "${tool}"`, options)
    const context = fiber.context as Context.Context<never>
    const runId = options.runId ?? Context.getOrUndefined(context, ToolContext)?.run.runId ?? ""
    const report: Report = { key: "", tool, runId, outcome: undefined, flags: noFlags }
    const call = Effect.flatMap(checkKey(tool, key, "key"), () => {
      report.key = key
      const print = input === undefined ? Result.succeed("") : fingerprint(tool, input)
      if (Result.isFailure(print)) return Effect.fail(print.failure)
      const call: Call = {
        store: Context.getUnsafe(context, EffectStore),
        key,
        tool,
        runId,
        fingerprint: print.success,
        alreadyApplied: alreadyApplied && (() => hookAnswer("alreadyApplied", () => alreadyApplied(key))),
        execute: (application) => hookAnswer("execute", () => execute(key), application),
        encode: codec.encode,
        settle: settle === undefined ? undefined : Duration.toMillis(settle),
        transactional: options.transactional === true,
        settings: override(fiber.getRef(EffectSettings.Current), options)
      }
      return Effect.flatMap(reconcile(call, report), ({ text }) => read(key, tool, text, codec))
    })
    return reporting(report, call) as Effect.Effect<A, E | AE | EffectToolError>
  })
}
