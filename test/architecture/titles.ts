/**
 * The titles of all tests, read from the text of the test files without running them.
 */
import { childrenOf, filesMatching, isNode, type Node, parse } from "./sources.ts"

/** Titles of the suites around a test and its own; `undefined` where a title is computed. */
type Path = ReadonlyArray<RegExp>

const separator = " > "
const quoted = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")

/** `it.effect.prop(...)` and `it.each(cases)(...)` are calls of `it`. */
const calledName = (callee: Node): { readonly name: string; readonly through: ReadonlyArray<string> } | undefined => {
  const { callee: inner, name, object, property, tag } = callee
  if (callee.type === "Identifier") {
    return { name: name as string, through: [] }
  }
  if (isNode(object) && isNode(property)) {
    const found = calledName(object)
    return found && { ...found, through: [...found.through, String(property["name"])] }
  }
  return isNode(inner) ? calledName(inner) : isNode(tag) ? calledName(tag) : undefined
}

/** What the title of a call can be: computed parts stand for any text, as the `%s` and `$name` of `each` do. */
const titleOf = (argument: Node | undefined): RegExp | undefined => {
  if (argument?.type === "Literal" && typeof argument["value"] === "string") {
    return new RegExp(`^${quoted(argument["value"]).replace(/%[sdifjoO#]|\\\$[\w.]+/g, "(.+)")}$`)
  }
  if (argument?.type === "TemplateLiteral") {
    const quasis = argument["quasis"] as ReadonlyArray<{ readonly value: { readonly cooked: string } }>
    return new RegExp(`^${quasis.map((quasi) => quoted(quasi.value.cooked)).join("(.+)")}$`)
  }
  return argument === undefined || /Function/.test(argument.type) ? undefined : /^(.+)$/
}

const runners = ["describe", "it", "layer", "suite", "test"]
const notRun = ["skip", "todo"]
/** What is called first and gives the function that takes the title: `it.each(cases)("title", ...)`. */
const makers = ["each", "skipIf", "runIf", "layer"]

interface Call {
  readonly title: Node | undefined
  readonly runs: boolean
}

/** The call as one of the test runner's that takes a title, or `undefined`. */
const asTitled = (node: Node): Call | undefined => {
  const { arguments: given, callee } = node
  const called = node.type === "CallExpression" && isNode(callee) ? calledName(callee) : undefined
  if (called === undefined || !runners.includes(called.name)) {
    return undefined
  }
  const isMaker = (callee as Node).type !== "CallExpression" && makers.includes(called.through.at(-1) ?? "")
  return isMaker
    ? undefined
    : { title: (given as ReadonlyArray<Node>)[0], runs: !called.through.some((part) => notRun.includes(part)) }
}

function* pathsOf(node: Node, around: Path): Generator<Path> {
  const call = asTitled(node)
  if (call?.runs === false) {
    return
  }
  const title = call && titleOf(call.title)
  const path = title === undefined ? around : [...around, title]
  if (title !== undefined) {
    yield path
  }
  for (const [, child] of childrenOf(node)) {
    yield* pathsOf(child, path)
  }
}

export interface Titles {
  /** Whether a test (or a whole suite) of that title exists. */
  readonly has: (title: string) => boolean
}

/** Texts and names of properties that suites written as data may take their titles from. */
function* textsOf(node: Node): Generator {
  const { key } = node
  if (node.type === "Literal") {
    yield node["value"]
  }
  if (isNode(key) && key.type === "Identifier") {
    yield key["name"]
  }
  const title = asTitled(node)?.title
  for (const [, child] of childrenOf(node)) {
    if (child !== title) {
      yield* textsOf(child)
    }
  }
}

/**
 * A suite that is written as data computes its titles. Where a rule names a title of one, the computed part must still
 * stand somewhere as a text or a name of a property: so it cannot be invented.
 */
export const collectTitles = (): Titles => {
  const tests = filesMatching("test/**/*.test.ts", "test/**/*.test-d.ts").map((path) => parse(path).program)
  const helpers = filesMatching("test/**/*.ts", "src/testing/**/*.ts")
    .filter((path) => !/\.test(-d)?\.ts$/.test(path))
    .map((path) => parse(path).program)
  const texts = new Set([...tests, ...helpers].flatMap((program) => [...textsOf(program)]))
  const paths = tests.flatMap((program) => [...pathsOf(program, [])])
  // suites that a helper registers are written outside of the `describe` that calls it: a title may go on in one of them
  const parts = helpers.flatMap((program) => [...pathsOf(program, [])])
  const matches = (path: Path, titles: ReadonlyArray<string>): boolean =>
    path.length === titles.length && path.every((pattern, index) => {
      const match = pattern.exec(titles[index]!)
      return match !== null && match.slice(1).every((computed) => texts.has(computed))
    })
  return {
    has: (title) => {
      const titles = title.split(separator)
      const isPart = (from: number) => parts.some((path) => matches(path, titles.slice(from)))
      return paths.some((path) => matches(path, titles)) || isPart(0)
        || titles.some((_, index) =>
          index > 0 && isPart(index) && paths.some((path) => matches(path, titles.slice(0, index)))
        )
    }
  }
}
