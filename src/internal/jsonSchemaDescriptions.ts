/**
 * Descriptions that Effect loses on the way to JSON Schema.
 *
 * Where a schema's JSON form is derived (`Schema.Date` is a string, a `Schema.Class` an object, an Option a tagged object),
 * the annotations stay on the decoded side and the JSON side has none. Models read descriptions, so they are carried over
 * here: the AST of the JSON codec and its JSON Schema are walked side by side.
 */
import { Schema, SchemaAST } from "effect"

/** A node of a JSON Schema. */
export interface JsonNode {
  [key: string]: unknown
}

/** Writes the descriptions of `ast`, the AST of a JSON codec, into its JSON Schema. */
export const mergeDescriptions = (ast: SchemaAST.AST, root: JsonNode, definitions: Record<string, JsonNode>): void => {
  const seen = new Set<JsonNode>()

  const visit = (ast: SchemaAST.AST, node: JsonNode): void => {
    annotate(ast, node)
    if (typeof node.$ref === "string") {
      const definition = definitions[decodeURIComponent(node.$ref.slice("#/definitions/".length))]
      if (definition !== undefined && !seen.has(definition)) {
        seen.add(definition)
        visit(ast, definition)
      }
      return
    }
    const link = ast.encoding?.at(-1)
    if (link !== undefined) return visit(link.to, node)
    if (SchemaAST.isSuspend(ast)) return visit(ast.thunk(), node)
    if (SchemaAST.isObjects(ast)) {
      const properties = node.properties as Record<string, JsonNode> | undefined
      for (const property of ast.propertySignatures) {
        const child = properties?.[String(property.name)]
        if (child === undefined) continue
        const key = property.type.context?.annotations?.description
        if (typeof key === "string") child.description = key
        visit(property.type, child)
      }
      const values = node.additionalProperties
      const index = ast.indexSignatures[0]
      if (index !== undefined && isNode(values)) visit(index.type, values)
    } else if (SchemaAST.isArrays(ast)) {
      if (ast.elements.length === 0 && ast.rest[0] !== undefined && isNode(node.items)) visit(ast.rest[0], node.items)
    } else if (SchemaAST.isUnion(ast)) {
      visitUnion(ast, node)
    }
  }

  const visitUnion = (ast: SchemaAST.Union, node: JsonNode): void => {
    const members = Array.isArray(node.anyOf) ? node.anyOf as ReadonlyArray<JsonNode> : []
    // members that were merged or left out no longer stand side by side
    if (members.length === ast.types.length) {
      for (const [index, member] of members.entries()) visit(ast.types[index]!, member)
    }
  }

  visit(ast, root)
}

const isNode = (value: unknown): value is JsonNode =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const annotate = (ast: SchemaAST.AST, node: JsonNode): void => {
  const annotations = SchemaAST.resolve(ast)
  for (const key of ["title", "description"] as const) {
    // a check that comes after the annotation has annotations of its own
    const text = annotations?.[key] ?? ast.annotations?.[key]
    if (typeof text === "string" && node[key] === undefined) node[key] = text
  }
  if (SchemaAST.isNumber(ast)) annotateNumber(ast, node)
  const expected = ast.encoding === undefined ? annotations?.expected : undefined
  if (typeof expected === "string" && expected.startsWith("a string that will be decoded")) {
    // says that a text is, for example, a date, and in which form
    const decoded = expected.slice("a string that will be decoded as ".length)
    if (decoded === "a Date" || decoded === "a DateTime.Utc") node.format ??= "date-time"
    node.description ??= expected
  }
}

// The JSON form of a Number is derived (NaN is a text), and its checks are lost with it.
const annotateNumber = (ast: SchemaAST.Number, node: JsonNode): void => {
  if (ast.checks === undefined || node.type !== "number") return
  const [first, ...rest] = ast.checks
  const finite = Schema.toJsonSchemaDocument(Schema.Finite.check(first, ...rest)).schema as JsonNode
  for (const [key, value] of Object.entries(finite)) if (key !== "allOf" && key !== "$ref") node[key] ??= value
  if (finite.type === "integer") node.type = "integer"
}
