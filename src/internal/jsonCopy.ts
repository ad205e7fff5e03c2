/**
 * Guarded JSON: a copy of a value that `JSON.stringify` writes faithfully, or the place of what it would write wrongly.
 *
 * `JSON.stringify` turns a Map into `{}`, NaN into `null`, and drops functions without a word; an effect key or a recorded
 * result made that way would stand for another value. Lone surrogates, invalid Dates, cycles and depths that would
 * overflow its stack are caught here too.
 */
import { Result } from "effect"
import { types } from "node:util"

/** Deeper values are refused: a native `JSON.stringify` overflows the stack at some thousands of levels. */
export const mostLevels = 1_000
/** More nodes than this are refused: shared references can expand without bound. */
const mostNodes = 5_000_000

/**
 * @category models
 */
export interface JsonProblem {
  /** The place inside the value, as `$.items[2]["a b"]`. */
  readonly path: string
  readonly problem: string
}

class Refusal {
  readonly problem: string
  readonly depth: number
  constructor(problem: string, depth: number) {
    this.problem = problem
    this.depth = depth
  }
}

const identifier = /^[A-Za-z_$][\w$]*$/

const pathOf = (keys: ReadonlyArray<string | number>): string =>
  keys.reduce<string>(
    (path, key) =>
      path + (typeof key === "number" ? `[${key}]` : identifier.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`),
    "$"
  )

const foreignKind = (value: object): string | undefined =>
  types.isMap(value) ? "a Map"
    : types.isSet(value) ? "a Set"
    : ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value) ? "binary data"
    : types.isRegExp(value) ? "a RegExp"
    : types.isNativeError(value) || value instanceof Error ? "an Error"
    : types.isPromise(value) ? "a Promise"
    : types.isWeakMap(value) || types.isWeakSet(value) ? "a weak collection"
    : types.isDate(value) && Number.isNaN(value.getTime()) ? "an invalid Date"
    : undefined

const unbox = (value: object): unknown => types.isBoxedPrimitive(value) ? value.valueOf() : value

const isPlain = (value: object): boolean => {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

class Copier {
  readonly sorted: boolean
  readonly keys: Array<string | number> = []
  nodes = 0
  /** Whether an object holds keys whose order or existence a plain copy cannot keep. */
  special = false

  constructor(sorted: boolean) {
    this.sorted = sorted
  }

  copy(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case "string":
        if (!value.isWellFormed()) throw new Refusal("a string with a lone surrogate", depth)
        return value
      case "number":
        if (!Number.isFinite(value)) throw new Refusal(`the number ${value}`, depth)
        return value
      case "boolean":
        return value
      case "object":
        return value === null ? null : this.copyObject(value, depth)
      case "undefined":
        return undefined
      default:
        throw new Refusal(`a ${typeof value}`, depth)
    }
  }

  private copyObject(value: object, depth: number): unknown {
    if (depth >= mostLevels) throw new Refusal(`nesting deeper than ${mostLevels} levels, or a cycle`, depth)
    if (++this.nodes > mostNodes) throw new Refusal(`more than ${mostNodes} objects`, depth)
    if (Array.isArray(value)) return this.copyArray(value, depth)
    if (!isPlain(value)) {
      const foreign = foreignKind(value)
      if (foreign !== undefined) throw new Refusal(foreign, depth)
    }
    const toJSON: unknown = (value as { readonly toJSON?: unknown }).toJSON
    if (typeof toJSON === "function") {
      const key = depth === 0 ? "" : String(this.keys[depth - 1])
      const replaced: unknown = toJSON.call(value, key)
      // JSON.stringify asks once: what toJSON answers is not asked again
      return typeof replaced === "object" && replaced !== null && !Array.isArray(replaced)
        ? this.copyMembers(replaced, depth)
        : this.copy(replaced, depth)
    }
    const unboxed = unbox(value)
    return unboxed === value ? this.copyMembers(value, depth) : this.copy(unboxed, depth)
  }

  private copyArray(value: ReadonlyArray<unknown>, depth: number): ReadonlyArray<unknown> {
    const result = new Array<unknown>(value.length)
    for (let i = 0; i < value.length; i++) {
      this.keys[depth] = i
      const item = this.copy(value[i], depth + 1)
      result[i] = item === undefined ? null : item
    }
    return result
  }

  private copyMembers(value: object, depth: number): unknown {
    const names = Object.keys(value)
    if (!isPlain(value)) {
      const foreign = foreignKind(value)
      if (foreign !== undefined) throw new Refusal(foreign, depth)
      if (names.length === 0) {
        throw new Refusal(`an instance of ${value.constructor?.name || "a class"}, which JSON would write as {}`, depth)
      }
    }
    if (this.sorted && names.length > 1) names.sort()
    const result: { [name: string]: unknown } = {}
    for (const name of names) {
      this.keys[depth] = name
      if (!name.isWellFormed()) throw new Refusal("a key with a lone surrogate", depth + 1)
      const member = this.copy((value as { readonly [name: string]: unknown })[name], depth + 1)
      if (member === undefined) continue
      const first = name.charCodeAt(0)
      if (first <= 57 && first >= 48) this.special = true
      if (name === "__proto__") {
        Object.defineProperty(result, name, { value: member, enumerable: true, configurable: true, writable: true })
      } else {
        result[name] = member
      }
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
  return Result.try({
    try: () => {
      const copy = copier.copy(value, 0)
      return sorted && copier.special ? writeSorted(copy) : JSON.stringify(copy)
    },
    catch: (thrown) =>
      thrown instanceof Refusal
        ? { path: pathOf(copier.keys.slice(0, thrown.depth)), problem: `it holds ${thrown.problem}` }
        : { path: pathOf(copier.keys), problem: `it cannot be read: ${String(thrown)}` }
  })
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
