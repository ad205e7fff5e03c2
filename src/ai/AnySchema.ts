/**
 * The types of everything that is taken as a schema, and what each side of it is.
 *
 * @since 0.1.0
 */
import type { FlexibleSchema } from "@ai-sdk/provider-utils"
import type { Schema } from "effect"
import type { JsonForm } from "../internal/jsonForm.ts"

/**
 * An Effect Schema, or what the AI SDK takes: Zod, `jsonSchema()`, Standard Schema.
 *
 * @category models
 * @since 0.1.0
 */
export type AnySchema = Schema.Constraint | FlexibleSchema<unknown>

/**
 * What hooks see: the decoded side of an Effect Schema, the validated value of another one.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Decoded<S> = S extends Schema.Constraint ? S["Type"] : S extends FlexibleSchema<infer T> ? T : never

/**
 * What the AI SDK holds: the JSON form of an Effect Schema, the validated value of another one.
 *
 * @category utility types
 * @since 0.1.0
 */
export type Held<S> = S extends Schema.Constraint ? JsonForm<S["Encoded"]>
  : S extends FlexibleSchema<infer T> ? T
  : never

/** Whether a schema option was left out: its type parameter is then its default, everything. */
export type Absent<S> = AnySchema extends S ? true : false

/** The services that decoding needs. */
export type DecodingServices<S> = Absent<S> extends true ? never
  : S extends Schema.Constraint ? S["DecodingServices"]
  : never

/** The services that encoding needs. */
export type EncodingServices<S> = Absent<S> extends true ? never
  : S extends Schema.Constraint ? S["EncodingServices"]
  : never
