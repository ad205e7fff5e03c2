import { Effect, Result } from "effect"
import type { EffectResolution } from "../EffectResolution.ts"
import { EffectStoreError } from "../errors.ts"
import { jsonText } from "../internal/jsonCopy.ts"

/**
 * The JSON text of a resolution's result, for the stores. A result that JSON cannot carry is refused: recorded wrongly it
 * would be replayed for ever.
 */
export const encodeJson = (
  key: string,
  resolution: EffectResolution
): Effect.Effect<string | undefined, EffectStoreError> => {
  if (resolution._tag !== "Applied" || resolution.result === undefined) return Effect.undefined
  return Result.match(jsonText(resolution.result.value), {
    onSuccess: (json) => Effect.succeed(json),
    onFailure: ({ path, problem }) =>
      Effect.fail(
        new EffectStoreError({
          operation: "resolve",
          key,
          problem: `the result is not JSON (${problem} at ${path}); give it in the form that the tool's outputSchema `
            + `encodes to`
        })
      )
  })
}
