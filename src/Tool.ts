/**
 * Tools whose `execute` is an Effect.
 *
 * @since 0.1.0
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { type Context, Data, Effect } from "effect"
import type { AnySchema, Decoded, Held } from "./ai/AnySchema.ts"
import { type Caller, capture, type Captured, contextOf, rebindable } from "./ai/callContext.ts"
import { asHeld } from "./ai/codecs.ts"
import { type AnyToolOptions, sdkFields, type ToolCodecs, toolCodecs } from "./ai/sdkTool.ts"
import { carryable, ToolFailure } from "./ai/ToolFailure.ts"
import type {
  CallOptions,
  CommonOptions,
  ContextOf,
  HeldContext,
  HeldResult,
  HookServices,
  JsonOrSchema,
  ResultOf,
  Tool
} from "./ai/toolTypes.ts"
import { hookAnswer, runCall } from "./internal/promiseBridge.ts"

export type { Tool } from "./ai/toolTypes.ts"

/**
 * The options of `tool`: those of the AI SDK's function tools, with Effects where it has Promises.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolOptions<S extends AnySchema, O, E, R, OS extends AnySchema, CS extends AnySchema, SR, DR, VR, MR>
  extends CommonOptions<S, O, OS, CS, ContextOf<CS>, SR, DR, VR, MR>
{
  /**
   * Does the work. It sees decoded input, may use services, may fail with anything, and is interrupted when the call is
   * aborted. Each call has a Scope of its own.
   */
  readonly execute: (input: Decoded<S>, options: CallOptions<ContextOf<CS>>) => Effect.Effect<O, E, R>
}

