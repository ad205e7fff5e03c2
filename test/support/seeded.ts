/**
 * Bugs that are seeded into a store by changing the text of its statements or scripts, each with the law that it breaks.
 */
import { assert } from "@effect/vitest"
import type { EffectStore } from "chamvi-effect"
import { type LawViolation, type StoreClock, storeLaws } from "chamvi-effect/testing"
import { Cause, Effect, Exit, type Layer } from "effect"

export interface Bug {
  /** The law that does not hold any more. */
  readonly law: string
  /** Texts, and what stands in their place; each must be found. */
  readonly changes: ReadonlyArray<readonly [from: string | RegExp, to: string]>
}

/** Changes texts, and tells whether each change was made in some text. */
export const seeding = (changes: Bug["changes"]) => {
  const made = new Set<string | RegExp>()
  return {
    change: (text: string): string =>
      changes.reduce((text, [from, to]) => {
        const changed = text.replaceAll(typeof from === "string" ? from : new RegExp(from, `${from.flags}g`), to)
        if (changed !== text) made.add(from)
        return changed
      }, text),
    missed: () => changes.flatMap(([from]) => made.has(from) ? [] : [String(from)])
  }
}

/** Runs the law, which must be broken; it holds where there is no bug, as the laws' own tests show. */
export const isConvicted = Effect.fnUntraced(function*<E, R>(
  law: string,
  store: Layer.Layer<EffectStore | StoreClock, E, R>
) {
  const exit = yield* Effect.exit(Effect.provide(storeLaws[law]!, store))
  assert.isTrue(Exit.isFailure(exit), `the law "${law}" holds all the same`)
  if (Exit.isSuccess(exit)) return
  const failure = Cause.squash(exit.cause) as LawViolation | Error
  assert.include(failure.name, "LawViolation", String(failure))
})
