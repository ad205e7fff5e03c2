/**
 * The files of examples/ are programs: small, alone, and true to the output that stands in them. The demo, which is a
 * folder there, has tests of its own.
 */
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { databaseUrl, noPostgres } from "../support/postgres.ts"
import { linesExpectedBy, runExample } from "../../scripts/runExample.ts"
import { filesMatching, root, textOf } from "../architecture/sources.ts"

const files = filesMatching("examples/*.ts")

describe("example files", () => {
  it("are numbered, at most 80 lines long, and say what they print", () => {
    const odd = files.filter((path) =>
      !/^examples\/\d\d-[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(path)
      || textOf(path).trimEnd().split("\n").length > 80
      || linesExpectedBy(textOf(path)).length === 0
    )
    expect(odd).toEqual([])
  })

  const onPostgres = files.filter((path) => textOf(path).includes("support/database.ts"))

  const prints = async (path: string, env: NodeJS.ProcessEnv = {}) => {
    const { expected, printed } = await runExample(join(root, path), root, ["chamvi-source"], env)
    expect(printed).toEqual(expected)
  }

  it.each(files.filter((path) => !onPostgres.includes(path)))(
    "%s prints what it says",
    { timeout: 120_000 },
    (path) => prints(path)
  )

  it.skipIf(noPostgres).each(onPostgres)(
    "%s prints what it says",
    { timeout: 120_000 },
    (path) => prints(path, { DATABASE_URL: databaseUrl })
  )
})
