/**
 * Guarded JSON: a copy of a value that `JSON.stringify` writes faithfully, or the place of what it would write wrongly.
 *
 * `JSON.stringify` turns a Map into `{}`, NaN into `null`, and drops functions without a word; an effect key or a recorded
 * result made that way would stand for another value. Lone surrogates, invalid Dates, cycles and depths that would
 * overflow its stack are caught here too.
 */
import { Effect, Redacted, Result } from "effect"
import { types } from "node:util"

/** Deeper values are refused: a native `JSON.stringify` overflows the stack at some thousands of levels. */
export const mostLevels = 1_000
/** More members and items than this are refused: shared references can expand without bound. */
const mostNodes = 2_000_000
/** Longer texts are refused, as the sum over all strings: a text near the engine's limit holds the process up for seconds. */
const mostCharacters = 134_217_728

/**
 * @category models
 */
export interface JsonProblem {
  /** The place inside the value, as `$.items[2]["a b"]`. */
  readonly path: string
  readonly problem: string
}

type Key = string | number

/** Thrown where the trouble is; each level around it adds its own key, so that the ordinary case keeps no path. */
class Refusal {
  // asked instead of `instanceof`, which a Proxy that a user's code throws could answer by throwing again
  static is(thrown: unknown): thrown is Refusal {
    return typeof thrown === "object" && thrown !== null && #tooDeep in thrown
  }
  readonly problem: string
  /** The innermost first. */
  readonly keys: Array<Key> = []
  readonly containers: Array<object> = []
  readonly #tooDeep: boolean
  constructor(problem: string, tooDeep = false) {
    this.problem = problem
    this.#tooDeep = tooDeep
  }
  within(container: object, key: Key): this {
    this.keys.push(key)
    if (this.#tooDeep) this.containers.push(container)
    return this
  }
}

/** A text of anything, also of what refuses to be one. */
export const textOf = (thrown: unknown): string => {
  try {
    return String(thrown)
  } catch {
    return "a value that has no text"
  }
}

const refusalOf = (thrown: unknown): Refusal =>
  Refusal.is(thrown) ? thrown : new Refusal(`something that cannot be read: ${textOf(thrown)}`)

const identifier = /^[A-Za-z_$][\w$]*$/

const pathOf = (keys: ReadonlyArray<Key>): string =>
  keys.reduce<string>(
    (path, key) =>
      path + (typeof key === "number" ? `[${key}]` : identifier.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`),
    "$"
  )

/** What goes round in a circle is seen only where it becomes too deep: looking for it earlier would cost every call. */
const problemOf = (refusal: Refusal): JsonProblem => {
  const keys = refusal.keys.toReversed()
  const seen = new Map<object, number>()
  for (const [level, container] of refusal.containers.toReversed().entries()) {
    const before = seen.get(container)
    if (before !== undefined) {
      return {
        path: pathOf(keys.slice(0, level)),
        problem: `it holds a cycle, back to ${pathOf(keys.slice(0, before))}`
      }
    }
    seen.set(container, level)
  }
  return { path: pathOf(keys), problem: `it holds ${refusal.problem}` }
}

const foreignKind = (value: object): string | undefined =>
  types.isMap(value)
    ? "a Map"
    : types.isSet(value)
    ? "a Set"
    : ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value)
    ? "binary data"
    : types.isRegExp(value)
    ? "a RegExp"
    : types.isNativeError(value) || value instanceof Error
    ? "an Error"
    : types.isPromise(value)
    ? "a Promise"
    : types.isWeakMap(value) || types.isWeakSet(value)
    ? "a weak collection"
    : types.isDate(value) && Number.isNaN(value.getTime())
    ? "an invalid Date"
    // these have a toJSON that is meant for logs
    : Redacted.isRedacted(value)
    ? "a Redacted, which JSON would write without its value"
    : Effect.isEffect(value)
    ? "an Effect"
    : undefined

/** The primitive that JSON writes for a boxed one; other objects are answered as they are. */
const unbox = (value: object): unknown =>
  types.isNumberObject(value)
    ? Number(value)
    : types.isStringObject(value)
    ? String(value)
    : types.isBooleanObject(value)
    ? Boolean.prototype.valueOf.call(value)
    : types.isBoxedPrimitive(value)
    ? value.valueOf()
    : value

/** Of this realm or another one. */
const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null
}

/** By UTF-16 code unit. Most objects have a few members, for which the built-in sort takes twice the time. */
const sortNames = (names: Array<string>): Array<string> => {
  if (names.length > 20) return names.sort()
  for (let i = 1; i < names.length; i++) {
    const name = names[i]!
    let at = i
    for (; at > 0 && names[at - 1]! > name; at--) names[at] = names[at - 1]!
    names[at] = name
  }
  return names
}

class Copier {
  readonly sorted: boolean
  nodes = 0
  characters = 0
  /** Whether an object holds keys whose order a plain copy cannot keep. */
  special = false

  constructor(sorted: boolean) {
    this.sorted = sorted
  }

  copy(value: unknown, depth: number, key: Key): unknown {
    switch (typeof value) {
      case "string":
        if (!value.isWellFormed()) throw new Refusal("a string with a lone surrogate")
        this.characters += value.length
        if (this.characters > mostCharacters) throw new Refusal(`more than ${mostCharacters} characters`)
        return value
      case "number":
        if (!Number.isFinite(value)) throw new Refusal(`the number ${value}`)
        return value
      case "boolean":
        return value
      case "object":
        return value === null ? null : this.copyObject(value, depth, key)
      case "undefined":
        return undefined
      default:
        throw new Refusal(`a ${typeof value}`)
    }
  }

  private copyObject(value: object, depth: number, key: Key): unknown {
    if (depth >= mostLevels) throw new Refusal(`nesting deeper than ${mostLevels} levels`, true)
    const foreign = Object.getPrototypeOf(value) === Object.prototype || Array.isArray(value)
      ? undefined
      : foreignKind(value)
    if (foreign !== undefined) throw new Refusal(foreign)
    const toJSON: unknown = (value as { readonly toJSON?: unknown }).toJSON
    if (typeof toJSON !== "function") return this.copyContents(value, depth, key)
    const answer: unknown = toJSON.call(value, String(key))
    // JSON.stringify asks once: what toJSON answers is not asked again
    return typeof answer === "object" && answer !== null
      ? this.copyContents(answer, depth, key)
      : this.copy(answer, depth, key)
  }

  private copyContents(value: object, depth: number, key: Key): unknown {
    if (Array.isArray(value)) return this.copyArray(value, depth)
    const names = Object.keys(value)
    if (Object.getPrototypeOf(value) !== Object.prototype || names.length === 0) {
      const foreign = foreignKind(value)
      if (foreign !== undefined) throw new Refusal(foreign)
      const unboxed = unbox(value)
      if (unboxed !== value) return this.copy(unboxed, depth, key)
      if (names.length === 0 && !isPlain(value)) {
        throw new Refusal(`an instance of ${value.constructor?.name || "a class"}, which JSON would write as {}`)
      }
    }
    return this.copyMembers(value, names, depth)
  }

  private count(nodes: number): void {
    this.nodes += nodes
    if (this.nodes > mostNodes) throw new Refusal(`more than ${mostNodes} members and items`)
  }

  private copyArray(value: ReadonlyArray<unknown>, depth: number): ReadonlyArray<unknown> {
    const length = value.length
    this.count(length + 1)
    const result: Array<unknown> = []
    let index = 0
    try {
      for (; index < length; index++) {
        const item = this.copy(value[index], depth + 1, index)
        result.push(item === undefined ? null : item)
      }
    } catch (thrown) {
      throw refusalOf(thrown).within(value, index)
    }
    return result
  }

  private copyMembers(value: object, names: Array<string>, depth: number): unknown {
    this.count(names.length + 1)
    if (this.sorted) sortNames(names)
    const result: { [name: string]: unknown } = {}
    let name = ""
    try {
      for (let i = 0; i < names.length; i++) {
        name = names[i]!
        if (!name.isWellFormed()) throw new Refusal("a name with a lone surrogate")
        const member = this.copy((value as { readonly [name: string]: unknown })[name], depth + 1, name)
        if (member === undefined) continue
        const first = name.charCodeAt(0)
        if (first <= 57 && first >= 48) this.special = true
        if (name === "__proto__") {
          Object.defineProperty(result, name, { value: member, enumerable: true, configurable: true, writable: true })
        } else {
          result[name] = member
        }
      }
    } catch (thrown) {
      throw refusalOf(thrown).within(value, name)
    }
    return result
  }
}

/** Integer-like keys come first in every object, whatever the order they were set in: this writes them sorted. */
const writeSorted = (value: unknown): string =>
  typeof value !== "object" || value === null
    ? JSON.stringify(value)
    : Array.isArray(value)
    ? `[${value.map(writeSorted).join(",")}]`
    : `{${
      Object.keys(value).sort().map((name) =>
        `${JSON.stringify(name)}:${writeSorted((value as { readonly [name: string]: unknown })[name])}`
      ).join(",")
    }}`

const write = (value: unknown, sorted: boolean): Result.Result<string | undefined, JsonProblem> => {
  const copier = new Copier(sorted)
  let copy: unknown
  try {
    copy = copier.copy(value, 0, "")
  } catch (thrown) {
    return Result.fail(problemOf(refusalOf(thrown)))
  }
  try {
    return Result.succeed(sorted && copier.special ? writeSorted(copy) : JSON.stringify(copy))
  } catch (thrown) {
    return Result.fail({ path: "$", problem: `its text is too long: ${textOf(thrown)}` })
  }
}

/**
 * Canonical JSON: object keys sorted by UTF-16 code unit, so that equal values have equal texts. `undefined` itself has
 * no text.
 */
export const canonicalJson = (value: unknown): Result.Result<string | undefined, JsonProblem> => write(value, true)

/**
 * The JSON text of a value in its own key order. `undefined` itself has no text.
 */
export const jsonText = (value: unknown): Result.Result<string | undefined, JsonProblem> => write(value, false)
