/**
 * What src leaves to Effect: time, chance, output, asynchrony, failure. A program's tests can only swap what goes through
 * Effect's services. Types may still name a Promise, since hooks of users return them.
 */
import { describe, expect, it } from "vitest"
import { childrenOf, filesMatching, type Node, parse, textOf } from "./sources.ts"

interface Ban {
  readonly name: string
  readonly matches: (node: Node, text: string) => boolean
  /** Files that may, and why: one, or all below a folder. The list is meant to stay short. */
  readonly allowed: { readonly [path: string]: string }
}

const names = (...globals: ReadonlyArray<string>) => (node: Node) =>
  node.type === "Identifier" && globals.includes(node["name"] as string)

const isWritten = (type: string, pattern: RegExp) => (node: Node, text: string) =>
  node.type === type && pattern.test(text)

const bans: ReadonlyArray<Ban> = [
  {
    name: "async, await and Promise",
    matches: (node) =>
      node["async"] === true || node["await"] === true || node.type === "AwaitExpression"
      || names("Promise")(node),
    allowed: {
      "src/internal/promise": "the bridge between Promises and Effects",
      "src/ai/": "the AI SDK calls, and is called, with Promises"
    }
  },
  {
    name: "try",
    matches: (node) => node.type === "TryStatement",
    allowed: {
      "src/internal/": "pure helpers turn what JavaScript throws into values",
      "src/ai/": "the AI SDK, and hooks written in JavaScript, throw"
    }
  },
  {
    name: "the wall clock",
    matches: (node, text) =>
      isWritten("MemberExpression", /^(Date|performance)\.now$/)(node, text)
      || isWritten("NewExpression", /^new Date(\(\))?$/)(node, text),
    allowed: {}
  },
  { name: "Math.random", matches: isWritten("MemberExpression", /^Math\.random$/), allowed: {} },
  { name: "console", matches: names("console"), allowed: {} },
  { name: "timers", matches: names("setTimeout", "setInterval", "setImmediate"), allowed: {} }
]

/** The nodes that exist at run time, without names that are only a property of something else. */
function* valuesOf(node: Node): Generator<Node> {
  yield node
  for (const [property, child] of childrenOf(node)) {
    const isName = (property === "property" || property === "key") && node["computed"] !== true
    if (!isName && !/^TS(Type|Interface)/.test(child.type)) {
      yield* valuesOf(child)
    }
  }
}

describe("globals", () => {
  for (const { allowed, matches, name } of bans) {
    it(`src uses ${name} only where this test allows it`, () => {
      const found = filesMatching("src/**/*.ts")
        .filter((path) => !Object.keys(allowed).some((prefix) => path.startsWith(prefix)))
        .flatMap((path) => {
          const { lineOf, program } = parse(path)
          const text = textOf(path)
          return [...valuesOf(program)]
            .filter((node) => matches(node, text.slice(node.start, node.end)))
            .map((node) => `${path}:${lineOf(node)}`)
        })
      expect([...new Set(found)]).toEqual([])
    })
  }
})
