/** The crash demo on ledgers that several machines could share. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Effect } from "effect"
import { describe, expect } from "vitest"
import { it } from "@effect/vitest"
import { databaseUrl, noPostgres } from "./support/postgres.ts"
import { redisIsThere, redisServer } from "./support/redis.ts"

const root = join(import.meta.dirname, "..")

const demo = (env: NodeJS.ProcessEnv) =>
  Effect.promise(async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=chamvi-source", "examples/demo/main.ts"],
      {
        cwd: root,
        timeout: 90_000,
        env: { ...process.env, AI_MODEL: undefined, DATABASE_URL: undefined, REDIS_URL: undefined, ...env }
      }
    )
    return stdout.trimEnd().split("\n")
  })

const endsWell = (lines: ReadonlyArray<string>) => {
  expect(lines.slice(-3)).toEqual([
    "plain tool:  2 comments of the agent on the tracker",
    "effect tool: 1 comment of the agent on the tracker",
    "engine:      1 comment of the agent on the tracker"
  ])
  // a server cannot see that the holder is dead; it waits for the lease
  const effectTool = lines.slice(lines.indexOf("An effect tool"), lines.indexOf("An agent on the engine"))
  expect(effectTool.filter((line) => line.endsWith("event: reconciled, claim taken over")).length).toBe(1)
}

describe("the crash demo", () => {
  describe.skipIf(noPostgres)("on Postgres", () => {
    it.live(
      "ends with two comments of the plain tool and one of each of the others",
      () => Effect.map(demo({ DATABASE_URL: databaseUrl }), endsWell),
      90_000
    )
  })

  describe.skipIf(!redisIsThere)("on Redis", () => {
    it.live(
      "ends with two comments of the plain tool and one of each of the others",
      () =>
        Effect.flatMap(redisServer(), ({ url }) => Effect.map(demo({ REDIS_URL: url }), endsWell)).pipe(Effect.scoped),
      90_000
    )
  })
})
