/**
 * Stores and remotes that answer nonsense, in every operation: a typed error or the right result, and always an end. What a
 * store says of a claim is believed only where it says all that a claim needs.
 */
import { assert, describe, it } from "@effect/vitest"
import type { IEffectStore } from "chamvi-effect"
import { Arbitrary, Cause, Effect, Exit, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { call, ended, fork, memory, tagOf } from "../reconciliation/support.ts"

/** Values that are no answer to anything. */
const nonsense: Readonly<Record<string, unknown>> = {
  "undefined": undefined,
  "null": null,
  "NaN": Number.NaN,
  "Infinity": Number.POSITIVE_INFINITY,
  "-1": -1,
  "0.5": 0.5,
  "2 to the 53": 2 ** 53,
  "a big integer": 1n,
  "a text": "nonsense",
  "an empty text": "",
  "true": true,
  "an empty list": [],
  "a list of nothing": [undefined],
  "an object": {},
  "a function": () => "ok",
  "a symbol": Symbol("nonsense"),
  "a date": new Date(0)
}
const Nonsense = Schema.Literals(Object.keys(nonsense))

/** What happens to an answer: it is replaced, one of its members is, or it is no answer of an Effect at all. */
const Mangling = Schema.Struct({
  operation: Schema.Literals(["claim", "claim", "claim", "complete", "release", "renew", "get", "changes", "resolve"]),
  how: Schema.Literals(["replaced", "item", "member", "member", "throws", "no Effect"]),
  member: Schema.Literals([
    "_tag",
    "token",
    "doubt",
    "attempt",
    "takenOver",
    "earlier",
    "age",
    "tool",
    "result",
    "outcome",
    "fingerprint",
    "owner",
    "remaining",
    "status"
  ]),
  value: Nonsense
})

const mangled = (mangling: typeof Mangling.Type, answer: unknown): unknown => {
  const value = nonsense[mangling.value]
  const inItem = (item: unknown): unknown => {
    if (mangling.how === "item" || typeof item !== "object" || item === null) return value
    const { earlier } = item as { readonly earlier?: object }
    return mangling.member === "age"
      ? { ...item, earlier: { fingerprint: "f", ...earlier, age: value } }
      : { ...item, [mangling.member]: value }
  }
  return mangling.how === "replaced" ? value : Array.isArray(answer) ? answer.map(inItem) : inItem(answer)
}

const nonsensical = (store: IEffectStore, mangling: typeof Mangling.Type, times: number): IEffectStore => {
  let left = times
  const operation = store[mangling.operation] as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>
  return {
    ...store,
    [mangling.operation]: (...args: ReadonlyArray<unknown>) => {
      if (left-- <= 0) return operation(...args)
      if (mangling.how === "throws") throw new TypeError("a store's bug")
      if (mangling.how === "no Effect") return nonsense[mangling.value]
      if (mangling.operation === "changes") return Stream.fromIterable([mangled(mangling, undefined)])
      return Effect.map(operation(...args), (answer) => mangled(mangling, answer))
    }
  }
}

const Scenario = Schema.Struct({
  mangling: Mangling,
  times: Schema.Literals([1, 2, 1_000]),
  /** What is already there of the key. */
  before: Schema.Literals(["nothing", "a record", "doubt", "another holder"]),
  settle: Schema.Boolean,
  checked: Schema.Boolean,
  policy: Schema.Literals(["fail", "execute"]),
  execution: Schema.Literals(["succeeds", "fails"])
})

const attack = (scenario: typeof Scenario.Type) =>
  Effect.gen(function*() {
    const below = yield* memory
    let applied = 0
    const execute = () =>
      scenario.execution === "fails" ? Effect.fail({ _tag: "Refused" }) : Effect.sync(() => `result ${++applied}`)
    const find = () => Effect.sync(() => applied === 0 ? undefined : `result ${applied}`)
    const options = {
      whenInDoubt: scenario.policy,
      ...scenario.settle ? { settle: "20 seconds" as const } : {},
      ...scenario.checked ? { alreadyApplied: find } : {},
      execute
    }
    if (scenario.before === "a record")
      yield* Effect.exit(call(below, { execute: () => Effect.sync(() => `result ${++applied}`) }))
    else if (scenario.before === "doubt") {
      yield* Effect.exit(call(below, {
        execute: () => Effect.die("it may have happened")
      }))
    } else if (scenario.before === "another holder") {
      yield* below.claim([{ key: "k", tool: "t", runId: "", owner: "o", claimId: "c", lease: 30_000, fingerprint: "" }])
    }
    const had = applied
    const fiber = yield* fork(call(nonsensical(below, scenario.mangling, scenario.times), options))
    for (let seconds = 0; !ended(fiber) && seconds < 600; seconds += 5) yield* TestClock.adjust("5 seconds")
    if (!ended(fiber)) {
      yield* fork(Fiber.interrupt(fiber))
      return yield* Effect.fail("it does not end")
    }
    const exit = yield* Effect.exit(Fiber.join(fiber))
    if (applied > 1) return yield* Effect.fail(`it was applied ${applied} times`)
    if (Exit.isSuccess(exit)) {
      return exit.value === `result ${applied}` || (yield* Effect.fail(`it answered ${String(exit.value)}`))
    }
    const failure = Cause.squash(exit.cause)
    const tag = String(tagOf(failure))
    if (!tag.startsWith("Effect") && tag !== "Refused") return yield* Effect.fail(`it failed with ${String(failure)}`)
    const { how, operation } = scenario.mangling
    // a claim that was not told is no claim
    if (operation === "claim" && how !== "member" && scenario.times > 1 && applied !== had) {
      return yield* Effect.fail("it was applied without a claim")
    }
    return true
  })

describe("nonsense", () => {
  it.effect("of a store is a typed error or does no harm, whichever operation says it", () =>
    Effect.gen(function*() {
      const result = yield* Arbitrary.checkEffect(
        Arbitrary.schema(Scenario),
        (scenario) => Effect.provide(attack(scenario), TestClock.layer()),
        { runs: 1_500, seed: 1, maxShrinks: 200 }
      )
      assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
    }), 120_000)
})
