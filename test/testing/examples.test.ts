/**
 * The examples of the documentation for two test runners. Those for vitest are tests of this project; those for Node's own
 * runner are run by it here.
 */
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root, textOf } from "../architecture/sources.ts"
import { runNodeTests } from "../support/nodeTest.ts"

const forNode: Readonly<Record<string, string>> = {
  "test/fixtures/scriptedModelExample.ts": "refunds when a person has said so",
  "test/fixtures/faultyStoreExample.ts": "sends nothing while the store is away",
  "test/fixtures/crashLabExample.ts": "charges once"
}

const forVitest = ["scriptedModel", "faultyStore", "crashLab"].map((name) => `test/testing/${name}/example.test.ts`)

describe("examples of the test kit", () => {
  it.each([...forVitest, ...Object.keys(forNode)])("are in the documentation as they are run: %s", (path) => {
    expect(textOf("docs/testing.md")).toContain(`\`\`\`ts no-run\n${textOf(path)}\`\`\``)
  })

  it.each(Object.entries(forNode))("run with Node's own test runner: %s", { timeout: 120_000 }, async (path, title) => {
    const { failed, passed } = await runNodeTests(join(root, path))
    expect(failed).toEqual([])
    expect(passed).toContain(title)
  })
})
