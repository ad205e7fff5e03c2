/**
 * Both sides of the schemas of a tool: what the AI SDK holds (JSON), and what hooks see (decoded).
 *
 * Services that decoding or encoding needs are part of a tool's own services; the Effects here are run with them.
 */
import { type FlexibleSchema, jsonSchema, type ValidationResult } from "@ai-sdk/provider-utils"
import { type Context, Effect, Exit, Schema } from "effect"
import { jsonSchemaOf } from "../internal/jsonSchema.ts"
import type { AnySchema } from "./AnySchema.ts"

type AiSchema<T> = ReturnType<typeof jsonSchema<T>>

/** The codec of an Effect Schema between its JSON form and its decoded values, prepared once. */
export interface JsonCodec {
  readonly decode: (json: unknown) => Effect.Effect<unknown, Schema.SchemaError>
  readonly encode: (value: unknown) => Effect.Effect<unknown, Schema.SchemaError>
}

const codecs = new WeakMap<Schema.Constraint, JsonCodec>()

export const jsonCodecOf = (schema: Schema.Constraint): JsonCodec => {
  let codec = codecs.get(schema)
  if (codec === undefined) {
    const json = Schema.toCodecJson(schema) as unknown as Schema.Codec<unknown, unknown>
    // the model reads what is wrong with its input, so it gets everything at once
    codec = {
      decode: Schema.decodeUnknownEffect(json, { errors: "all" }),
      encode: Schema.encodeUnknownEffect(json, { errors: "all" })
    }
    codecs.set(schema, codec)
  }
  return codec
}

/**
 * An Effect Schema as the AI SDK's. It checks a value by decoding it, and hands it on as the JSON that it was: the SDK
 * sends it back to the model, stores it, and compares it with what a person approved.
 */
export const sdkSchemaOf = <T>(schema: Schema.Constraint, context: Context.Context<never>): AiSchema<T> => {
  const { decode } = jsonCodecOf(schema)
  return jsonSchema<T>(() => jsonSchemaOf(schema), { validate: validator(decode, context) })
}

/** The same for values that the SDK hands to nobody but the caller: it decodes them. */
export const decodingSchemaOf = <T>(schema: Schema.Constraint, context: Context.Context<never>): AiSchema<T> => {
  const { decode } = jsonCodecOf(schema)
  return jsonSchema<T>(() => jsonSchemaOf(schema), { validate: validator(decode, context, true) })
}

const validator = <T>(
  decode: (value: unknown) => Effect.Effect<unknown, Schema.SchemaError>,
  context: Context.Context<never>,
  decoded = false
) => {
  const run = Effect.runForkWith(context)
  return (value: unknown): ValidationResult<T> | PromiseLike<ValidationResult<T>> => {
    const fiber = run(decode(value))
    const answer = (exit: Exit.Exit<unknown, Schema.SchemaError>): ValidationResult<T> =>
      Exit.isSuccess(exit)
        ? { success: true, value: (decoded ? exit.value : value) as T }
        : { success: false, error: asError(exit) }
    const exit = fiber.pollUnsafe()
    return exit === undefined
      ? new Promise((resolve) => fiber.addObserver((exit) => resolve(answer(exit))))
      : answer(exit)
  }
}

const asError = (exit: Exit.Failure<unknown, Schema.SchemaError>): Error => {
  const error = Exit.findErrorOption(exit)
  return error._tag === "Some" ? error.value : new Error("The value could not be decoded", { cause: exit.cause })
}

/** A schema for values that the SDK gets from a person or the model, and hooks see decoded. */
export interface InputCodec {
  readonly sdkSchema: FlexibleSchema<unknown>
  /** From what the SDK holds to what hooks see. */
  readonly decode: (held: unknown) => Effect.Effect<unknown, Schema.SchemaError>
  /** From what hooks see back to JSON: the canonical form, with defaults filled in. */
  readonly encode: (decoded: unknown) => Effect.Effect<unknown, Schema.SchemaError>
}

// The SDK has validated and transformed what other libraries' schemas describe; doing it again could change it.
export const asHeld = (value: unknown): Effect.Effect<unknown> => Effect.succeed(value)

export const inputCodec = (schema: AnySchema, context: Context.Context<never>): InputCodec =>
  Schema.isSchema(schema)
    ? { sdkSchema: sdkSchemaOf(schema, context), ...jsonCodecOf(schema) }
    : { sdkSchema: flexible(schema), decode: asHeld, encode: asHeld }

/** A schema for results. `lifted` says that results need not be JSON, because there is an encoder. */
export interface OutputCodec extends JsonCodec {
  readonly sdkSchema: FlexibleSchema<unknown> | undefined
  readonly lifted: boolean
}

export const outputCodec = (schema: AnySchema | undefined, context: Context.Context<never>): OutputCodec =>
  schema !== undefined && Schema.isSchema(schema)
    ? { sdkSchema: sdkSchemaOf(schema, context), lifted: true, ...jsonCodecOf(schema) }
    : {
      sdkSchema: schema === undefined ? undefined : flexible(schema),
      lifted: false,
      decode: asHeld,
      encode: asHeld
    }

/**
 * The schema of a tool's context. A context is a live value, not JSON: an Effect Schema is used between its own encoded
 * and decoded sides.
 */
export const contextCodec = (schema: AnySchema | undefined, context: Context.Context<never>) => {
  if (schema === undefined || !Schema.isSchema(schema)) {
    return { sdkSchema: schema === undefined ? undefined : flexible(schema), decode: asHeld }
  }
  const decode: JsonCodec["decode"] = Schema.decodeUnknownEffect(schema as unknown as Schema.Codec<unknown, unknown>)
  return { sdkSchema: jsonSchema(() => jsonSchemaOf(schema), { validate: validator(decode, context) }), decode }
}

const flexible = (schema: AnySchema): FlexibleSchema<unknown> => schema as FlexibleSchema<unknown>
