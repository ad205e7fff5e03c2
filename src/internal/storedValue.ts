/**
 * Values of a run as text, and back: results of models and tools, messages, triggers.
 *
 * JSON alone would lose bytes, URLs, Dates and `undefined`, and would do so only on the day a run is replayed. What JSON has
 * no form for stands in an object whose one telling member is `$`; an object of the user's own that has such a member is
 * written inside of one.
 *
 * Large bytes, and large texts of files and of `data:` URLs, are put aside: the text then holds their name.
 */
import { Predicate } from "effect"
import { sha256 } from "../internal/sha256.ts"

/** What is kept apart from the text, under its name. */
export type Blobs = ReadonlyMap<string, string | Uint8Array>

export interface Encoded {
  readonly text: string
  readonly blobs: Blobs
}

/** Bytes, texts of files and `data:` URLs that are longer stand apart. */
export const largestInline = 16 * 1024

const mark = "$"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Why a value cannot be kept. */
export class Unwritable extends Error {
  readonly _tag = "Unwritable"
}

const maxDepth = 500

/** Throws `Unwritable`. */
export const encode = (value: unknown): Encoded => {
  const blobs = new Map<string, string | Uint8Array>()
  const above = new Set<object>()

  const apart = (content: string | Uint8Array): Json => {
    const name = sha256(typeof content === "string" ? named(content) : `bytes:${base64(content)}`)
    blobs.set(name, content)
    return { [mark]: "blob", v: name }
  }

  const bytesOf = (value: Uint8Array): Json => special(value)!

  const special = (value: object): Json | undefined => {
    if (value instanceof Uint8Array) {
      return value.byteLength > largestInline ? apart(new Uint8Array(value)) : { [mark]: "bytes", v: base64(value) }
    }
    if (value instanceof ArrayBuffer) return { [mark]: "buffer", v: bytesOf(new Uint8Array(value)) }
    if (ArrayBuffer.isView(value)) {
      const { buffer, byteLength, byteOffset } = value
      const kind = viewNames.find((name) => value instanceof views[name])
      if (kind === undefined) throw new Unwritable(`it holds a ${value.constructor.name}`)
      return { [mark]: "view", v: [kind, bytesOf(new Uint8Array(buffer, byteOffset, byteLength))] }
    }
    if (value instanceof URL) return { [mark]: "url", v: any(value.href, false) }
    if (value instanceof Date) return { [mark]: "date", v: value.getTime().toString() }
    return undefined
  }

  const object = (value: object, inFile: boolean): Json => {
    const known = special(value)
    if (known !== undefined) return known
    if (above.has(value)) throw new Unwritable("it holds itself")
    if (above.size >= maxDepth) throw new Unwritable("it is nested too deep")
    above.add(value)
    try {
      if (Array.isArray(value)) return Array.from(value, (item) => any(item, inFile))
      if (value instanceof Map) return { [mark]: "map", v: Array.from(value, (entry) => any(entry, inFile)) }
      if (value instanceof Set) return { [mark]: "set", v: Array.from(value, (item) => any(item, inFile)) }
      if (Predicate.hasProperty(value, "toJSON") && typeof value.toJSON === "function") {
        return any((value as { readonly toJSON: () => unknown }).toJSON(), inFile)
      }
      const file = inFile || isFile(value)
      const members = Object.fromEntries(
        Object.entries(value).flatMap(([name, member]) =>
          typeof member === "function" || typeof member === "symbol" ? [] : [[name, any(member, file)]]
        )
      )
      return Object.hasOwn(value, mark) ? { [mark]: "object", v: members } : members
    } finally {
      above.delete(value)
    }
  }

  const any = (value: unknown, inFile: boolean): Json => {
    switch (typeof value) {
      case "string":
        return value.length > largestInline && (inFile || value.startsWith("data:")) ? apart(value) : value
      case "boolean":
        return value
      case "number":
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : { [mark]: "number", v: Object.is(value, -0) ? "-0" : String(value) }
      case "bigint":
        return { [mark]: "bigint", v: String(value) }
      case "object":
        return value === null ? null : object(value, inFile)
      default:
        return { [mark]: "undefined" }
    }
  }

  return { text: JSON.stringify(any(value, false)), blobs }
}

/** In UTF-8, of which the hash is, halves of characters would all be the same. */
const named = (text: string): string => text.isWellFormed() ? `text:${text}` : `json:${JSON.stringify(text)}`

/** Parts of messages say their media type; an image may leave it to be found out. */
const isFile = (value: object): boolean =>
  Predicate.hasProperty(value, "mediaType") && typeof value.mediaType === "string"
  || Predicate.hasProperty(value, "image") && Predicate.hasProperty(value, "type") && value.type === "image"

const views = {
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView
} as const

const viewNames = Object.keys(views) as ReadonlyArray<keyof typeof views>

/** The names of what stands apart from a text that `encode` made. */
export const blobsIn = (text: string): ReadonlyArray<string> => {
  if (!text.includes(`"${mark}":"blob"`)) return []
  const names = new Set<string>()
  const visit = (json: Json): void => {
    if (!Predicate.isObjectOrArray(json)) return
    const tag = Array.isArray(json) ? undefined : tagOf(json)
    const { v } = json as unknown as Tagged
    if (tag === "blob") names.add(v as string)
    // the user's own object: what its members look like says nothing, as in `decode`
    else Object.values(tag === "object" ? v as object : json).forEach(visit)
  }
  visit(JSON.parse(text) as Json)
  return [...names]
}

interface Tagged {
  readonly [mark]: string
  readonly v: Json
}

const tagOf = (json: object): string | undefined =>
  Object.hasOwn(json, mark) ? (json as { readonly [mark]: string })[mark] : undefined

/** What `encode` wrote. Throws where it did not write it, or where a blob is missing. */
export const decode = (text: string, blobs: Blobs = new Map()): unknown => {
  const any = (json: Json): unknown => {
    if (!Predicate.isObjectOrArray(json)) return json
    if (Array.isArray(json)) return json.map(any)
    const tag = tagOf(json)
    return tag === undefined ? members(json) : tagged(tag, (json as unknown as Tagged).v)
  }
  const members = (json: object): unknown =>
    Object.fromEntries(Object.entries(json).map(([name, member]) => [name, any(member as Json)]))
  // a copy: what is inline may be a window into memory that others use
  const bufferOf = (json: Json): ArrayBuffer => new Uint8Array(any(json) as Uint8Array).buffer as ArrayBuffer
  const tagged = (tag: string, value: Json): unknown => {
    switch (tag) {
      case "undefined":
        return undefined
      case "bytes":
        return bytes(value as string)
      case "buffer":
        return bufferOf(value)
      case "view": {
        const [name, content] = value as readonly [keyof typeof views, Json]
        return new (views[name] as new(buffer: ArrayBuffer) => unknown)(bufferOf(content))
      }
      case "url":
        return new URL(any(value) as string)
      case "date":
        return new Date(Number(value))
      case "number":
        return Number(value)
      case "bigint":
        return BigInt(value as string)
      case "map":
        return new Map(any(value) as ReadonlyArray<[unknown, unknown]>)
      case "set":
        return new Set(any(value) as ReadonlyArray<unknown>)
      case "object":
        return members(value as object)
      case "blob": {
        const content = blobs.get(value as string)
        if (content === undefined) throw new Error(`A part of a stored value is missing: ${value as string}`)
        return content
      }
      default:
        throw new Error(`A stored value has a part of an unknown kind: ${tag}`)
    }
  }
  return any(JSON.parse(text) as Json)
}

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64")

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "base64"))
