/**
 * Runs a file of examples/ as a process of its own. What it shall print stands in it, as `// =>` lines in their order.
 */
import { execFile } from "node:child_process"
import { readFile } from "node:fs/promises"
import { promisify } from "node:util"

export interface Run {
  readonly expected: ReadonlyArray<string>
  readonly printed: ReadonlyArray<string>
}

export const linesExpectedBy = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/\/\/ => ?(.*)$/gm)].map((match) => match[1]!.trimEnd())

/** `conditions` are those that Node resolves packages under; the promise fails if the example does. */
export const runExample = async (
  file: string,
  cwd: string,
  conditions: ReadonlyArray<string>,
  env: NodeJS.ProcessEnv = {}
): Promise<Run> => {
  const flags = conditions.map((condition) => `--conditions=${condition}`)
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, file], {
    cwd,
    timeout: 120_000,
    env: { ...process.env, ...env }
  })
  return {
    expected: linesExpectedBy(await readFile(file, "utf8")),
    printed: stdout.trimEnd().split("\n").map((line) => line.trimEnd())
  }
}
