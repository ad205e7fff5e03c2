/** Runs a file of tests with Node's own runner. */
import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"

/** The titles of what passed and of what failed, and all that was said. */
export interface NodeTests {
  readonly passed: ReadonlyArray<string>
  readonly failed: ReadonlyArray<string>
  readonly output: string
}

export const runNodeTests = async (file: string, env: NodeJS.ProcessEnv = {}): Promise<NodeTests> => {
  const child = spawn(
    process.execPath,
    ["--conditions=chamvi-source", "--no-warnings", "--test", "--test-reporter=tap", file],
    // a child of a test of Node's runner would report to it
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env, NODE_TEST_CONTEXT: undefined } }
  )
  const output = await text(child.stdout)
  const told = (mark: string) =>
    output.split("\n").flatMap((line) => line.match(new RegExp(`^ *${mark} \\d+ - (.*)`))?.[1] ?? [])
  return { passed: told("ok"), failed: told("not ok"), output }
}
