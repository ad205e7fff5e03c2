/**
 * The TypeScript blocks of the documentation, and how a block with `// =>` comments becomes a program that checks itself.
 */
import { parseSync } from "vite"
import { filesMatching, isNode, type Node, textOf, walk } from "../architecture/sources.ts"

export interface Block {
  readonly path: string
  /** The line of the file that holds the first line of `code`, counted from 1. */
  readonly line: number
  readonly title: string
  readonly code: string
  /** A block that is only compiled is marked by "ts no-run". */
  readonly run: boolean
}

const fence = /^ *```ts(?<flags>[^\n`]*)\n(?<code>[\s\S]*?)^ *```/gm

const blocksOf = (path: string, text: string): ReadonlyArray<Block> =>
  [...text.matchAll(fence)].map((match, index) => {
    const before = text.slice(0, match.index)
    const title = [...before.matchAll(/\*\*Example\*\* \((.+?)\)|^#+ (.+)$/gm)].at(-1)
    return {
      path,
      line: before.split("\n").length + 1,
      title: `${index + 1}: ${title?.[1] ?? title?.[2] ?? "without a title"}`,
      code: match.groups!["code"]!,
      run: !/\bno-run\b/.test(match.groups!["flags"]!)
    }
  })

/** The doc comments of a file, everything else blanked, so that lines keep their numbers. */
const docCommentsOf = (text: string): string => {
  const kept = text.split("\n").map(() => "")
  for (const comment of text.matchAll(/^[ \t]*\/\*\*[\s\S]*?\*\//gm)) {
    const first = text.slice(0, comment.index).split("\n").length - 1
    comment[0].split("\n").forEach((line, index) => {
      kept[first + index] = line.replace(/^\s*(\/\*\*|\*\/|\* ?)/, "")
    })
  }
  return kept.join("\n")
}

export const allBlocks = (): ReadonlyArray<Block> => [
  ...filesMatching("README.md", "docs/*.md").flatMap((path) => blocksOf(path, textOf(path))),
  ...filesMatching("src/**/*.ts").flatMap((path) => blocksOf(path, docCommentsOf(textOf(path))))
]

interface Edit {
  readonly at: number
  readonly text: string
}

/** What to insert so that the value of `statement` is compared with `expected`; nothing moves to another line. */
const editsFor = (statement: Node, expected: string): ReadonlyArray<Edit> | undefined => {
  const check = (actual: Node): ReadonlyArray<Edit> => [
    { at: actual.start, text: "globalThis.checkExample((" },
    { at: actual.end, text: `), () => (${expected}))` }
  ]
  const expression = statement["expression"]
  if (statement.type === "ExpressionStatement" && isNode(expression)) {
    return check(expression)
  }
  if (statement.type === "VariableDeclaration") {
    const { init } = (statement["declarations"] as ReadonlyArray<{ readonly init: Node | null }>).at(-1)!
    return init === null ? undefined : check(init)
  }
  return undefined
}

/**
 * The block with every `statement // => value` as a comparison. The comment stands at the end of the statement's last
 * line or on a line of its own below it, and its value is an expression that sees the block's names.
 */
export const checking = (block: Block): string => {
  const { comments, errors, program } = parseSync("block.ts", block.code)
  if (errors[0] !== undefined) {
    throw new Error(`${block.path}:${block.line}: ${errors[0].message}`)
  }
  const nodes = [...walk(program as unknown as Node)]
  const edits = comments.flatMap((comment) => {
    if (!comment.value.trimStart().startsWith("=>")) {
      return []
    }
    const statement = nodes.filter((node) =>
      node.end <= comment.start && /^;?[ \t]*\n?[ \t]*$/.test(block.code.slice(node.end, comment.start))
    ).find((node) => /^(ExpressionStatement|VariableDeclaration)$/.test(node.type))
    const found = statement && editsFor(statement, comment.value.trimStart().slice(2).trim())
    if (found === undefined) {
      throw new Error(`${block.path}:${block.line}: nothing to compare stands before "//${comment.value}"`)
    }
    return found
  })
  return edits.toSorted((a, b) => b.at - a.at)
    .reduce((code, { at, text }) => code.slice(0, at) + text + code.slice(at), block.code)
}
