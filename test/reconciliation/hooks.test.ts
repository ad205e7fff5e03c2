/**
 * What hooks may answer, and what happens when they do not answer at all.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectResolution, type IEffectStore } from "chamvi-effect"
import { Cause, Effect, Exit, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  failsWith,
  failureOf,
  fork,
  gated,
  memory,
  withLogs
} from "./support.ts"

const boom = { _tag: "Boom" }
const thrown = new Error("thrown")

const failing: ReadonlyArray<readonly [name: string, hook: () => unknown, failure: unknown]> = [
  ["fails", () => Effect.fail(boom), boom],
  ["dies", () => Effect.die(thrown), thrown],
  [
    "throws",
    () => {
      throw thrown
    },
    thrown
  ],
  ["rejects", () => Promise.reject(thrown), thrown],
  ["answers an Effect that throws", () =>
    Effect.sync(() => {
      throw thrown
    }), thrown]
]

const hooks = ["execute", "alreadyApplied"] as const

/** What the hook answers, as an Effect. */
const asEffect = (hook: () => unknown): Effect.Effect<unknown> =>
  Effect.suspend(() => {
    const answer = hook()
    return Effect.isEffect(answer)
      ? answer as Effect.Effect<unknown>
      : Effect.promise(() => answer as Promise<unknown>)
  })

const doubtOf = (store: IEffectStore) => Effect.map(store.get("k"), (row) => `${row?.status} ${row?.doubt}`)

