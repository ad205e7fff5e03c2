/**
 * Effect Schemas for the AI SDK.
 *
 * @since 0.1.0
 */
import type { jsonSchema } from "@ai-sdk/provider-utils"
import { Context, type Schema } from "effect"
import { sdkSchemaOf } from "./ai/codecs.ts"
import type { JsonForm } from "./internal/jsonForm.ts"

/**
 * A schema of the AI SDK whose values are `T`.
 *
 * @category models
 * @since 0.1.0
 */
export type AiSchema<T> = ReturnType<typeof jsonSchema<T>>

/**
 * An Effect Schema as a schema of the AI SDK, for every place that takes one: a tool of plain `ai`, `Output.object`, a
 * custom loop. `tool`, `defineEffectTool` and their likes take the Effect Schema itself.
 *
 * **Details**
 *
 * The AI SDK holds JSON, so the schema's values are the JSON form (a `Date` is a string): they are checked by decoding
 * them, and handed on as they came. `Schema.decodeUnknownEffect(Schema.toCodecJson(schema))` decodes them.
 *
 * The JSON Schema that providers get is draft 07 with an object at its root. Definitions are inlined, except recursive
 * ones. A union of objects at the root becomes one object that accepts every member, since providers take no `anyOf` there;
 * decoding still tells the members apart. Descriptions are kept, also on keys, classes and transformed schemas.
 *
 * **Gotchas**
 *
 * Decoding must not need services here. In `tool` it may.
 *
 * **Example** (What a provider gets)
 *
 * ```ts
 * import { effectSchema } from "chamvi-effect"
 * import { Schema } from "effect"
 *
 * const schema = effectSchema(Schema.Struct({ city: Schema.String.annotate({ description: "City name" }) }))
 *
 * const described = await schema.jsonSchema
 * described.properties // => { city: { type: "string", description: "City name" } }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const effectSchema = <S extends Schema.ConstraintCodec<unknown, unknown, never, unknown>>(
  schema: S
): AiSchema<JsonForm<S["Encoded"]>> => sdkSchemaOf(schema, Context.empty())
