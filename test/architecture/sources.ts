/**
 * The project's own files as data: names, texts, syntax trees. What is asserted about them is in the tests beside.
 */
import { globSync, readFileSync } from "node:fs"
import { dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { parseSync } from "vite"

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..")

/** Paths of files, relative to the root, with slashes. */
export const filesMatching = (...patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  globSync([...patterns], { cwd: root }).map((path) => path.split(sep).join("/")).toSorted()

const notOurs = new Set([".git", ".tmp", "coverage", "dist", "node_modules"])

/** All files of the project, without what is installed or made. */
export const projectFiles = (): ReadonlyArray<string> =>
  globSync("**/*", { cwd: root, exclude: (entry) => notOurs.has(entry.name), withFileTypes: true })
    .filter((entry) => entry.isFile() && !/\.(sqlite\S*|tgz)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .toSorted()

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8")

export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [property: string]: unknown
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

export const parse = (path: string): { readonly program: Node; readonly lineOf: (node: Node) => number } => {
  const text = textOf(path)
  const { errors, program } = parseSync(path, text)
  const error = errors[0]
  if (error !== undefined) {
    throw new Error(`${path} does not parse: ${error.message}`)
  }
  const lineOf = (node: Node) => text.slice(0, node.start).split("\n").length
  return { program: program as unknown as Node, lineOf }
}

/** The nodes right below `node`, in the order of the text, with the property that holds them. */
export function* childrenOf(node: Node): Generator<readonly [property: string, child: Node]> {
  for (const [property, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child)) {
        yield [property, child]
      }
    }
  }
}

/** `node` and all nodes below it. */
export function* walk(node: Node): Generator<Node> {
  yield node
  for (const [, child] of childrenOf(node)) {
    yield* walk(child)
  }
}

/** What the file imports or re-exports, types too: paths of project files, or names of modules as written. */
export const importsOf = (path: string): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const node of walk(parse(path).program)) {
    const source = node["source"]
    if (isNode(source) && typeof source["value"] === "string") {
      const name = source["value"]
      found.add(name.startsWith(".") ? posix.join(posix.dirname(path), name) : name)
    }
  }
  return [...found]
}
