/**
 * What a transactional call promises, whatever the database is.
 */
import { describe } from "@effect/vitest"
import { committingCases } from "./committing.ts"
import { findingCases } from "./finding.ts"
import { nestingCases } from "./nesting.ts"
import { inWorld, type OpenWorld } from "./world.ts"

export const transactionalCases = (name: string, there: boolean, open: OpenWorld): void => {
  describe.skipIf(!there)(`A transactional call on ${name}`, () => {
    committingCases(inWorld(open))
    nestingCases(inWorld(open))
    findingCases(inWorld(open))
  })
}
