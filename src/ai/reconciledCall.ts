/**
 * One call of an effect tool, from the JSON that the AI SDK passes in to the JSON that it gets back.
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Cause, Duration, Effect, Result } from "effect"
import { checkKey, defaultKey, fingerprint } from "../EffectKey.ts"
import { noFlags } from "../EffectEvent.ts"
import { EffectSettings, override, type SettingsOptions } from "../EffectSettings.ts"
import { EffectKeyError, EffectRecordError, ToolNotAllowedError } from "../errors.ts"
import { chain } from "../internal/chain.ts"
import { hookAnswer, type Stoppable } from "../internal/promiseBridge.ts"
import type { Call, Report } from "../reconciliation/Call.ts"
import { reconcile, reporting } from "../reconciliation/reconcile.ts"
import { jsonCodec, readJson } from "../reconciliation/resultCodec.ts"
import type { IEffectStore } from "../store/IEffectStore.ts"
import type { ToolContext } from "../ToolContext.ts"
import type { EffectToolDefinition } from "./effectToolDefinition.ts"
import { hookContext } from "./hookContext.ts"
import { Preview } from "./streamEffectTool.ts"
import type { ToolOutput } from "./streamToolOutput.ts"

/**
 * Who may run a tool: anything but `true` refuses the call, and so does a failure.
 *
 * @category models
 * @since 0.1.0
 */
export type Allow<R = never> = (
  toolName: string
) => boolean | PromiseLike<boolean> | Effect.Effect<boolean, unknown, R>

/** An effect tool under its name in a run. */
export interface BoundTool {
  readonly name: string
  readonly definition: EffectToolDefinition
  readonly ctx: ToolContext["Service"]
  readonly store: IEffectStore
  readonly allow: Allow | undefined
}

/** The settings of a tool, to put over those in force. */
const settingsOf = (
  { lease, onInputChange, waitFor, whenInDoubt }: EffectToolDefinition
): SettingsOptions | undefined =>
  lease === undefined && onInputChange === undefined && waitFor === undefined && whenInDoubt === undefined
    ? undefined
    : { lease, onInputChange, waitFor, whenInDoubt }

/**
 * The reconciled `execute` of a tool. The Effect that it answers runs with the services of the tool and the References of
 * the caller. With `output`, all values go there, the result too.
 */
export const reconciledCall = (tool: BoundTool) => {
  const { allow, ctx, definition, name, store } = tool
  const { alreadyApplied, codecs, effectKey, execute } = definition
  const settings = settingsOf(definition)
  const settle = definition.settle === undefined ? undefined : Duration.toMillis(definition.settle)
  const { encode: toJson, decode } = codecs.output
  const encode: Call["encode"] = codecs.output.lifted
    ? (result) =>
      Effect.flatMap(Effect.mapError(toJson(result), (error) => error.message), (json) => jsonCodec.encode(json))
    : jsonCodec.encode

  // Without a contextSchema there is nothing of the call's in it.
  const shared = hookContext(ctx, undefined)
  const contextOf = codecs.context.sdkSchema === undefined
    ? () => Effect.succeed(shared)
    : (own: unknown) => Effect.map(codecs.context.decode(own), (own) => hookContext(ctx, own))
  const keyOf = (input: unknown, seen: Seen, print: Result.Result<string, EffectKeyError>) =>
    !name.isWellFormed()
      ? Effect.fail(new EffectKeyError({ tool: name, path: "tool", problem: "the tool's name holds a lone surrogate" }))
      : effectKey === undefined
      ? Result.isSuccess(print)
        ? Effect.succeed(defaultKey(ctx.run.runId, name, print.success))
        : Effect.fail(print.failure)
      : Effect.flatMap(
        hookAnswer("effectKey", () => effectKey(input, seen.context, seen)),
        (key) => checkKey(name, key)
      )

  const settled = (
    report: Report,
    input: unknown,
    seen: Seen,
    key: string,
    print: string,
    preview: Preview | undefined
  ) =>
    Effect.withFiber((fiber) => {
      report.key = key
      const current = fiber.getRef(EffectSettings.Current)
      return Effect.interruptible(reconcile({
        store,
        key,
        tool: name,
        runId: ctx.run.runId,
        fingerprint: print,
        alreadyApplied: alreadyApplied
          && (() => hookAnswer("alreadyApplied", () => alreadyApplied(key, input, seen.context))),
        execute: (application) =>
          hookAnswer("execute", () => execute(input, withSignal(seen, key, application)), application, preview?.show),
        encode,
        settle,
        transactional: definition.transactional,
        settings: settings === undefined ? current : override(current, settings)
      }, report))
    })

  const answer = (key: string, text: string): Effect.Effect<unknown, unknown> => {
    const json = readJson(key, name, text)
    return codecs.output.lifted ? Effect.tap(json, (json) => checkDecodes(key, json)) : json
  }
  const checkDecodes = (key: string, json: unknown) =>
    Effect.mapError(
      decode(json),
      (cause) =>
        new EffectRecordError({ key, tool: name, problem: `its result does not decode: ${cause.message}`, cause })
    )

  /** The decoded input, and the fingerprint of its canonical JSON, after defaults. */
  const read = (raw: unknown) =>
    chain(
      codecs.input.decode(raw),
      (input) => chain(codecs.input.encode(input), (json) => Effect.succeed({ input, print: fingerprint(name, json) }))
    )

  const run = (
    report: Report,
    raw: unknown,
    options: ToolExecutionOptions<unknown>,
    output: ToolOutput | undefined
  ): Effect.Effect<unknown, unknown> =>
    chain(read(raw), ({ input, print }) =>
      chain(contextOf(options.context), (context) => {
        const seen: Seen = { ...options, context }
        return chain(keyOf(input, seen, print), (key) => {
          // an input without canonical JSON has no fingerprint; with a key of its own it can still be told apart
          const preview = output && new Preview(output, name, encode)
          const reconciled = settled(report, input, seen, key, Result.getOrElse(print, () => ""), preview)
          return Effect.flatMap(
            reconciled,
            ({ text }) => preview === undefined ? answer(key, text) : preview.end(text, answer(key, text))
          )
        })
      }))

  return (
    raw: unknown,
    options: ToolExecutionOptions<unknown>,
    output?: ToolOutput
  ): Effect.Effect<unknown, unknown> =>
    Effect.suspend(() => {
      const report: Report = { key: "", tool: name, runId: ctx.run.runId, outcome: undefined, flags: noFlags }
      const call = run(report, raw, options, output)
      return reporting(report, allow === undefined ? call : Effect.andThen(checkAllowed(name, allow), call))
    })
}

/** What hooks see of a call. */
type Seen = Omit<ToolExecutionOptions<unknown>, "context"> & { readonly context: object }

const checkAllowed = (tool: string, allow: Allow): Effect.Effect<void, ToolNotAllowedError> =>
  Effect.matchCauseEffect(hookAnswer("allow", () => allow(tool)), {
    onSuccess: (answer) => answer === true ? Effect.void : Effect.fail(new ToolNotAllowedError({ tool })),
    onFailure: (cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.fail(new ToolNotAllowedError({ tool, cause: Cause.squash(cause) }))
  })

// The signal of the application: one caller's abort must not stop what others wait for. A getter, since an
// AbortController costs more than most calls need.
const withSignal = (seen: Seen, effectKey: string, application: Stoppable): object => ({
  ...seen,
  effectKey,
  get abortSignal() {
    return application.signal
  }
})
