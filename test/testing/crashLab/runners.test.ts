/**
 * The examples of the documentation for two test runners. The one for vitest is a test of this project; the one for Node's
 * own runner is run by it here.
 */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { root, textOf } from "../../architecture/sources.ts"

const examples = ["test/testing/crashLab/example.test.ts", "test/fixtures/crashLabExample.ts"]

const [, forNode] = examples

/** Node's runner tells a parent of its own kind otherwise than people. */
const { NODE_TEST_CONTEXT: _, ...env } = process.env

describe("examples of CrashLab", () => {
  it.each(examples)("are in the documentation as they are run: %s", (path) => {
    expect(textOf("docs/testing.md")).toContain(`\`\`\`ts no-run\n${textOf(path)}\`\`\``)
  })

  it("run with Node's own test runner", { timeout: 120_000 }, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=chamvi-source", "--no-warnings", "--test", "--test-reporter=tap", join(root, forNode!)],
      { cwd: root, env }
    )
    expect(stdout).toMatch(/^# pass 1$/m)
    expect(stdout).toMatch(/^# fail 0$/m)
  })
})
