/**
 * The JSON Schema of an Effect Schema in the shape that language models' providers accept.
 *
 * Effect describes the canonical JSON form exactly, as draft 2020-12 with definitions. Providers want less: draft 07, a
 * root that is a plain object with `properties`, closed objects, no tuples, no annotation-only `allOf`, no root `$ref`.
 * What is shaped away here only loosens the description that the model reads. The decoder stays the judge.
 */
import { Schema } from "effect"
import { type JsonNode, mergeDescriptions } from "./jsonSchemaDescriptions.ts"
import { asObjectRoot } from "./jsonSchemaRoot.ts"

/** A JSON Schema, draft 07, as plain JSON. */
export type JsonSchemaObject = JsonNode

/**
 * The JSON Schema of the JSON form of `schema`.
 *
 * Definitions are inlined, except for recursive ones, which stay under `definitions`. A root that is an object, or a
 * union of objects, becomes one `type: "object"`; other roots (an array, a string) are left as they are.
 */
export const jsonSchemaOf = (schema: Schema.Constraint): JsonSchemaObject => {
  const document = Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" })
  const definitions = JSON.parse(JSON.stringify(document.definitions)) as Record<string, JsonNode>
  const recursive = recursiveNames(definitions)
  const inline = (node: JsonNode): JsonNode => inlineRefs(node, definitions, recursive)

  const root = JSON.parse(JSON.stringify(document.schema)) as JsonNode
  const rootName = refName(root)
  const shaped = normalize(inline(rootName === undefined ? root : definitions[rootName] ?? {}))
  const kept = Object.fromEntries([...recursive].map((name) => [name, normalize(inline(definitions[name] ?? {}))]))

  mergeDescriptions(Schema.toCodecJson(schema).ast, shaped, kept)
  const object = asObjectRoot(shaped)
  const used = usedDefinitions(object, kept)
  return Object.keys(used).length === 0 ? object : { ...object, definitions: used }
}

const prefix = "#/$defs/"

const refName = (node: JsonNode): string | undefined =>
  typeof node.$ref === "string" && node.$ref.startsWith(prefix)
    ? decodeURIComponent(node.$ref.slice(prefix.length)).replaceAll("~1", "/").replaceAll("~0", "~")
    : undefined

const children = (value: unknown): ReadonlyArray<JsonNode> =>
  typeof value === "object" && value !== null ? Object.values(value) as ReadonlyArray<JsonNode> : []

const namesIn = (node: unknown, into: Set<string>): Set<string> => {
  const name = typeof node === "object" && node !== null ? refName(node as JsonNode) : undefined
  if (name !== undefined) into.add(name)
  for (const child of children(node)) namesIn(child, into)
  return into
}

const recursiveNames = (definitions: Readonly<Record<string, JsonNode>>): ReadonlySet<string> => {
  const recursive = new Set<string>()
  for (const name of Object.keys(definitions)) {
    const reached = new Set<string>()
    const open = [name]
    while (open.length > 0) {
      for (const next of namesIn(definitions[open.pop()!], new Set())) {
        if (reached.has(next)) continue
        reached.add(next)
        open.push(next)
      }
    }
    if (reached.has(name)) recursive.add(name)
  }
  return recursive
}

const inlineRefs = (
  node: JsonNode,
  definitions: Readonly<Record<string, JsonNode>>,
  recursive: ReadonlySet<string>
): JsonNode => {
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== "object" || value === null) return value
    const name = refName(value as JsonNode)
    if (name !== undefined) {
      return recursive.has(name) ? { $ref: `#/definitions/${refToken(name)}` } : walk(definitions[name] ?? {})
    }
    return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, walk(child)]))
  }
  return walk(node) as JsonNode
}

const refToken = (name: string): string => encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))

const usedDefinitions = (root: JsonNode, definitions: Record<string, JsonNode>): Record<string, JsonNode> => {
  const text = JSON.stringify([root, definitions])
  return Object.fromEntries(
    Object.entries(definitions).filter(([name]) => text.includes(JSON.stringify(`#/definitions/${refToken(name)}`)))
  )
}

const unnecessary = new Set(["title", "description", "examples", "default", "format", "readOnly", "writeOnly"])

const isEmptyStruct = (node: JsonNode): boolean =>
  Object.keys(node).every((key) => key === "not" || unnecessary.has(key))
  && JSON.stringify(node.not) === JSON.stringify({ type: "null" })

const isNonFinite = (node: JsonNode): boolean =>
  node.type === "string" && JSON.stringify(node.enum) === JSON.stringify(["Infinity", "-Infinity", "NaN"])

