/**
 * Transactional calls of several processes.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { start } from "../fixtures/child.ts"
import { notesOf, transactional, type World, write } from "./world.ts"

/** A world, and how its database is named to a worker. */
export interface SharedWorld extends World {
  readonly database: string
}

export const transactionalProcesses = (
  name: string,
  there: boolean,
  open: Effect.Effect<SharedWorld, unknown, Scope.Scope>
): void => {
  const worker = (command: string, { database }: SharedWorld, ...args: ReadonlyArray<string>) =>
    start("transactionWorker.ts", command, database, ...args)

  describe.skipIf(!there)(`Transactional calls of several processes on ${name}`, () => {
    it.live(
      "leave nothing where one is killed inside of execute, and the next applies at once",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const world = yield* open
          const child = yield* worker("hang", world)
          assert.strictEqual(yield* child.line, "writing")
          yield* child.kill("SIGKILL")
          yield* child.ended
          const call = transactional(world.store, { execute: () => write(world, "whole"), whenInDoubt: "fail" })
          assert.strictEqual(yield* call, "whole")
          assert.deepStrictEqual(yield* notesOf(world), ["whole"])
          assert.deepInclude({ ...(yield* world.store.get("k")) }, { status: "recorded", attempt: 1 })
        })),
      30_000
    )

    it.live(
      "that race apply each key once, and all get its result",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const world = yield* open
          const racers = yield* Effect.forEach([1, 2, 3], () => worker("race", world, "12", "3"))
          const [first, ...others] = yield* Effect.forEach(racers, ({ line }) => line, { concurrency: "unbounded" })
          const keys = Array.from({ length: 12 }, (_, index) => `key-${index}`)
          assert.sameMembers(Object.keys(first as object), keys)
          for (const results of others) assert.deepStrictEqual(results, first)
          assert.sameMembers([...(yield* notesOf(world))], keys)
        })),
      60_000
    )
  })
}
