import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { databaseUrl, freshSchema, noPostgres } from "../support/postgres.ts"
import { runScenario } from "./chaos.ts"
import { type Database, kill, killAfterEffect } from "./disturbances.ts"
import { scenarios } from "./scenarios.ts"

const scenarioOf = (name: string) => scenarios.find((scenario) => scenario.name === name)!

/** A schema of its own on the tests' server, which stays up. */
const database = Effect.map(
  freshSchema,
  (schema): Database => ({ url: databaseUrl, schema, restart: () => Effect.die("it stays up") })
)

// what they may take on a machine that is many times slower
const seconds = 900
const timeout = (seconds + 120) * 1000

describe("chaos", () => {
  it.live(
    "convicts a tool that is no effect tool: its worker is killed behind the effect",
    () =>
      Effect.gen(function*() {
        const scenario = { ...scenarioOf("sqlite"), runs: 1, disturbance: killAfterEffect }
        const report = (unprotected: "label" | undefined) =>
          runScenario({ ...scenario, unprotected }, { seed: 1, seconds, database })
        expect((yield* report("label")).violations).toContainEqual({
          runId: "clerk-1",
          problem: "label was applied 2 times"
        })
        expect(yield* report(undefined)).toMatchObject({ violations: [], blows: 1, figures: { runs: 1, effects: 5 } })
      }),
    { timeout }
  )

  it.live.skipIf(noPostgres)(
    "kills workers of a cluster until 20 runs are done: each effect is applied once",
    () =>
      Effect.gen(function*() {
        // a lease that no live worker outlives, and locks that none loses, on a slow machine either
        const scenario = { ...scenarioOf("kill"), runs: 20, lease: 12_000, takeover: 5000, disturbance: kill(1000) }
        const { blows, figures, violations } = yield* runScenario(scenario, { seed: 1, seconds, database })
        expect(violations).toEqual([])
        expect(figures).toMatchObject({ runs: 20, effects: 100, duplicates: 0 })
        expect(blows).toBeGreaterThan(0)
      }),
    { timeout }
  )
})
