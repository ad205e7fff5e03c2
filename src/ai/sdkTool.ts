/**
 * The AI SDK's tool object of `tool` and `defineEffectTool`: schemas in their JSON form, options passed on, callbacks run
 * as Effects.
 */
import type { ToolExecutionOptions, ToolResultOutput } from "@ai-sdk/provider-utils"
import { Effect } from "effect"
import { hookAnswer } from "../internal/promiseBridge.ts"
import { copyHidden } from "../internal/toolCopy.ts"
import { decider, heard, mayHoldEffect, untilAborted } from "./callbacks.ts"
import { type Caller, type Captured, rebindable } from "./callContext.ts"
import { contextCodec, type InputCodec, inputCodec, type OutputCodec, outputCodec } from "./codecs.ts"
import { runnerOf } from "./execute.ts"
import type { AnySchema } from "./AnySchema.ts"

type Options = ToolExecutionOptions<unknown>

/** The options of a tool as they arrive at run time. */
export interface AnyToolOptions {
  readonly [name: string]: unknown
  readonly inputSchema: AnySchema
  readonly outputSchema?: AnySchema | undefined
  readonly contextSchema?: AnySchema | undefined
  readonly execute?: (input: never, options: never) => unknown
  readonly onInputStart?: (options: never) => unknown
  readonly onInputDelta?: (options: never) => unknown
  readonly onInputAvailable?: (options: never) => unknown
  readonly toModelOutput?: (options: never) => unknown
  readonly needsApproval?: boolean | ((...args: ReadonlyArray<never>) => unknown)
}

/** The codecs of a tool. */
export interface ToolCodecs {
  readonly input: InputCodec
  readonly output: OutputCodec
  readonly context: ReturnType<typeof contextCodec>
}

export const toolCodecs = (options: AnyToolOptions, captured: Captured): ToolCodecs => ({
  input: inputCodec(options.inputSchema, captured.all),
  output: outputCodec(options.outputSchema, captured.all),
  context: contextCodec(options.contextSchema, captured.all)
})

const callbacks = ["onInputStart", "onInputDelta", "onInputAvailable"] as const

/** The tool, with `execute`. Names in `ours` are not options of the AI SDK and stay out of it. */
export const sdkTool = <F>(
  options: AnyToolOptions,
  captured: Captured,
  codecs: ToolCodecs,
  ours: ReadonlySet<string>,
  execute: F
): { readonly execute: F } => {
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !ours.has(name)) fields[name] = value
  }
  fields["inputSchema"] = codecs.input.sdkSchema
  if (codecs.output.sdkSchema !== undefined) fields["outputSchema"] = codecs.output.sdkSchema
  if (codecs.context.sdkSchema !== undefined) fields["contextSchema"] = codecs.context.sdkSchema
  for (const name of callbacks) {
    const callback = options[name]
    if (callback !== undefined) fields[name] = notifier(name, callback, captured, codecs)
  }
  if (options.toModelOutput !== undefined) {
    fields["toModelOutput"] = modelOutput(options.toModelOutput, captured, codecs)
  }
  if (typeof options.needsApproval === "function") fields["needsApproval"] = approval(options.needsApproval, captured)
  // the AI SDK marks a tool that others are called through in a hidden property
  return copyHidden(options, { ...fields, execute })
}

/**
 * Runs a callback for whom nobody suffers: in the fibers of the caller's `Ai`, or in its own where there is none. A call that
 * was aborted does not wait for it.
 */
const teller = (name: string, captured: Captured, caller: Caller | undefined) => {
  const runner = runnerOf(captured, caller)
  return <A, E>(callback: Effect.Effect<A, E>): Promise<A | undefined> =>
    untilAborted(runner()(heard(`A tool's ${name}`, callback, caller?.ai)), caller?.call?.signal)
}

const notifier = (
  name: string,
  callback: (options: never) => unknown,
  captured: Captured,
  codecs: ToolCodecs
) =>
  rebindable((caller) => {
    const tell = teller(name, captured, caller)
    return (options: Options & { readonly input?: unknown }): Promise<void> => {
      const seen = Effect.all([
        "input" in options ? codecs.input.decode(options.input) : Effect.undefined,
        codecs.context.decode(options.context)
      ])
      const notify = Effect.flatMap(seen, ([input, context]) => {
        const decoded = { ...options, ..."input" in options ? { input } : {}, context }
        return hookAnswer(name, () => callback(decoded as never))
      })
      return tell(Effect.asVoid(notify))
    }
  })

const modelOutput = (callback: (options: never) => unknown, captured: Captured, codecs: ToolCodecs) =>
  rebindable((caller) => {
    const tell = teller("toModelOutput", captured, caller)
    return async (options: { readonly input: unknown; readonly output: unknown }): Promise<ToolResultOutput> => {
      const seen = Effect.all([codecs.input.decode(options.input), codecs.output.decode(options.output)])
      const made = await tell(Effect.flatMap(
        seen,
        ([input, output]) => hookAnswer("toModelOutput", () => callback({ ...options, input, output } as never))
      ))
      return (made ?? defaultOutput(options.output)) as ToolResultOutput
    }
  })

/** A decision of the tool's own: what it fails with ends the call. */
const approval = (decide: (...args: ReadonlyArray<never>) => unknown, captured: Captured) =>
  rebindable((caller) => {
    const runner = runnerOf(captured, caller)
    return (...args: ReadonlyArray<never>): unknown => {
      const answer = decide(...args)
      return mayHoldEffect(answer) ? decider("needsApproval", runner(), caller?.call)(answer) : answer
    }
  })

// as the AI SDK does without a toModelOutput
const defaultOutput = (output: unknown): unknown =>
  typeof output === "string"
    ? { type: "text", value: output }
    : { type: "json", value: JSON.parse(JSON.stringify(output) ?? "null") as unknown }