describe("reconciliation", () => {
  it.effect("a failing hook records nothing and a later call applies", () =>
    Effect.gen(function*() {
      for (const [how, hook, failure] of failing) {
        for (const name of hooks) {
          const store = yield* memory
          assert.strictEqual(yield* failureOf(call(store, { [name]: hook })), failure, how)
          yield* assertIdle(store)
          assert.isUndefined((yield* store.get("k"))?.result)
          const later = counting("later")
          assert.strictEqual(yield* call(store, { execute: later.execute }), "later", how)
          assert.strictEqual(later.runs, 1)
        }
      }
    }))

  it.effect("every caller gets the identical failure", () =>
    Effect.gen(function*() {
      for (const [how, hook, failure] of failing) {
        for (const name of hooks) {
          const store = yield* memory
          const first = gated()
          const callers = yield* Effect.forEach([1, 2, 3], () =>
            fork(call(store, { [name]: () => Effect.andThen(first.execute(), asEffect(hook)) })))
          yield* first.open()
          const exits = yield* Effect.forEach(callers, Fiber.await)
          for (const exit of exits) {
            assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === failure, how)
            assert.strictEqual(Exit.isFailure(exit) && exit.cause, Exit.isFailure(exits[0]!) && exits[0].cause)
          }
          assert.strictEqual(first.runs, 1)
        }
      }
    }))

  it.effect("no hook is retried", () =>
    Effect.gen(function*() {
      for (const [how, hook] of failing) {
        for (const name of hooks) {
          const store = yield* memory
          let runs = 0
          const once = () => {
            runs++
            return hook()
          }
          yield* failureOf(call(store, { [name]: once }))
          yield* TestClock.adjust("10 minutes")
          assert.strictEqual(runs, 1, how)
        }
      }
    }))

  it.effect("a failing check runs no execute and leaves an untouched key untouched", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      yield* failsWith(call(store, { alreadyApplied: () => Effect.fail(boom), execute: hook.execute }), "Boom")
      assert.strictEqual(hook.runs, 0)
      assert.strictEqual(yield* doubtOf(store), "released none")
    }))

  it.effect("alreadyApplied answers a result, undefined or a resolution", () =>
    Effect.gen(function*() {
      const cases: ReadonlyArray<readonly [answer: unknown, result: unknown, executed: number]> = [
        ["found", "found", 0],
        [null, null, 0],
        [false, false, 0],
        [0, 0, 0],
        ["", "", 0],
        [undefined, "done", 1],
        [EffectResolution.applied("found"), "found", 0],
        [EffectResolution.applied(undefined), undefined, 0],
        [EffectResolution.notApplied, "done", 1],
        [EffectResolution.unknown, "done", 1]
      ]
      for (const [answer, result, executed] of cases) {
        for (const form of [() => answer, () => Effect.succeed(answer), () => Promise.resolve(answer)]) {
          const store = yield* memory
          const hook = counting()
          const check = counting(answer)
          const options = { alreadyApplied: form, execute: hook.execute }
          assert.strictEqual(yield* call(store, options), result)
          assert.strictEqual(yield* call(anotherProcess(store), { alreadyApplied: check.execute }), result)
          assert.deepStrictEqual([hook.runs, check.runs], [executed, 0])
        }
      }
    }))

  it.effect("applied without a result is recorded as applied, and unavailable", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      const check = { alreadyApplied: () => EffectResolution.applied(), execute: hook.execute }
      yield* failsWith(call(store, check), "EffectResultUnavailableError")
      yield* failsWith(call(anotherProcess(store), { execute: hook.execute }), "EffectResultUnavailableError")
      assert.strictEqual((yield* store.get("k"))?.outcome, "reconciled")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("a Promise of alreadyApplied is awaited", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const { promise, resolve } = Promise.withResolvers<unknown>()
      const hook = counting()
      const fiber = yield* fork(call(store, { alreadyApplied: () => promise, execute: hook.execute }))
      resolve("found")
      assert.strictEqual(yield* Fiber.join(fiber), "found")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("a nonsense answer of alreadyApplied fails and records nothing", () =>
    Effect.gen(function*() {
      const cycle: Array<unknown> = []
      cycle.push(cycle)
      const nonsense: ReadonlyArray<unknown> = [
        Option.none(),
        Option.some("found"),
        Effect.succeed(Effect.succeed("found")),
        Promise.resolve(Effect.succeed("found")),
        EffectResolution.applied(10n),
        () => "found",
        Symbol("found"),
        10n,
        Number.NaN,
        new Map(),
        new Set(),
        cycle
      ]
      for (const answer of nonsense) {
        const store = yield* memory
        const hook = counting()
        yield* failureOf(call(store, { alreadyApplied: () => answer, execute: hook.execute }))
        assert.strictEqual(hook.runs, 0)
        assert.strictEqual(yield* doubtOf(store), "released none")
      }
    }))

  it.effect("an Option that is the result is told by an explicit applied", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const schema = Schema.Option(Schema.String) as unknown as Schema.Codec<unknown, unknown>
      const hook = counting()
      const found = { schema, alreadyApplied: () => EffectResolution.applied(Option.some("x")), execute: hook.execute }
      assert.deepStrictEqual(yield* call(store, found), Option.some("x"))
      assert.deepStrictEqual(yield* call(anotherProcess(store), found), Option.some("x"))
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("a nonsense answer of execute is not taken for a result", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* failureOf(call(store, { execute: () => Effect.succeed(Effect.succeed("x")) }))
      assert.strictEqual(yield* doubtOf(store), "released inDoubt")
    }))

  it.effect("a Promise and an async iterable of execute are recorded", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const answers: ReadonlyArray<() => unknown> = [
        () => "last",
        () => Promise.resolve("last"),
        async function*() {
          yield "first"
          yield "last"
        },
        () => Effect.succeed("last"),
        () => Stream.make("first", "last")
      ]
      for (const execute of answers) {
        const store = yield* memory
        assert.strictEqual(yield* withLogs(lines)(call(store, { execute })), "last")
        assert.strictEqual(yield* call(anotherProcess(store), { execute: () => "again" }), "last")
      }
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "streaming")
    }))

  it.effect("both hooks get the key, verbatim", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const seen: Array<string> = []
      const note = (key: string) => Effect.sync(() => void seen.push(key))
      yield* call(store, { key: " a:%\n ", alreadyApplied: note, execute: note })
      assert.deepStrictEqual(seen, [" a:%\n ", " a:%\n "])
    }))

  it.effect("each hook has a scope of its own that closes before the record is written", () =>
    Effect.gen(function*() {
      const memoryStore = yield* memory
      const log: Array<string> = []
      const note = (what: string) => Effect.sync(() => void log.push(what))
      const store: IEffectStore = {
        ...memoryStore,
        complete: (items) => Effect.andThen(note("record"), memoryStore.complete(items))
      }
      const hook = (name: string, answer: unknown) => () =>
        Effect.as(Effect.acquireRelease(note(`open ${name}`), () => note(`close ${name}`)), answer)
      yield* call(store, { alreadyApplied: hook("check", undefined), execute: hook("execute", "x") })
      assert.deepStrictEqual(log, ["open check", "close check", "open execute", "close execute", "record"])
    }))

  it.effect("a hook that never ends holds its key, alive, for as long as somebody waits", () =>
    Effect.gen(function*() {
      for (const name of ["execute", "alreadyApplied"] as const) {
        const store = yield* memory
        const fiber = yield* fork(call(store, { [name]: () => Effect.never }))
        yield* TestClock.adjust("1 hour")
        yield* failsWith(
          Effect.andThen(call(anotherProcess(store), { waitFor: 0 }), Effect.void),
          "EffectInProgressError"
        )
        yield* Fiber.interrupt(fiber)
        yield* assertIdle(store)
        assert.strictEqual(yield* doubtOf(store), name === "execute" ? "released inDoubt" : "released none")
      }
    }))
})
