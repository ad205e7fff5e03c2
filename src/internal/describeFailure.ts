/**
 * What a language model reads about a failed call: what happened, with the error's own fields, so that it can do better
 * than to try the same again. Causes, stacks and redacted values stay out of it.
 */
import { Predicate, Redacted } from "effect"

/** The most that a description takes, in bytes of UTF-8. */
export const mostDescriptionBytes = 2048

const hidden = "<redacted>"
const deepest = 6

/**
 * One line for any value: `RateLimited: try again later {"retryAfter":30}`. Never throws.
 */
export const describeFailure = (failure: unknown): string => shorten(describe(failure))

const describe = (failure: unknown): string => {
  if (typeof failure === "string") return failure
  if (Redacted.isRedacted(failure)) return `The tool failed with a redacted value.`
  if (failure === undefined || failure === null) return `The tool failed with ${String(failure)}.`
  if (typeof failure === "function" || typeof failure === "symbol") return `The tool failed with a ${typeof failure}.`
  if (typeof failure !== "object") return `The tool failed with ${String(failure as number | bigint | boolean)}.`
  const name = nameOf(failure)
  const message = text(read(failure, "message"))
  const fields = fieldsOf(failure)
  const head = [name, message].filter((part) => part !== undefined && part !== "").join(": ")
  if (Array.isArray(failure)) return `The tool failed with ${fields ?? "a list"}`
  return fields === undefined ? head === "" ? "The tool failed." : head : head === "" ? fields : `${head} ${fields}`
}

// getters of a stranger's object may throw
const read = (value: object, key: PropertyKey): unknown => {
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

const nameOf = (failure: object): string | undefined => {
  const tag = text(read(failure, "_tag"))
  if (tag !== undefined) return tag
  const name = failure instanceof Error ? text(read(failure, "name")) : undefined
  return name
}

const left = new Set(["_tag", "name", "message", "cause", "stack"])

const fieldsOf = (failure: object): string | undefined => {
  const shown = Array.isArray(failure) ? plain(failure, [], deepest) : ownFields(failure, [], deepest)
  if (!Predicate.isObject(shown) && !Array.isArray(shown)) return undefined
  return Object.keys(shown).length === 0 ? undefined : JSON.stringify(shown)
}

const ownFields = (value: object, path: ReadonlyArray<object>, depth: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.keys(value)
      .filter((key) => !left.has(key))
      .map((key) => [key, plain(read(value, key), [...path, value], depth - 1)] as const)
      .filter(([, shown]) => shown !== undefined)
  )

/** A copy that `JSON.stringify` can write, whatever the value is. */
const plain = (value: unknown, path: ReadonlyArray<object>, depth: number): unknown => {
  if (typeof value === "bigint") return String(value)
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value)
  if (typeof value === "function" || typeof value === "symbol") return undefined
  if (typeof value !== "object" || value === null) return value
  if (Redacted.isRedacted(value)) return hidden
  if (path.includes(value)) return "[circular]"
  if (depth <= 0) return "[deep]"
  if (value instanceof Error) return describe(value)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString()
  const inside = [...path, value]
  if (value instanceof Map) return Array.from(value, (entry) => plain(entry, inside, depth - 1))
  if (Array.isArray(value) || value instanceof Set) return Array.from(value, (item) => plain(item, inside, depth - 1))
  const { cause: _, stack: __, ...rest } = Object.fromEntries(
    Object.keys(value).map((key) => [key, plain(read(value, key), inside, depth - 1)])
  )
  return rest
}

const encoder = new TextEncoder()

const shorten = (description: string): string => {
  // a lone surrogate is no text that a provider would take
  const whole = description.toWellFormed()
  if (whole.length * 3 <= mostDescriptionBytes || encoder.encode(whole).length <= mostDescriptionBytes) return whole
  const { read } = encoder.encodeInto(whole, new Uint8Array(mostDescriptionBytes - 3))
  return `${whole.slice(0, read)}…`
}
