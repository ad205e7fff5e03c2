/**
 * The text under which a result stands in the ledger.
 *
 * Stores see this text only and never look into it. It says more than JSON alone can: that the result is `undefined`, or
 * that there is none to give.
 *
 * @since 0.1.0
 */
import { Option, Predicate } from "effect"

/**
 * @category models
 * @since 0.1.0
 */
export type RecordedResult =
  | { readonly _tag: "Value"; readonly value: unknown }
  | { readonly _tag: "Unavailable"; readonly reason: string }

/**
 * The text of a result whose JSON is already made; `undefined` is the result `undefined`.
 *
 * @category encoding
 * @since 0.1.0
 */
export const fromJson = (json: string | undefined): string =>
  json === undefined ? `{"undefined":true}` : `{"value":${json}}`

/**
 * The text of a record that says "applied" and has no result to give.
 *
 * @category encoding
 * @since 0.1.0
 */
export const unavailable = (reason: string): string => JSON.stringify({ unavailable: reason })

/**
 * The result in a text that `fromJson` made.
 *
 * @category encoding
 * @since 0.1.0
 */
export const valueOf = (text: string): unknown => (JSON.parse(text) as { readonly value?: unknown }).value

/**
 * Reads a text of the ledger; `None` where it is not one that this version writes. Each call parses anew, so that no
 * caller can change another's copy.
 *
 * @category encoding
 * @since 0.1.0
 */
export const parse = (text: string): Option.Option<RecordedResult> => Option.flatMap(fromText(text), read)

const fromText = Option.liftThrowable((text: string): unknown => JSON.parse(text))

const read = (parsed: unknown): Option.Option<RecordedResult> => {
  if (!Predicate.isObject(parsed)) return Option.none()
  // one member and no other: what more a newer version may say with another one must not be overlooked
  const [name, ...others] = Object.keys(parsed)
  if (name === undefined || others.length > 0) return Option.none()
  const value = (parsed as { readonly [name: string]: unknown })[name]
  return name === "value"
    ? Option.some({ _tag: "Value", value })
    : name === "undefined" && value === true
    ? Option.some({ _tag: "Value", value: undefined })
    : name === "unavailable" && typeof value === "string"
    ? Option.some({ _tag: "Unavailable", reason: value })
    : Option.none()
}

/**
 * Whether the text says that there is no result to give.
 *
 * @category guards
 * @since 0.1.0
 */
export const isUnavailable = (text: string): boolean => text.startsWith(`{"unavailable":`)
