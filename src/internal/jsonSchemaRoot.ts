/**
 * Providers take only a plain object as the root of a tool's input: no `anyOf` beside or instead of it.
 */
import type { JsonNode } from "./jsonSchemaDescriptions.ts"

/**
 * The root as an object. A union of objects is merged into one that accepts every member: a property that members describe
 * differently may be any of them, what not every member requires is optional, and the description says which properties
 * go together. The decoder still tells the members apart.
 */
export const asObjectRoot = (root: JsonNode): JsonNode => {
  const members = Array.isArray(root.anyOf) ? root.anyOf as ReadonlyArray<JsonNode> : []
  if (members.length === 0 || !members.every((member) => member.type === "object")) {
    return root.type === "object" && !("properties" in root) ? { ...root, properties: {} } : root
  }
  const { anyOf: _, ...rest } = root
  const names = [...new Set(members.flatMap((member) => Object.keys(propertiesOf(member))))]
  const choices = `One of: ${members.map(variant).join("; ")}.`
  return {
    ...rest,
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, mergeProperty(members, name)])),
    required: names.filter((name) => members.every((member) => requiredOf(member).includes(name))),
    additionalProperties: members.some((member) => member.additionalProperties !== false),
    description: typeof rest.description === "string" ? `${rest.description}\n${choices}` : choices
  }
}

const propertiesOf = (member: JsonNode): Record<string, JsonNode> =>
  (member.properties ?? {}) as Record<string, JsonNode>

const requiredOf = (member: JsonNode): ReadonlyArray<string> =>
  Array.isArray(member.required) ? member.required as ReadonlyArray<string> : []

const mergeProperty = (members: ReadonlyArray<JsonNode>, name: string): JsonNode => {
  const schemas = members.flatMap((member) => {
    const property = propertiesOf(member)[name]
    return property === undefined ? [] : [property]
  })
  const kinds = schemas.filter((schema, index) =>
    schemas.findIndex((other) => JSON.stringify(other) === JSON.stringify(schema)) === index
  )
  if (kinds.length === 1) return kinds[0]!
  const type = kinds[0]!.type
  return kinds.every((kind) => Array.isArray(kind.enum) && kind.type === type)
    ? { type, enum: [...new Set(kinds.flatMap((kind) => kind.enum as ReadonlyArray<unknown>))] }
    : { anyOf: kinds }
}

const variant = (member: JsonNode): string => {
  const required = requiredOf(member)
  const names = Object.entries(propertiesOf(member)).map(([name, property]) =>
    Array.isArray(property.enum) && property.enum.length === 1
      ? `${name}: ${JSON.stringify(property.enum[0])}`
      : required.includes(name)
      ? name
      : `${name}?`
  )
  const title = typeof member.description === "string" ? ` (${member.description})` : ""
  return `{ ${names.join(", ")} }${title}`
}
