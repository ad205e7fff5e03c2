/**
 * From a hook's result to the ledger's text and back.
 */
import { Effect, Option, Result, Schema } from "effect"
import { EffectRecordError, EffectResultUnavailableError } from "../errors.ts"
import { jsonText } from "../internal/jsonCopy.ts"
import * as RecordedResult from "../RecordedResult.ts"

/**
 * How results are written and read. `encode` fails with what is wrong, in words; `decode` takes the JSON form.
 */
export interface ResultCodec {
  readonly encode: (result: unknown) => Effect.Effect<string | undefined, string>
  readonly decode: (json: unknown) => Effect.Effect<unknown, Schema.SchemaError>
}

const toText = (value: unknown): Effect.Effect<string | undefined, string> => {
  const text = jsonText(value)
  return Result.isSuccess(text)
    ? Effect.succeed(text.success)
    : Effect.fail(`${text.failure.problem}, at ${text.failure.path}`)
}

/** Results that are JSON already. */
export const jsonCodec: ResultCodec = { encode: toText, decode: Effect.succeed }

// compiling a schema costs more than many calls
const codecs = new WeakMap<Schema.Constraint, ResultCodec>()

/** Results that an Effect Schema carries, in its JSON form. */
export const schemaCodec = (schema: Schema.Constraint): ResultCodec => {
  const known = codecs.get(schema)
  if (known !== undefined) return known
  const json = Schema.toCodecJson(schema) as unknown as Schema.Codec<unknown, unknown>
  const encode = Schema.encodeUnknownEffect(json)
  const codec: ResultCodec = {
    encode: (result) => Effect.flatMap(Effect.mapError(encode(result), (error) => error.message), toText),
    decode: Schema.decodeUnknownEffect(json)
  }
  codecs.set(schema, codec)
  return codec
}

/**
 * The text to record for a result's JSON form. Of more than `largest` bytes only that it was there is recorded.
 */
export const toRecord = (json: string | undefined, largest: number): string => {
  const text = RecordedResult.fromJson(json)
  return Buffer.byteLength(text) > largest
    ? RecordedResult.unavailable(`it is larger than ${largest} bytes`)
    : text
}

/**
 * The JSON form of a recorded result; each call gives a copy of its own.
 */
export const readJson = (
  key: string,
  tool: string,
  text: string
): Effect.Effect<unknown, EffectRecordError | EffectResultUnavailableError> =>
  Option.match(RecordedResult.parse(text), {
    onNone: () =>
      Effect.fail(
        new EffectRecordError({
          key,
          tool,
          problem: "its result is not a text that this version of the library writes"
        })
      ),
    onSome: (result) =>
      result._tag === "Value"
        ? Effect.succeed(result.value)
        : Effect.fail(new EffectResultUnavailableError({ key, tool, reason: result.reason }))
  })

/**
 * A recorded result, decoded.
 */
export const read = (
  key: string,
  tool: string,
  text: string,
  codec: ResultCodec
): Effect.Effect<unknown, EffectRecordError | EffectResultUnavailableError> =>
  Effect.flatMap(
    readJson(key, tool, text),
    (json) =>
      Effect.mapError(
        codec.decode(json),
        (cause) => new EffectRecordError({ key, tool, problem: `its result does not decode: ${cause.message}`, cause })
      )
  )
