/**
 * What batching costs a call in time: no turn of the event loop.
 */
import { assert, describe, it } from "@effect/vitest"
import { type IEffectStore } from "chamvi-effect"
import { call, memory } from "./support.ts"
import { Effect } from "effect"

describe("A store that is worth batching", () => {
  it.effect("costs a call no turn of the event loop, alone or among others", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), batch: true }
      const settled: Array<string> = []
      yield* Effect.promise((signal) =>
        new Promise<void>((resolve) => {
          for (const key of ["a", "b", "c"]) {
            void Effect.runPromise(call(store, { key }), { signal }).then(() => settled.push(key))
          }
          setImmediate(() => resolve())
        })
      )
      assert.sameMembers(settled, ["a", "b", "c"])
    }))
})