/**
 * Makes a tool for the AI SDK whose `execute` is an Effect.
 *
 * **Details**
 *
 * The services that the hooks need are captured where the tool is made; References, the tracer and the parent span come
 * from the fiber of the `generateText` that calls it. An abort interrupts `execute` where it is interruptible, and the call
 * settles when its finalizers are done.
 *
 * A failure, a defect and a thrown exception become a `tool-error` part that carries the identical value, and the model
 * reads what happened: the error's tag, message and own fields, without its cause and without redacted values.
 *
 * The AI SDK holds JSON: with `Schema.Date` in `inputSchema`, `execute` sees a `Date`, and `toolCalls` holds a string. A
 * result that JSON cannot carry asks for an Effect Schema as `outputSchema`.
 *
 * **Gotchas**
 *
 * `toModelOutput` stands after `execute` in the options. An inline `execute: Effect.fn(...)` beside a `toModelOutput` that
 * reads `output` needs an `outputSchema`, or an arrow with `Effect.gen`: TypeScript does not infer through both.
 *
 * A Reference of your own that is set both where the tool is made and where it is called cannot be told from a service:
 * the value from where the tool was made is used.
 *
 * **Example** (A tool that uses a service)
 *
 * ```ts
 * import { tool } from "chamvi-effect"
 * import { Context, Effect, Schema } from "effect"
 *
 * class Weather extends Context.Service<Weather, {
 *   readonly temperature: (city: string) => Effect.Effect<number>
 * }>()("app/Weather") {}
 *
 * const program = Effect.gen(function*() {
 *   const weather = yield* tool({
 *     description: "Get the current temperature for a city",
 *     inputSchema: Schema.Struct({ city: Schema.String }),
 *     execute: ({ city }) => Effect.flatMap(Weather, (service) => service.temperature(city))
 *   })
 *   return yield* Effect.promise(() => weather.execute({ city: "Paris" }, { toolCallId: "1", messages: [], context: {} }))
 * }).pipe(Effect.provideService(Weather, { temperature: (city) => Effect.succeed(city.length + 10) }))
 *
 * await Effect.runPromise(program) // => 15
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const tool = <
  S extends AnySchema,
  O extends ResultOf<OS> = never,
  E = never,
  R = never,
  OS extends AnySchema = AnySchema,
  CS extends AnySchema = AnySchema,
  SR = never,
  DR = never,
  VR = never,
  MR = never
>(
  options: ToolOptions<S, O, E, R, OS, CS, SR, DR, VR, MR> & JsonOrSchema<O, OS>
): Effect.Effect<
  Tool<Held<S>, HeldResult<O, OS>, HeldContext<CS>>,
  never,
  HookServices<R | SR | DR | VR | MR, S, OS, CS>
> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => makeTool(options as never, context) as never)
  )

/**
 * `execute` is done, but its result does not fit its `outputSchema`, or JSON where there is none. The value of a `tool-error`
 * part: the model reads that the work itself was done.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolResultError extends Data.TaggedError("ToolResultError")<{
  readonly problem: string
  readonly cause: unknown
}> {
  override get message(): string {
    return `The tool has done its work, but its result cannot be given: ${this.problem}. Return what the tool's outputSchema `
      + `describes; what JSON cannot carry needs an Effect Schema there.`
  }
}

const none: ReadonlySet<string> = new Set()

const makeTool = (options: AnyToolOptions, context: Context.Context<never>): object => {
  const captured = capture(context)
  const codecs = toolCodecs(options, captured)
  return {
    ...sdkFields(options, captured, codecs, none),
    execute: rebindable((caller) => executor(options, captured, codecs, caller))
  }
}

const executor = (options: AnyToolOptions, captured: Captured, codecs: ToolCodecs, caller: Caller | undefined) => {
  const bound = caller === undefined ? undefined : runCall(contextOf(captured, caller.context))
  const alone = runCall(captured.all)
  const reject = (error: unknown) => Promise.reject(caller === undefined ? carryable(error) : new ToolFailure(error))
  const execute = executeOf(options, codecs)
  return (input: unknown, call: ToolExecutionOptions<unknown>): Promise<unknown> => {
    const run = bound ?? runHere(captured, alone)
    const start = () => run(execute(input, call), call.abortSignal).catch(reject)
    return caller === undefined ? start() : caller.track(start)
  }
}

/** Where nobody has bound the tool, it belongs to the fiber that calls it, if one does. */
const runHere = (captured: Captured, alone: ReturnType<typeof runCall<never>>) => {
  const context = contextOf(captured, undefined)
  return context === captured.all ? alone : runCall(context)
}

/** What a call does, with as few steps as the tool's schemas allow: every tool call of every agent comes along here. */
const executeOf = ({ execute: hook }: AnyToolOptions, { context, input, output }: ToolCodecs) => {
  const answer = (decoded: unknown, call: ToolExecutionOptions<unknown>) =>
    Effect.flatMap(hookAnswer("execute", () => hook?.(decoded as never, call as never)), encode)
  const encode = output.lifted
    ? (value: unknown) => Effect.mapError(output.encode(value), unwritable)
    : checkJson
  if (input.decode === asHeld && context.decode === asHeld) return answer
  return (held: unknown, call: ToolExecutionOptions<unknown>) =>
    Effect.flatMap(
      Effect.interruptible(input.decode(held)),
      context.decode === asHeld
        ? (decoded) => answer(decoded, call)
        : (decoded) =>
          Effect.flatMap(
            Effect.interruptible(context.decode(call.context)),
            (own) => answer(decoded, { ...call, context: own })
          )
    )
}

// The AI SDK writes results with JSON.stringify, and where that throws the whole call rejects: after the work was done.
const checkJson = (value: unknown): Effect.Effect<unknown, ToolResultError> =>
  typeof value !== "object" && typeof value !== "bigint" || value === null
    ? Effect.succeed(value)
    : Effect.try({
      try: () => {
        JSON.stringify(value)
        return value
      },
      catch: unwritable
    })

const unwritable = (cause: unknown): ToolResultError =>
  new ToolResultError({ problem: cause instanceof Error ? cause.message : "it cannot be written as JSON", cause })
