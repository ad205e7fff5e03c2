/**
 * What a call shall generate instead of a text: the AI SDK's `Output`, with Effect Schemas.
 *
 * @since 0.1.0
 */
import type { FlexibleSchema } from "@ai-sdk/provider-utils"
import * as ai from "ai"
import { Context, Schema } from "effect"
import type { Decoded, Held } from "./ai/AnySchema.ts"
import { decodingSchemaOf, sdkSchemaOf } from "./ai/codecs.ts"
import { decodedElements } from "./ai/decodedElements.ts"

/**
 * What an output is described by: an Effect Schema whose decoding needs no services, or what the AI SDK takes.
 *
 * @category models
 * @since 0.1.0
 */
export type OutputSchema = Schema.ConstraintCodec<unknown, unknown, never, unknown> | FlexibleSchema<unknown>

/** What helps a provider to understand an output, as a name and a description of a schema or a tool. */
interface Described {
  readonly name?: string
  readonly description?: string
}

/**
 * Generates an object.
 *
 * **Details**
 *
 * `output` of the result is the decoded value: a `Date`, say, for `Schema.Date`. What arrives before it, in the partial
 * outputs of a stream, is in JSON form, and is not checked.
 *
 * What the model writes and the schema refuses makes the call fail with an `AiError` whose reason is
 * `"NoObjectGeneratedError"`; its `cause` is the AI SDK's error, with the text that the model wrote.
 *
 * **Gotchas**
 *
 * A model that ends with tool calls has written no output yet: reading `output` of such a result throws. Let the call go on
 * (`stopWhen`), with one step more than the tools need.
 *
 * **Example** (Decoded output)
 *
 * ```ts
 * import { Ai, generateText, Output } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Schema } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "text", text: `{"title":"Launch","at":"2030-01-02T00:00:00.000Z"}` }],
 *     finishReason: { unified: "stop", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 1, text: 1, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 *
 * const Meeting = Schema.Struct({ title: Schema.String, at: Schema.Date })
 *
 * const program = Effect.gen(function*() {
 *   const { output } = yield* generateText({
 *     model,
 *     prompt: "When do we launch?",
 *     output: Output.object({ schema: Meeting })
 *   })
 *   return output.at.getFullYear()
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => 2030
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const object = <S extends OutputSchema>(
  options: { readonly schema: S } & Described
): ai.OutputInterface<Decoded<S>, ai.DeepPartial<Held<S>>, never> =>
  ai.Output.object({ ...options, schema: decoding(options.schema) }) as never

/**
 * Generates a list. `output` holds the decoded elements, and so does a stream of elements; partial outputs hold the
 * elements that are complete, in JSON form.
 *
 * **Example** (A list of decoded elements)
 *
 * ```ts
 * import { Ai, generateText, Output } from "chamvi-effect"
 * import { MockLanguageModelV4 } from "ai/test"
 * import { Effect, Schema } from "effect"
 *
 * const model = new MockLanguageModelV4({
 *   doGenerate: async () => ({
 *     content: [{ type: "text", text: `{"elements":["2030-01-02T00:00:00.000Z","2031-01-02T00:00:00.000Z"]}` }],
 *     finishReason: { unified: "stop", raw: undefined },
 *     usage: {
 *       inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
 *       outputTokens: { total: 1, text: 1, reasoning: undefined }
 *     },
 *     warnings: []
 *   })
 * })
 *
 * const program = Effect.map(
 *   generateText({ model, prompt: "Which days?", output: Output.array({ element: Schema.Date }) }),
 *   ({ output }) => output.map((day) => day.getFullYear())
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Ai.layer)) // => [2030, 2031]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const array = <S extends OutputSchema>(
  options: { readonly element: S; readonly minItems?: number; readonly maxItems?: number } & Described
): ai.OutputInterface<Array<Decoded<S>>, Array<Held<S>>, Decoded<S>> => {
  const { element } = options
  if (!Schema.isSchema(element)) {
    return ai.Output.array({ ...options, element: element as FlexibleSchema<unknown> }) as never
  }
  const decoder = decodingSchemaOf<Decoded<S>>(element, Context.empty())
  const held = ai.Output.array({ ...options, element: sdkSchemaOf<Held<S>>(element, Context.empty()) })
  const { parseCompleteOutput } = ai.Output.array({ ...options, element: decoder })
  // changed in place, and not copied: the AI SDK reads the elements of this very object as they come, and those of another
  // one all over again with each piece of text
  return Object.assign(held, {
    parseCompleteOutput,
    createElementStreamTransform: decodedElements(held.createElementStreamTransform, decoder)
  }) as never
}

/**
 * Generates one of some texts: a classification.
 *
 * **Example** (A choice)
 *
 * ```ts no-run
 * import { generateText, Output } from "chamvi-effect"
 *
 * // Effect<"bug" | "idea", AiError, Ai>
 * const program = generateText({
 *   model: "openai/gpt-5",
 *   prompt: "The button does nothing. What is this?",
 *   output: Output.choice({ options: ["bug", "idea"] })
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const choice = <const CHOICE extends string>(
  options: { readonly options: ReadonlyArray<CHOICE> } & Described
): ai.OutputInterface<CHOICE, CHOICE, never> => ai.Output.choice({ ...options, options: [...options.options] })

/**
 * Generates any JSON.
 *
 * @category constructors
 * @since 0.1.0
 */
export const json = (options: Described = {}): ai.OutputInterface<ai.JSONValue, ai.JSONValue, never> =>
  ai.Output.json(options)

/**
 * Generates a text, as a call without `output` does.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (): ai.OutputInterface<string, string, never> => ai.Output.text()

const decoding = (schema: OutputSchema): FlexibleSchema<unknown> =>
  Schema.isSchema(schema) ? decodingSchemaOf(schema, Context.empty()) : schema as FlexibleSchema<unknown>
