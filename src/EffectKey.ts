/**
 * Effect keys: what makes two calls the same effect.
 *
 * @since 0.1.0
 */
import { Effect, Result } from "effect"
import { EffectKeyError } from "./errors.ts"
import { canonicalJson } from "./internal/jsonCopy.ts"
import { sha256 } from "./internal/sha256.ts"

/** Longer keys are refused, in UTF-8 bytes. */
const mostBytes = 65_536

/**
 * Percent-encodes what could move the border between the parts of a key: two (run, tool) pairs never share a prefix. A
 * lone surrogate, which is no character and which stores would replace, becomes `%u` and its number.
 */
const encodePart = (part: string): string =>
  /[%:\p{Cc}\p{Cs}]/u.test(part)
    ? part.replace(/[%:\p{Cc}\p{Cs}]/gu, (character) =>
      character.isWellFormed()
        ? encodeURIComponent(character)
        : `%u${character.charCodeAt(0).toString(16).toUpperCase()}`)
    : part

/**
 * The SHA-256 of a value's canonical JSON, in lower-case hex.
 *
 * **Details**
 *
 * Canonical JSON sorts object keys by UTF-16 code unit, drops `undefined` members, honours `toJSON` and is otherwise what
 * `JSON.stringify` writes. What that would write wrongly fails with `EffectKeyError`, which names the path: BigInt,
 * cycles, NaN and infinities, Map, Set, typed arrays, RegExp, Error, Promise, functions, symbols, lone surrogates, more
 * than 1,000 levels, 2,000,000 members and items, or 134,217,728 characters.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fingerprint = (tool: string, input: unknown): Result.Result<string, EffectKeyError> =>
  Result.mapBoth(canonicalJson(input), {
    onSuccess: (json) => sha256(json ?? "undefined"),
    onFailure: ({ path, problem }) =>
      new EffectKeyError({ tool, path, problem: `the input has no canonical JSON: ${problem}` })
  })

/**
 * The default key of a call: `<runId>:<tool>:<fingerprint of the input>`.
 *
 * **Details**
 *
 * `%`, `:` and control characters inside the run id and the tool's name are percent-encoded.
 *
 * **Example** (One key for one input)
 *
 * ```ts
 * import { defaultKey, fingerprint } from "chamvi-effect"
 * import { Result } from "effect"
 *
 * const of = (input: unknown) => defaultKey("run:1", "comment", Result.getOrThrow(fingerprint("comment", input)))
 *
 * of({ a: 1, b: 2 }) === of({ b: 2, a: 1 }) // => true
 * of({ a: 1 }).slice(0, 18) // => "run%3A1:comment:01"
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const defaultKey = (runId: string, tool: string, fingerprint: string): string =>
  `${encodePart(runId)}:${encodePart(tool)}:${fingerprint}`

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "an array" : value === undefined
    ? "undefined"
    : typeof value === "object"
    ? "an object"
    : `a ${typeof value}`

/** Blank is what nobody can see, white space or not. */
const isBlank = (key: string): boolean => !/[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u.test(key)

/**
 * Checks what an `effectKey` hook returned, or what else is given as a key: the key, verbatim, or `EffectKeyError`, which
 * names `source`. A tool's name with a lone surrogate is refused, too.
 *
 * @category validation
 * @since 0.1.0
 */
export const checkKey = (
  tool: string,
  key: unknown,
  source: "effectKey" | "key" = "effectKey"
): Effect.Effect<string, EffectKeyError> => {
  // two of them would be one name in a store, and get each other's results
  if (!tool.isWellFormed()) {
    return Effect.fail(
      new EffectKeyError({
        tool: tool.toWellFormed(),
        path: "tool",
        problem: "the tool's name has a lone surrogate in it, which no store can keep"
      })
    )
  }
  const problem = typeof key !== "string"
    ? `${kindOf(key)} instead of a string`
    : isBlank(key)
    ? "a blank string"
    : !key.isWellFormed()
    ? "a string with a lone surrogate, which no store can keep"
    : key.length > mostBytes / 4 && Buffer.byteLength(key) > mostBytes
    ? `more than ${mostBytes} bytes`
    : undefined
  return problem === undefined
    ? Effect.succeed(key as string)
    : Effect.fail(
      new EffectKeyError({
        tool,
        path: source,
        problem: `${source === "key" ? "the key is" : "effectKey returned"} ${problem}`
      })
    )
}

/**
 * The effect key fit for an HTTP `Idempotency-Key` header.
 *
 * **Details**
 *
 * Printable ASCII of at most 255 characters, the same for the same key always. A key that is all that already, without
 * quotes, commas, spaces or backslashes, is its own idempotency key; any other becomes `sha256-` and its SHA-256 in hex.
 * No two keys share one: a key that itself begins with `sha256-` is hashed too.
 *
 * **Example** (A header for a payment API)
 *
 * ```ts
 * import { idempotencyKey } from "chamvi-effect"
 *
 * idempotencyKey("run-1:charge:42") // => "run-1:charge:42"
 * idempotencyKey("Rechnung für März").length // => 71
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const idempotencyKey = (key: string): string =>
  key.length <= 255 && /^[!#-+\--[\]-~]+$/.test(key) && !key.startsWith("sha256-") ? key : `sha256-${sha256(key)}`
