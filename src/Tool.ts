/**
 * Tools whose `execute` is an Effect.
 *
 * @since 0.1.0
 */
import { type Context, Effect } from "effect"
import type { AnySchema, Decoded, Held } from "./ai/AnySchema.ts"
import { capture, rebindable } from "./ai/callContext.ts"
import { executor } from "./ai/execute.ts"
import { type AnyToolOptions, sdkTool, toolCodecs } from "./ai/sdkTool.ts"
import { streamingExecutor } from "./ai/streamTool.ts"
import type {
  CallOptions,
  CommonOptions,
  ContextOf,
  ExecuteAnswer,
  FailsWith,
  HeldContext,
  HeldResult,
  HookServices,
  JsonOrSchema,
  ResultOf,
  Tool
} from "./ai/toolTypes.ts"

export { ToolResultError } from "./ai/execute.ts"
export type { ApprovalFailure, Tool } from "./ai/toolTypes.ts"

/**
 * The options of `tool`: those of the AI SDK's function tools, with Effects where it has Promises.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolOptions<
  S extends AnySchema,
  O,
  E,
  R,
  OS extends AnySchema,
  CS extends AnySchema,
  SR,
  DR,
  VR,
  MR,
  ST extends boolean = false,
  NE = never,
  NR = never
> extends CommonOptions<S, O, OS, CS, ContextOf<CS>, SR, DR, VR, MR, NE, NR> {
  /**
   * Whether `execute` answers a Stream: the values are preliminary results, and the last one is the result (`undefined`
   * where there is none). Default: `false`.
   */
  readonly streaming?: ST
  /**
   * Does the work. It sees decoded input, may use services, may fail with anything, and is interrupted when the call is
   * aborted. Each call has a Scope of its own.
   *
   * With `streaming: true` it answers a Stream (an Effect of one through `Stream.unwrap`).
   */
  readonly execute: (input: Decoded<S>, options: CallOptions<ContextOf<CS>>) => ExecuteAnswer<ST, O, E, R>
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
 * With `streaming: true` the tool's own `execute` answers an async iterable. It starts at its first `next`, and the Stream
 * is pulled as fast as its values are read, and no faster. An abort, and a reader that leaves, interrupt the Stream and wait
 * for its finalizers. A value that does not encode is a `ToolResultError`.
 *
 * **Gotchas**
 *
 * `toModelOutput` stands after `execute` in the options. An inline `execute: Effect.fn(...)` beside a `toModelOutput` that
 * reads `output` needs an `outputSchema`, or an arrow with `Effect.gen`: TypeScript does not infer through both.
 *
 * The iterable of a tool that streams belongs to the reader that the AI SDK is. `generateText` and `streamText` read it;
 * `WorkflowAgent` does not read iterables.
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
 * **Example** (A tool that streams)
 *
 * ```ts
 * import { tool } from "chamvi-effect"
 * import { Effect, Schema, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const count = yield* tool({
 *     description: "Counts up to a number",
 *     streaming: true,
 *     inputSchema: Schema.Struct({ to: Schema.Int }),
 *     execute: ({ to }) => Stream.map(Stream.range(1, to), (n) => ({ n, done: n === to }))
 *   })
 *   const values = Stream.fromAsyncIterable(
 *     count.execute({ to: 2 }, { toolCallId: "1", messages: [], context: {} }),
 *     (error) => error
 *   )
 *   return yield* Stream.runCollect(values)
 * })
 *
 * await Effect.runPromise(program) // => [{ n: 1, done: false }, { n: 2, done: true }]
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
  MR = never,
  ST extends boolean = false,
  NE = never,
  NR = never
>(
  options: ToolOptions<S, O, E, R, OS, CS, SR, DR, VR, MR, ST, NE, NR> & JsonOrSchema<O, OS>
): Effect.Effect<
  Tool<Held<S>, HeldResult<O, OS>, HeldContext<CS>, ST> & FailsWith<NE>,
  never,
  HookServices<R | SR | DR | VR | MR | NR, S, OS, CS>
> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => makeTool(options as never, context) as never)
  )

/** The options that the AI SDK does not know. */
const ours: ReadonlySet<string> = new Set(["streaming"])

const makeTool = (options: AnyToolOptions, context: Context.Context<never>): object => {
  const captured = capture(context)
  const codecs = toolCodecs(options, captured)
  const execute = options["streaming"] === true
    ? rebindable((caller) => streamingExecutor(options, captured, codecs, caller))
    : rebindable((caller) => executor(options, captured, codecs, caller))
  return sdkTool(options, captured, codecs, ours, execute)
}
