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
 * Reads a text of the ledger; `None` where it is not one that this version writes. Each call parses anew, so that no
 * caller can change another's copy.
 *
 * @category encoding
 * @since 0.1.0
 */
export const parse = (text: string): Option.Option<RecordedResult> =>
  Option.flatMap(Option.liftThrowable(JSON.parse)(text), (parsed: unknown): Option.Option<RecordedResult> => {
    if (!Predicate.isObject(parsed)) return Option.none()
    if (Object.hasOwn(parsed, "value")) {
      return Option.some({ _tag: "Value", value: (parsed as { readonly value: unknown }).value })
    }
    if (Object.hasOwn(parsed, "undefined")) return Option.some({ _tag: "Value", value: undefined })
    if (Object.hasOwn(parsed, "unavailable")) {
      return Option.some({
        _tag: "Unavailable",
        reason: String((parsed as { readonly unavailable: unknown }).unavailable)
      })
    }
    return Option.none()
  })

/**
 * Whether the text says that there is no result to give.
 *
 * @category guards
 * @since 0.1.0
 */
export const isUnavailable = (text: string): boolean => text.startsWith(`{"unavailable":`)
