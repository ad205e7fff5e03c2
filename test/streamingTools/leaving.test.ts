/**
 * Readers of effect tools that stream: those who leave, and those who are slow.
 */
import { assert, describe, it } from "@effect/vitest"
import { ToolContext } from "chamvi-effect"
import { Effect, Exit, Fiber, Latch, Stream } from "effect"
import { entry, gated, layers, streaming } from "./effectToolSupport.ts"
import { ended, fork, next, read, settled, turns } from "./support.ts"

describe("An effect tool that streams", () => {
  describe("whose reader leaves", () => {
    it.effect("goes on for those who joined", () =>
      Effect.gen(function*() {
        const gate = yield* Latch.make()
        const { call, seen } = yield* streaming(() => gated(gate, "a", "b", "c"))
        const first = call()
        yield* next(first)
        const joiner = yield* fork(read(call()))
        yield* turns
        yield* Effect.promise(() => first.return!())
        assert.strictEqual(yield* next(first), "done")
        yield* gate.open
        assert.deepStrictEqual(yield* Fiber.join(joiner), { values: ["c"], end: "done" })
        assert.strictEqual(seen.runs, 1)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("is interrupted where nobody else waits; leaving waits for its finalizers, and the key is in doubt", () =>
      Effect.gen(function*() {
        const [closing, close] = [yield* Latch.make(), yield* Latch.make()]
        const { call } = yield* streaming(() =>
          Stream.concat(Stream.succeed("a"), Stream.never).pipe(
            Stream.ensuring(Effect.andThen(closing.open, close.await))
          )
        )
        const iterator = call()
        assert.strictEqual(yield* next(iterator), "a")
        const leaving = yield* fork(Effect.promise(() => iterator.return!()))
        yield* closing.await
        yield* turns
        assert.isFalse(ended(leaving))
        yield* close.open
        yield* Fiber.join(leaving)
        assert.strictEqual((yield* entry())!.doubt, "inDoubt")
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("by an abort gets its reason, and the Stream is interrupted while nobody reads", () =>
      Effect.gen(function*() {
        let closed = 0
        const { call } = yield* streaming(() =>
          Stream.ensuring(Stream.concat(Stream.make("a", "b"), Stream.never), Effect.sync(() => closed++))
        )
        const controller = new AbortController()
        const iterator = call(controller.signal)
        assert.strictEqual(yield* next(iterator), "a")
        yield* turns
        controller.abort("enough")
        yield* turns
        assert.strictEqual(closed, 1)
        // what was not read yet is not wanted any more
        assert.deepStrictEqual(yield* settled(() => iterator.next()), Exit.fail("enough"))
        assert.strictEqual((yield* entry())!.doubt, "inDoubt")
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("by the run's own signal gets its reason", () =>
      Effect.gen(function*() {
        const controller = new AbortController()
        const { call } = yield* Effect.provide(
          streaming(() => Stream.concat(Stream.succeed("a"), Stream.never)),
          ToolContext.layer({ runId: "run-1", signal: controller.signal })
        )
        const iterator = call()
        assert.strictEqual(yield* next(iterator), "a")
        controller.abort("stopped")
        assert.deepStrictEqual(yield* settled(() => iterator.next()), Exit.fail("stopped"))
        assert.deepStrictEqual(yield* settled(() => call().next()), Exit.fail("stopped"))
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("during an uninterruptible last step has its value recorded all the same", () =>
      Effect.gen(function*() {
        const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
        const { call, seen } = yield* streaming(() =>
          Stream.concat(
            Stream.succeed("a"),
            Stream.fromEffect(Effect.uninterruptible(Effect.as(Effect.andThen(reached.open, gate.await), "applied")))
          ).pipe(Stream.map((text) => `${text}!`), Stream.mapEffect((text) => Effect.succeed(text)))
        )
        const iterator = call()
        yield* next(iterator)
        yield* reached.await
        const leaving = yield* fork(Effect.promise(() => iterator.return!()))
        yield* turns
        yield* gate.open
        yield* Fiber.join(leaving)
        assert.strictEqual((yield* entry())!.result, `{"value":"applied!"}`)
        assert.deepStrictEqual(yield* read(call()), { values: ["applied!"], end: "done" })
        assert.strictEqual(seen.runs, 1)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("is cut between steps that are uninterruptible, and does not run on to its end", () =>
      Effect.gen(function*() {
        const [reached, gate] = [yield* Latch.make(), yield* Latch.make()]
        let steps = 0
        const { call } = yield* streaming(() =>
          Stream.fromIterable(Array.from({ length: 100 }, (_, i) => i), { chunkSize: 1 }).pipe(
            Stream.mapEffect((i) =>
              Effect.uninterruptible(
                Effect.gen(function*() {
                  yield* reached.open
                  yield* gate.await
                  yield* Effect.yieldNow
                  steps++
                  return i
                })
              )
            )
          )
        )
        const controller = new AbortController()
        const iterator = call(controller.signal)
        const reading = yield* fork(read(iterator))
        yield* reached.await
        controller.abort("enough")
        yield* gate.open
        assert.strictEqual((yield* Fiber.join(reading)).end, "enough")
        assert.isAtMost(steps, 2)
        assert.strictEqual((yield* entry())!.doubt, "inDoubt")
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("because the wrap's scope closes ends, and a later call is refused", () =>
      Effect.gen(function*() {
        const { call, iterator } = yield* Effect.scoped(Effect.gen(function*() {
          const { call } = yield* streaming(() => Stream.concat(Stream.succeed("a"), Stream.never))
          const iterator = call()
          yield* next(iterator)
          return { call, iterator }
        }))
        assert.isTrue(Exit.isFailure(yield* settled(() => iterator.next())))
        assert.include(String((yield* read(call())).end), "after the scope of its wrap had closed")
      }).pipe(Effect.provide(layers)))
  })

  describe("and its reader's pace", () => {
    it.effect("shows a reader that keeps up every value, also where all come at once", () =>
      Effect.gen(function*() {
        const all = Array.from({ length: 1000 }, (_, i) => i)
        const { call } = yield* streaming(() => Stream.fromIterable(all))
        assert.deepStrictEqual(yield* read(call()), { values: all, end: "done" })
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("never waits for a slow reader, who gets the newest values and always the last one", () =>
      Effect.gen(function*() {
        const all = Array.from({ length: 1000 }, (_, i) => i)
        const { call } = yield* streaming(() => Stream.fromIterable(all))
        const iterator = call()
        assert.strictEqual(yield* next(iterator), 0)
        assert.deepStrictEqual((yield* read(call())).values, [999])
        assert.strictEqual((yield* entry())!.status, "recorded")
        const { end, values } = yield* read(iterator)
        assert.strictEqual(end, "done")
        assert.deepStrictEqual(values, all.slice(-64))
      }).pipe(Effect.scoped, Effect.provide(layers)))
  })
})
