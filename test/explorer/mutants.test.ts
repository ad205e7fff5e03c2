/**
 * The exploration itself: each bug that is seeded into the program or its store breaks a promise in a schedule that is
 * found, so that what passes does not have the bug.
 */
import { assert, describe, it } from "@effect/vitest"
import { explore } from "./explore.ts"
import { describeFinding, replay } from "./replay.ts"
import { mutatedProgram } from "./mutatedProgram.ts"
import { mutants } from "./mutants.ts"
import { realProgram, scenario } from "./scenarios.ts"

describe("exploration", () => {
  for (const [name, { cast = "two", change, faults, kind, ledger, program, trouble }] of Object.entries(mutants)) {
    it(`finds ${name}`, async () => {
      const at = scenario(kind, cast, {
        ...change,
        ledgerFault: ledger,
        program: program === undefined ? realProgram : await mutatedProgram(name, program)
      })
      const { finding, schedules } = explore(at, { faults, trouble: trouble && new Set(trouble) })
      if (finding === undefined) return assert.fail(`not found in ${schedules} schedules`)
      console.info(`${name}, in the ${schedules}. schedule\n${describeFinding(finding)}`)
      assert.strictEqual(replay(at, finding.schedule), finding.wrong)
      // the bug, not the scenario
      assert.isUndefined(replay(scenario(kind, cast, change), finding.schedule))
    }, 60_000)
  }
})
