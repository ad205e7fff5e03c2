/**
 * Every TypeScript block of README, docs and doc comments compiles, runs, and does what its `// =>` comments say.
 */
import { execFile } from "node:child_process"
import { mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { beforeAll, describe, expect, it } from "vitest"
import { root } from "../architecture/sources.ts"
import { allBlocks, type Block, checking } from "./blocks.ts"

const folder = join(root, ".tmp/docs")
const blocks = allBlocks().map((block, index) => ({
  ...block,
  // the number keeps names apart, the rest is for people who look into the folder
  name: `${String(index + 1).padStart(3, "0")}-${block.path.replace(/\W+/g, "-")}`
}))

const compile = async (): Promise<string> => {
  const options = { noUnusedLocals: false, rootDir: "../.." }
  await writeFile(
    join(folder, "tsconfig.json"),
    JSON.stringify({ extends: "../../tsconfig.json", compilerOptions: options, include: ["source"] })
  )
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const run = promisify(execFile)(process.execPath, [tsc, "--project", folder, "--pretty", "false"], { cwd: folder })
  return run.then(() => "", (error: { readonly stdout: string }) => error.stdout)
}

/** The compiler's messages, at the places in the documentation. */
const located = (output: string): ReadonlyArray<string> =>
  output.split("\n").filter((line) => line !== "").map((line) =>
    line.replace(/^source\/(.+)\.ts\((\d+),/, (whole, name, number) => {
      const block = blocks.find((block) => block.name === name)
      return block === undefined ? whole : `${block.path}(${block.line + Number(number) - 1},`
    })
  )

const write = (kind: "source" | "checking", of: (block: Block) => string) =>
  Promise.all(blocks.map((block) => writeFile(join(folder, kind, `${block.name}.ts`), of(block))))

beforeAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await mkdir(join(folder, "source"), { recursive: true })
  await mkdir(join(folder, "checking"))
  await write("source", (block) => block.code)
  await write("checking", (block) => block.run ? checking(block) : "")
  Object.assign(globalThis, {
    checkExample: (actual: unknown, expected: () => unknown) => {
      expect(actual).toEqual(expected())
      return actual
    }
  })
})

describe("documentation", () => {
  it("every block compiles", { timeout: 60_000 }, async () => {
    expect(located(await compile())).toEqual([])
  })

  for (const block of blocks.filter((block) => block.run)) {
    it(`${block.path} ${block.title}`, async () => {
      await import(/* @vite-ignore */ join(folder, "checking", `${block.name}.ts`))
    })
  }
})
