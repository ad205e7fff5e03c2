/**
 * What a transactional call commits, and what it leaves when it does not.
 */
import { assert, it } from "@effect/vitest"
import { type EffectEvent, EffectOutcomeUnknownError } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { assertIdle, ended, failsWith, failureOf, fork, told, turns, withEvents } from "../reconciliation/support.ts"
import { failureName, type InWorld, notesOf, transactional, untouched, write } from "./world.ts"

export const committingCases = (inWorld: InWorld): void => {
  it.live(
    "commits its write together with its record, and replays",
    inWorld((world) =>
      Effect.gen(function*() {
        const { another, store } = world
        const events: Array<EffectEvent> = []
        const execute = () =>
          Effect.tap(write(world, "done"), () =>
            // others see neither before the commit
            Effect.map(
              world.sql.onDialectOrElse({ sqlite: () => Effect.undefined, orElse: () => store.get("k") }),
              (row) => assert.isUndefined(row)
            ))
        assert.strictEqual(yield* withEvents(events)(transactional(store, { execute })), "done")
        assert.strictEqual(yield* withEvents(events)(transactional(store, { execute })), "done")
        assert.strictEqual(yield* withEvents(events)(transactional(another, { execute })), "done")
        assert.deepStrictEqual(yield* notesOf(world), ["done"])
        assert.deepStrictEqual(events.map(told), ["executed", "recorded", "recorded"])
        const row = yield* store.get("k")
        assert.deepInclude({ ...row }, {
          status: "recorded",
          outcome: "executed",
          doubt: "none",
          attempt: 1,
          tool: "t"
        })
        yield* assertIdle(store, another)
      })
    )
  )

  const failures: Record<string, Effect.Effect<never, unknown>> = {
    fails: Effect.fail("no"),
    dies: Effect.die("no"),
    "does not know": Effect.fail(new EffectOutcomeUnknownError({ cause: "no" })),
    "interrupts itself": Effect.interrupt
  }
  for (const [how, failure] of Object.entries(failures)) {
    it.live(
      `that ${how} is rolled back, and leaves no doubt`,
      inWorld((world) =>
        Effect.gen(function*() {
          const { store } = world
          const exit = yield* Effect.exit(
            transactional(store, { execute: () => Effect.andThen(write(world, "half"), failure) })
          )
          const expected = yield* Effect.exit(failure)
          assert.isTrue(Exit.isFailure(exit))
          assert.strictEqual(failureName(exit), failureName(expected))
          yield* untouched(world)
          const strict = transactional(store, { execute: () => write(world, "whole"), whenInDoubt: "fail" })
          assert.strictEqual(yield* strict, "whole")
          assert.deepStrictEqual(yield* notesOf(world), ["whole"])
        })
      )
    )
  }

  it.live(
    "gives its failure as the identical value, also to those who joined",
    inWorld(({ store }) =>
      Effect.gen(function*() {
        const failure = { no: "way" }
        const calls = Array.from(
          { length: 3 },
          () => failureOf(transactional(store, { execute: () => Effect.delay(Effect.fail(failure), 5) }))
        )
        for (const seen of yield* Effect.all(calls, { concurrency: "unbounded" })) assert.strictEqual(seen, failure)
      })
    )
  )

  it.live(
    "is shared by the callers of a process, who hear of it after its commit",
    inWorld((world) =>
      Effect.gen(function*() {
        const { store } = world
        const events: Array<EffectEvent> = []
        const gate = yield* Deferred.make<void>()
        const entered = yield* Deferred.make<void>()
        const execute = () =>
          Effect.andThen(
            Deferred.succeed(entered, undefined),
            Effect.andThen(Deferred.await(gate), write(world, "one"))
          )
        const callers = yield* Effect.forEach(
          [1, 2, 3],
          () => fork(withEvents(events)(Effect.tap(transactional(store, { execute }), () => notesOf(world))))
        )
        yield* Deferred.await(entered)
        yield* turns
        assert.isTrue(callers.every((fiber) => !ended(fiber)))
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(yield* Effect.forEach(callers, Fiber.join), ["one", "one", "one"])
        assert.deepStrictEqual(yield* notesOf(world), ["one"])
        assert.deepStrictEqual(events.map(told).sort(), ["executed", "joined", "joined"])
      })
    )
  )

  it.live(
    "is rolled back when its last caller leaves, who waits for that and for finalizers",
    inWorld((world) =>
      Effect.gen(function*() {
        const { store } = world
        const entered = yield* Deferred.make<void>()
        let finalized = false
        const execute = () =>
          write(world, "half").pipe(
            Effect.andThen(Deferred.succeed(entered, undefined)),
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.delay(Effect.sync(() => void (finalized = true)), 5))
          )
        const events: Array<EffectEvent> = []
        const [one, two] = [
          yield* fork(withEvents(events)(transactional(store, { execute }))),
          yield* fork(withEvents(events)(transactional(store, { execute })))
        ]
        yield* Deferred.await(entered)
        yield* Fiber.interrupt(one)
        assert.isFalse(finalized)
        yield* Fiber.interrupt(two)
        assert.isTrue(finalized)
        assert.deepStrictEqual(events.map(told), ["interrupted", "interrupted"])
        yield* untouched(world)
      })
    )
  )

  it.live(
    "commits where its execute cannot be interrupted, though its last caller left",
    inWorld((world) =>
      Effect.gen(function*() {
        const { store } = world
        const entered = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        const execute = () =>
          write(world, "kept").pipe(
            Effect.tap(() => Deferred.succeed(entered, undefined)),
            Effect.tap(() => Deferred.await(gate)),
            Effect.uninterruptible
          )
        const caller = yield* fork(transactional(store, { execute }))
        yield* Deferred.await(entered)
        const leaving = yield* fork(Fiber.interrupt(caller))
        yield* turns
        assert.isFalse(ended(leaving))
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(leaving)
        assert.deepStrictEqual(yield* notesOf(world), ["kept"])
        assert.strictEqual(yield* transactional(store, { execute: () => Effect.die("twice") }), "kept")
      })
    )
  )

  it.live(
    "takes the program's own transactions as savepoints",
    inWorld((world) =>
      Effect.gen(function*() {
        const { sql, store } = world
        const execute = () =>
          Effect.gen(function*() {
            yield* write(world, "outer")
            yield* sql.withTransaction(write(world, "kept"))
            yield* Effect.exit(sql.withTransaction(Effect.andThen(write(world, "undone"), Effect.fail("no"))))
            return "done"
          })
        assert.strictEqual(yield* transactional(store, { execute }), "done")
        assert.deepStrictEqual(yield* notesOf(world), ["kept", "outer"])
      })
    )
  )

  it.live(
    "applies once though its result cannot be recorded, and asks the remote for one",
    inWorld((world) =>
      Effect.gen(function*() {
        const { store } = world
        const execute = () => Effect.as(write(world, "one"), 1n)
        yield* failsWith(transactional(store, { execute }), "EffectResultUnavailableError")
        yield* failsWith(transactional(store, { execute }), "EffectResultUnavailableError")
        assert.deepStrictEqual(yield* notesOf(world), ["one"])
        assert.strictEqual(
          yield* transactional(store, { execute, alreadyApplied: () => Effect.succeed("found") }),
          "found"
        )
        assert.strictEqual(yield* transactional(store, { execute }), "found")
      })
    )
  )

  it.live(
    "carries results that a schema encodes",
    inWorld(({ another, store }) =>
      Effect.gen(function*() {
        const schema = Schema.Date as unknown as Schema.Codec<unknown, unknown>
        const execute = () => Effect.succeed(new Date(0))
        assert.deepStrictEqual(yield* transactional(store, { schema, execute }), new Date(0))
        assert.deepStrictEqual(yield* transactional(another, { schema }), new Date(0))
      })
    )
  )
}
