/**
 * What a transactional call promises, whatever the database is.
 */
import { committingCases } from "./committing.ts"
import { findingCases } from "./finding.ts"
import { nestingCases } from "./nesting.ts"
import { inWorld, type OpenWorld } from "./world.ts"

export const transactionalCases = (open: OpenWorld): void => {
  committingCases(inWorld(open))
  nestingCases(inWorld(open))
  findingCases(inWorld(open))
}
