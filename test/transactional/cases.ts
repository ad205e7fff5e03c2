/**
 * What a transactional call promises, whatever the database is.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectEvent, EffectOutcomeUnknownError, EffectResolution, type IEffectStore } from "chamvi-effect"
import { Cause, Deferred, Effect, Exit, Fiber, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import {
  assertIdle,
  call,
  type CallOptions,
  ended,
  failsWith,
  failureOf,
  fork,
  memory,
  told,
  turns,
  withEvents
} from "../reconciliation/support.ts"

/** A ledger, and a table `notes (note text)` beside it; `another` is the same ledger as another process has it. */
export interface World {
  readonly sql: SqlClient.SqlClient
  readonly store: IEffectStore
  readonly another: IEffectStore
}

/** A call whose effect may use the client in context. */
export const transactional = (store: IEffectStore, options: CallOptions = {}) =>
  call(store, { transactional: true, ...options } as CallOptions)

export const notesOf = ({ sql }: World) =>
  Effect.map(
    sql<{ readonly note: string }>`SELECT note FROM notes ORDER BY note`,
    (rows) => rows.map(({ note }) => note)
  )

export const write = ({ sql }: World, note: string) => Effect.as(sql`INSERT INTO notes (note) VALUES (${note})`, note)

/** Nothing is left of the key: no row of it, and nothing in the process. */
export const untouched = Effect.fnUntraced(function*(world: World) {
  assert.deepStrictEqual(yield* notesOf(world), [])
  assert.isUndefined(yield* world.store.get("k"))
  yield* assertIdle(world.store)
})

const claimOf = (store: IEffectStore, options: { readonly tool?: string; readonly lease?: number } = {}) =>
  Effect.map(
    store.claim([{
      key: "k",
      tool: "t",
      runId: "",
      owner: "somebody",
      claimId: crypto.randomUUID(),
      lease: 3_600_000,
      fingerprint: "",
      ...options
    }]),
    ([reply]) => reply?._tag === "Claimed" ? reply.token : assert.fail("it is not granted")
  )

