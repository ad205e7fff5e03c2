/**
 * What goes wrong in the field with tools that have effects, as far as it can be said without a language model.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectOutcomeUnknownError, type IEffectStore } from "chamvi-effect"
import { Effect, Exit, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  ended,
  failsWith,
  failureOf,
  fork,
  gated,
  memory,
  told,
  turns,
  withEvents
} from "./support.ts"

/** A remote that posts comments and finds them again. */
const makeRemote = () => {
  const comments: Array<string> = []
  return {
    comments,
    post: (key: string) => Effect.sync(() => `comment ${comments.push(key)}`),
    find: (key: string) =>
      Effect.sync(() => {
        const at = comments.indexOf(key)
        return at < 0 ? undefined : `comment ${at + 1}`
      })
  }
}

describe("cases from the field", () => {
  it.effect("the same call twice in parallel, or N times in a row, applies once and answers the same", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      const execute = (key: string) =>
        Effect.tap(Effect.yieldNow, () => Effect.void).pipe(Effect.andThen(remote.post(key)))
      const parallel = yield* Effect.all(
        new Array<Effect.Effect<unknown, unknown>>(20).fill(call(store, { execute })),
        {
          concurrency: "unbounded"
        }
      )
      const later: Array<unknown> = []
      for (let i = 0; i < 20; i++) later.push(yield* call(i % 2 === 0 ? store : anotherProcess(store), { execute }))
      assert.deepStrictEqual([...new Set([...parallel, ...later])], ["comment 1"])
      assert.deepStrictEqual(remote.comments, ["k"])
    }))

  it.effect("stopping and going on with the same run applies nothing more", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      const run = Effect.forEach(["a", "b", "c"], (key) => call(store, { key, execute: remote.post }))
      const stopped = yield* fork(Effect.andThen(Effect.andThen(run, Effect.never), run))
      yield* turns
      yield* Fiber.interrupt(stopped)
      yield* run
      assert.deepStrictEqual(remote.comments, ["a", "b", "c"])
    }))

  it.effect("inputs A, B and A again under keys of their own apply twice, and the third is a replay", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      const events: Array<EffectEvent> = []
      yield* Effect.forEach(["run:A", "run:B", "run:A"], (key) => call(store, { key, execute: remote.post }))
        .pipe(withEvents(events))
      assert.deepStrictEqual(events.map(told), ["executed", "executed", "recorded"])
      // with an epoch in the key all three apply
      yield* Effect.forEach(["1:A", "2:B", "3:A"], (key) => call(store, { key, execute: remote.post }))
      assert.strictEqual(remote.comments.length, 5)
    }))

  it.effect("a retry that rewords a free text applies nothing more", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      for (const body of ["Done.", "It is done!", "done"]) {
        assert.strictEqual(
          yield* call(store, { key: "order-7", input: { id: 7, body }, execute: remote.post }),
          "comment 1"
        )
      }
      assert.strictEqual(remote.comments.length, 1)
    }))

  it.effect("a process killed after the effect and before the record is checked, and not repeated", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      // the first process: claimed, applied, gone
      yield* store.claim([{
        key: "k",
        tool: "t",
        runId: "",
        owner: "dead",
        claimId: "x",
        lease: 30_000,
        fingerprint: ""
      }])
      yield* remote.post("k")
      const log: Array<string> = []
      const second = yield* fork(call(anotherProcess(store), {
        alreadyApplied: (key) => Effect.tap(remote.find(key), () => Effect.sync(() => log.push("check"))),
        execute: () => Effect.sync(() => log.push("execute"))
      }))
      yield* TestClock.adjust(29_999)
      assert.deepStrictEqual(log, [])
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(second), "comment 1")
      assert.deepStrictEqual(log, ["check"])
      assert.strictEqual((yield* store.get("k"))?.outcome, "reconciled")
    }))

  it.effect("a request that times out although it landed is found by the next attempt", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      const posting = (key: string) => Effect.andThen(remote.post(key), Effect.never)
      const timingOut: ReadonlyArray<(key: string) => Effect.Effect<unknown, unknown>> = [
        (key) =>
          Effect.timeoutOrElse(posting(key), {
            duration: 1000,
            orElse: () => Effect.fail(new EffectOutcomeUnknownError({}))
          }),
        (key) => Effect.timeout(posting(key), 1000),
        (key) => Effect.andThen(remote.post(key), Effect.die("connection reset"))
      ]
      for (const [i, execute] of timingOut.entries()) {
        const options = { key: `k${i}`, alreadyApplied: remote.find }
        const first = yield* fork(failureOf(call(store, { ...options, execute })))
        yield* TestClock.adjust(1000)
        yield* Fiber.join(first)
        assert.strictEqual(remote.comments.length, i + 1)
        const second = counting()
        assert.strictEqual(yield* call(store, { ...options, execute: second.execute }), `comment ${i + 1}`)
        assert.deepStrictEqual([second.runs, remote.comments.length], [0, i + 1])
      }
    }))

  it.effect("fail, succeed, and call again: two executions, the third replays", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let runs = 0
      const execute = () => Effect.suspend(() => ++runs === 1 ? Effect.fail({ _tag: "Flaky" }) : Effect.succeed(runs))
      yield* failsWith(call(store, { execute }), "Flaky")
      assert.strictEqual(yield* call(store, { execute }), 2)
      assert.strictEqual(yield* call(store, { execute }), 2)
      assert.strictEqual(runs, 2)
    }))

  it.effect("an engine that runs its step again after an interruption applies once", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const remote = makeRemote()
      const step = (execute: (key: string) => Effect.Effect<unknown>) =>
        call(store, { alreadyApplied: remote.find, execute })
      const first = yield* fork(step((key) => Effect.andThen(remote.post(key), Effect.never)))
      yield* Fiber.interrupt(first)
      assert.strictEqual(yield* step(remote.post), "comment 1")
      assert.strictEqual(remote.comments.length, 1)
    }))

  it.effect("many racers in several processes apply once; each gets the result, or says that it is in progress", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const processes = [store, anotherProcess(store), anotherProcess(store)]
      const remote = makeRemote()
      const hook = gated()
      const execute = (key: string) => Effect.andThen(hook.execute(), remote.post(key))
      const racers = yield* Effect.forEach(
        new Array(30),
        (_, i) => fork(call(processes[i % 3]!, { waitFor: i % 2 === 0 ? "2 seconds" : "1 hour", execute }))
      )
      yield* TestClock.adjust("10 seconds")
      yield* hook.open()
      yield* turns
      assert.isTrue(racers.every(ended))
      const exits = yield* Effect.forEach(racers, Fiber.await)
      const answers = exits.filter(Exit.isSuccess).map(({ value }) => value)
      assert.isAtLeast(answers.length, 15)
      assert.deepStrictEqual([...new Set(answers)], ["comment 1"])
      for (const exit of exits) {
        if (Exit.isFailure(exit)) yield* failsWith(Effect.failCause(exit.cause), "EffectInProgressError")
      }
      assert.strictEqual(remote.comments.length, 1)
      yield* assertIdle(...processes)
    }))

  it.effect("two tools on one store keep their own hooks and codecs", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const dates = Schema.Date as unknown as Schema.Codec<unknown, unknown>
      const both = yield* Effect.all([
        call(store, { key: "a", tool: "a", schema: dates, execute: () => new Date(5) }),
        call(store, { key: "b", tool: "b", execute: () => "1970-01-01T00:00:00.005Z" })
      ], { concurrency: 2 })
      const replayed = yield* Effect.all([
        call(anotherProcess(store), { key: "a", tool: "a", schema: dates }),
        call(anotherProcess(store), { key: "b", tool: "b" })
      ])
      assert.deepStrictEqual([both, replayed], [both, both])
      assert.deepStrictEqual(both, [new Date(5), "1970-01-01T00:00:00.005Z"])
    }))

  it.effect("a store that is spread, so that one operation differs, works", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const seen: Array<string> = []
      const store: IEffectStore = {
        ...base,
        complete: (items) => Effect.tap(base.complete(items), () => Effect.sync(() => seen.push(items[0]!.key)))
      }
      yield* call(store)
      assert.deepStrictEqual(seen, ["k"])
      assert.strictEqual(yield* call(base), "done")
    }))
})
