/**
 * What a transactional call makes of what is there: records, other callers' claims, doubt, the remote.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectResolution, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import { assertIdle, call, ended, failsWith, fork, told, withEvents } from "../reconciliation/support.ts"
import { claimOf, type InWorld, transactional, type World, write } from "./world.ts"

export const findingCases = (inWorld: InWorld): void => {
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
}