export const transactionalCases = (
  name: string,
  there: boolean,
  open: Effect.Effect<World, unknown, Scope.Scope>
): void => {
  const inWorld = (run: (world: World) => Effect.Effect<void, unknown, Scope.Scope>) => () =>
    Effect.scoped(Effect.flatMap(open, run))

  describe.skipIf(!there)(`A transactional call on ${name}`, () => {
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
      "lets no other effect run inside of it, on any store",
      inWorld((world) =>
        Effect.gen(function*() {
          const { store } = world
          const elsewhere = yield* memory
          const inner = { key: "inner", tool: "label", execute: () => Effect.die("it ran") }
          for (
            const nested of [
              call(store, inner),
              call(elsewhere, inner),
              transactional(store, inner),
              Effect.promise(() => Effect.runPromise(failureOf(call(elsewhere, inner)))).pipe(
                Effect.flatMap(Effect.fail)
              )
            ]
          ) {
            const error = yield* failsWith(
              transactional(store, { execute: () => Effect.andThen(write(world, "half"), nested) }),
              "EffectNestedError"
            )
            assert.deepInclude({ ...error }, { key: "inner", tool: "label", outerKey: "k" })
            yield* untouched(world)
            assert.isUndefined(yield* store.get("inner"))
            assert.isUndefined(yield* elsewhere.get("inner"))
          }
          const asked = transactional(store, { alreadyApplied: () => call(elsewhere, inner) })
          yield* failsWith(asked, "EffectNestedError")
          yield* untouched(world)
        })
      )
    )

    it.live(
      "lets none that is under way be joined inside of it",
      inWorld((world) =>
        Effect.gen(function*() {
          const elsewhere = yield* memory
          const gate = yield* Deferred.make<string>()
          const running = yield* fork(call(elsewhere, { key: "inner", execute: () => Deferred.await(gate) }))
          yield* turns
          yield* failsWith(
            transactional(world.store, { execute: () => call(elsewhere, { key: "inner" }) }),
            "EffectNestedError"
          )
          yield* Deferred.succeed(gate, "done")
          assert.strictEqual(yield* Fiber.join(running), "done")
        })
      )
    )

    it.live(
      "may have others after it, also from a fiber that outlives it",
      inWorld((world) =>
        Effect.gen(function*() {
          const elsewhere = yield* memory
          const gate = yield* Deferred.make<void>()
          const later = Effect.andThen(Deferred.await(gate), call(elsewhere, { key: "later" }))
          let fiber: Fiber.Fiber<unknown, unknown> | undefined
          const execute = () =>
            Effect.map(Effect.forkDetach(later), (forked) => {
              fiber = forked
              return "done"
            })
          yield* transactional(world.store, { execute })
          yield* Deferred.succeed(gate, undefined)
          assert.strictEqual(yield* Fiber.join(fiber!), "done")
        })
      )
    )

    it.live(
      "may run inside of an effect that is not transactional",
      inWorld((world) =>
        Effect.gen(function*() {
          const elsewhere = yield* memory
          const outer = call(elsewhere, {
            key: "outer",
            execute: () => transactional(world.store, { execute: () => write(world, "inner") })
          })
          assert.strictEqual(yield* outer, "inner")
          assert.deepStrictEqual(yield* notesOf(world), ["inner"])
        })
      )
    )

    it.live(
      "does not run in a transaction of its caller's",
      inWorld((world) =>
        Effect.gen(function*() {
          const { sql, store } = world
          const error = yield* failsWith(
            sql.withTransaction(transactional(store, { execute: () => write(world, "inside") })),
            "EffectNestedError"
          )
          assert.deepStrictEqual([error["key"], error["outerKey"]], ["k", undefined])
          yield* untouched(world)
        })
      )
    )

    it.live(
      "does not run for a program whose client is another one than the ledger's",
      inWorld((world) =>
        Effect.gen(function*() {
          const strange = yield* SqliteClient.make({ filename: ":memory:" })
          const execute = () => write(world, "elsewhere")
          const error = yield* failsWith(
            Effect.provideService(transactional(world.store, { execute }), SqlClient.SqlClient, strange),
            "EffectStoreError"
          )
          assert.include(String(error), "not the one that the ledger was made with")
          assert.deepInclude({ ...error }, { operation: "begin a transaction", key: "k", permanent: true })
          yield* untouched(world)
          yield* Effect.provideService(transactional(world.store, { execute }), SqlClient.SqlClient, world.sql)
          assert.deepStrictEqual(yield* notesOf(world), ["elsewhere"])
        })
      )
    )

    it.live(
      "keeps to its tool and its input",
      inWorld((world) =>
        Effect.gen(function*() {
          const { another, store } = world
          yield* transactional(store, { input: 1, execute: () => write(world, "one") })
          yield* failsWith(transactional(another, { tool: "other" }), "EffectKeyConflictError")
          yield* failsWith(transactional(another, { input: 2, onInputChange: "fail" }), "EffectInputChangedError")
          const events: Array<EffectEvent> = []
          assert.strictEqual(yield* withEvents(events)(transactional(another, { input: 2 })), "one")
          assert.deepStrictEqual(events.map(told), ["recorded inputChanged"])
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

    it.live(
      "records what the remote has, and runs nothing",
      inWorld((world) =>
        Effect.gen(function*() {
          const events: Array<EffectEvent> = []
          const asked = transactional(world.store, {
            alreadyApplied: () => Effect.succeed("there"),
            execute: () => Effect.die("it ran")
          })
          assert.strictEqual(yield* withEvents(events)(asked), "there")
          assert.deepStrictEqual(events.map(told), ["reconciled"])
          assert.deepInclude({ ...(yield* world.store.get("k")) }, { status: "recorded", outcome: "reconciled" })
        })
      )
    )

    describe("on a key that an attempt of another kind left", () => {
      const left = (verdict: "tried" | "inDoubt") => ({ store }: World) =>
        Effect.flatMap(claimOf(store), (token) => store.release([{ key: "k", token, verdict, cleared: false }]))

      it.live(
        "in doubt follows whenInDoubt",
        inWorld((world) =>
          Effect.gen(function*() {
            const { store } = world
            yield* left("inDoubt")(world)
            const execute = () => write(world, "again")
            yield* failsWith(transactional(store, { execute, whenInDoubt: "fail" }), "EffectInDoubtError")
            assert.deepInclude({ ...(yield* store.get("k")) }, { status: "released", doubt: "inDoubt", attempt: 1 })
            yield* failsWith(
              transactional(store, { execute, alreadyApplied: () => EffectResolution.unknown, whenInDoubt: "fail" }),
              "EffectInDoubtError"
            )
            const events: Array<EffectEvent> = []
            assert.strictEqual(yield* withEvents(events)(transactional(store, { execute })), "again")
            assert.deepStrictEqual(events.map(told), ["executed executedInDoubt"])
          })
        )
      )

      it.live(
        "in doubt asks the remote, and a failure leaves the doubt",
        inWorld((world) =>
          Effect.gen(function*() {
            const { store } = world
            yield* left("inDoubt")(world)
            const failing = transactional(store, {
              alreadyApplied: () => Effect.undefined,
              execute: () => Effect.fail({ _tag: "No" })
            })
            yield* failsWith(failing, "No")
            assert.deepInclude({ ...(yield* store.get("k")) }, { status: "released", doubt: "inDoubt", attempt: 1 })
            assert.strictEqual(yield* transactional(store, { alreadyApplied: () => Effect.succeed("there") }), "there")
          })
        )
      )

      it.live(
        "tried is applied",
        inWorld((world) =>
          Effect.gen(function*() {
            yield* left("tried")(world)
            yield* transactional(world.store, { execute: () => write(world, "now"), whenInDoubt: "fail" })
            assert.deepInclude({ ...(yield* world.store.get("k")) }, { status: "recorded", attempt: 2 })
          })
        )
      )

      it.live(
        "held without a sign of life is taken over, in doubt",
        inWorld((world) =>
          Effect.gen(function*() {
            yield* claimOf(world.store, { lease: 0 })
            yield* failsWith(transactional(world.store, { whenInDoubt: "fail" }), "EffectInDoubtError")
            const events: Array<EffectEvent> = []
            yield* withEvents(events)(transactional(world.store))
            assert.deepStrictEqual(events.map(told), ["executed takenOver executedInDoubt"])
          })
        )
      )

      it.live(
        "held waits for the record, for at most waitFor",
        inWorld((world) =>
          Effect.gen(function*() {
            const { another, store } = world
            const token = yield* claimOf(another)
            const error = yield* failsWith(transactional(store, { waitFor: 0 }), "EffectInProgressError")
            assert.strictEqual(error["owner"], "somebody")
            yield* failsWith(transactional(store, { tool: "other" }), "EffectKeyConflictError")
            const waiting = yield* fork(transactional(store, { execute: () => Effect.die("it ran") }))
            yield* Effect.sleep(20)
            assert.isFalse(ended(waiting))
            const item = {
              key: "k",
              token,
              result: `{"value":"theirs"}`,
              fingerprint: "",
              outcome: "executed"
            } as const
            yield* another.complete([item])
            assert.strictEqual(yield* Fiber.join(waiting), "theirs")
            yield* assertIdle(store, another)
          })
        ),
        20_000
      )

      it.live(
        "held, and released, is applied",
        inWorld((world) =>
          Effect.gen(function*() {
            const { another, store } = world
            const token = yield* claimOf(another)
            const waiting = yield* fork(transactional(store, { execute: () => write(world, "mine") }))
            yield* Effect.sleep(20)
            yield* another.release([{ key: "k", token, verdict: "clean", cleared: false }])
            assert.strictEqual(yield* Fiber.join(waiting), "mine")
          })
        ),
        20_000
      )
    })

    it.live(
      "answers a key whose record is still being written from memory",
      inWorld((world) =>
        Effect.gen(function*() {
          let down = true
          const store: IEffectStore = {
            ...world.store,
            complete: (items) => down ? Effect.never : world.store.complete(items)
          }
          assert.strictEqual(yield* call(store, { recordTimeout: 5, execute: () => Effect.succeed("mine") }), "mine")
          assert.strictEqual(yield* transactional(store, { execute: () => Effect.die("it ran") }), "mine")
          down = false
          yield* world.store.remove("k")
        })
      )
    )
  })
}

const failureName = (exit: Exit.Exit<unknown, unknown>): string =>
  Exit.isFailure(exit)
    ? Cause.hasInterruptsOnly(exit.cause) ? "interrupt" : String(Cause.squash(exit.cause))
    : "success"

/** The world of a database whose client and ledger the layer gives; its schema is the connection's. */
export const worldOf = (sql: SqlClient.SqlClient, options: { readonly schema?: string }) =>
  Effect.gen(function*() {
    const { another, store } = yield* Effect.all({
      store: SqlEffectStore.make(options),
      another: SqlEffectStore.make(options)
    })
    return { sql, store, another } satisfies World
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