/** Shapes a node and everything in it. */
const normalize = (node: JsonNode): JsonNode => {
  const properties = mapRecord(node.properties, normalize)
  const shaped: JsonNode = {
    ...node,
    ...properties === undefined ? {} : { properties },
    ...isNode(node.items) ? { items: normalize(node.items) } : {},
    ...isNode(node.additionalProperties) ? { additionalProperties: openOr(normalize(node.additionalProperties)) } : {}
  }
  if (isEmptyStruct(node)) {
    const { not: _, ...annotations } = node
    return { type: "object", properties: {}, additionalProperties: false, ...annotations }
  }
  return closeObject(withoutSafeBounds(unwrapUnion(flattenAllOf(withoutTuple(shaped)))))
}

// Every Int has these bounds; they tell a model nothing.
const withoutSafeBounds = (node: JsonNode): JsonNode => {
  if (node.type !== "integer") return node
  const { maximum, minimum, ...rest } = node
  return {
    ...rest,
    ...minimum === undefined || minimum === Number.MIN_SAFE_INTEGER ? {} : { minimum },
    ...maximum === undefined || maximum === Number.MAX_SAFE_INTEGER ? {} : { maximum }
  }
}

const isNode = (value: unknown): value is JsonNode =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const mapRecord = (value: unknown, f: (node: JsonNode) => JsonNode): Record<string, JsonNode> | undefined =>
  isNode(value)
    ? Object.fromEntries(
      Object.entries(value).map(([key, child]) => [key, isNode(child) ? f(child) : child as JsonNode])
    )
    : undefined

const nodes = (value: unknown): ReadonlyArray<JsonNode> => Array.isArray(value) ? value.filter(isNode) : []

const openOr = (node: JsonNode): JsonNode | true => Object.keys(node).length === 0 ? true : node

// The parts of an allOf go into the node where they add to it and do not contradict it.
const flattenAllOf = (node: JsonNode): JsonNode => {
  if (!Array.isArray(node.allOf)) return node
  const { allOf, ...rest } = node
  const merged: JsonNode = { ...rest }
  const left: Array<JsonNode> = []
  for (const part of nodes(allOf).map(normalize)) {
    const conflicts = Object.keys(part).some((key) =>
      key in merged && JSON.stringify(merged[key]) !== JSON.stringify(part[key]) && !unnecessary.has(key)
    )
    if (conflicts || "$ref" in part) left.push(part)
    else Object.assign(merged, part)
  }
  return left.length === 0 ? merged : { ...merged, allOf: left }
}

// Nested unions become one, the texts "NaN" and "Infinity" of a Number go, and a union of one is that one.
const unwrapUnion = (node: JsonNode): JsonNode => {
  const key = Array.isArray(node.anyOf) ? "anyOf" : Array.isArray(node.oneOf) ? "oneOf" : undefined
  if (key === undefined) return node
  const { [key]: members, ...rest } = node
  const flat = nodes(members).map(normalize).flatMap((member) =>
    Object.keys(member).length === 1 && Array.isArray(member.anyOf) ? nodes(member.anyOf) : [member]
  )
  const kept = flat.some((member) => member.type === "number")
    ? flat.filter((member) => !isNonFinite(member))
    : flat
  return kept.length === 1 ? { ...kept[0], ...rest } : { ...rest, anyOf: kept }
}

// Providers know lists of one kind of item. The order of a tuple's items goes into its description.
const withoutTuple = (node: JsonNode): JsonNode => {
  if (!Array.isArray(node.prefixItems)) return node
  const { items, prefixItems, ...rest } = node
  const elements = nodes(prefixItems).map(normalize)
  const all = isNode(items) ? [...elements, items] : elements
  const kinds = all.filter((item, index) =>
    all.findIndex((other) => JSON.stringify(other) === JSON.stringify(item)) === index
  )
  const order = `${elements.map(nameOf).join(", ")}${isNode(items) ? `, then any number of ${nameOf(items)}` : ""}`
  return {
    ...rest,
    items: kinds.length === 1 ? kinds[0]! : { anyOf: kinds },
    ...kinds.length === 1 || "description" in node ? {} : { description: `In this order: ${order}` }
  }
}

const nameOf = (node: JsonNode): string =>
  typeof node.description === "string" ? node.description : typeof node.type === "string" ? node.type : "value"

// An object says which properties it has and whether there may be others; a record without properties stays open.
const closeObject = (node: JsonNode): JsonNode =>
  node.type === "object" && !("additionalProperties" in node)
    ? { ...node, additionalProperties: !isNode(node.properties) }
    : node
