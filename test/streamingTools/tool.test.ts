/**
 * `tool` with `streaming: true`, called as the AI SDK calls it.
 */
import { assert, describe, it } from "@effect/vitest"
import { tool, ToolResultError } from "chamvi-effect"
import { Context, Data, Effect, Exit, Fiber, Latch, Logger, References, Schema, SchemaGetter, Stream } from "effect"
import { ended, fork, next, options, read, settled, type Step, turns } from "./support.ts"

const empty = Schema.Struct({})

class Refused extends Data.TaggedError("Refused")<{ readonly by: string }> {}
class Words extends Context.Service<Words, ReadonlyArray<string>>()("test/Words") {}

/** A tool that gives 1, 2, 3 one at a time, and counts. */
const counting = Effect.gen(function*() {
  const seen = { started: 0, pulled: 0, closed: 0 }
  const made = yield* tool({
    streaming: true,
    inputSchema: empty,
    execute: () => {
      seen.started++
      return Stream.fromIterable([1, 2, 3], { chunkSize: 1 }).pipe(
        Stream.tap(() => Effect.sync(() => seen.pulled++)),
        Stream.ensuring(Effect.sync(() => seen.closed++))
      )
    }
  })
  return { made, seen }
})

describe("A tool that streams", () => {
  it.effect("gives its values in JSON form as they come, with an input that an Effect decodes", () =>
    Effect.gen(function*() {
      const gate = yield* Latch.make()
      const Slow = Schema.String.pipe(Schema.decodeTo(Schema.String, {
        decode: SchemaGetter.transformEffect((text: string) => Effect.as(Effect.yieldNow, `${text}!`)),
        encode: SchemaGetter.transform((text: string) => text.slice(0, -1))
      }))
      const made = yield* tool({
        streaming: true,
        inputSchema: Schema.Struct({ text: Slow }),
        outputSchema: Schema.Struct({ at: Schema.Date, text: Schema.String }),
        execute: ({ text }) =>
          Stream.concat(
            Stream.succeed({ at: new Date(0), text }),
            Stream.fromEffect(Effect.as(gate.await, { at: new Date(1), text }))
          )
      })
      const iterator = made.execute({ text: "hi" }, options())
      assert.deepStrictEqual(yield* next(iterator), { at: "1970-01-01T00:00:00.000Z", text: "hi!" })
      yield* gate.open
      assert.deepStrictEqual(yield* next(iterator), { at: "1970-01-01T00:00:00.001Z", text: "hi!" })
      assert.strictEqual(yield* next(iterator), "done")
      assert.strictEqual(yield* next(iterator), "done")
    }))

  it.effect("runs nothing before the first next", () =>
    Effect.gen(function*() {
      const { made, seen } = yield* counting
      const iterator = made.execute({}, options())
      yield* turns
      assert.strictEqual(seen.started, 0)
      assert.strictEqual(yield* next(iterator), 1)
      assert.strictEqual(seen.started, 1)
    }))

  it.effect("is pulled no faster than it is read", () =>
    Effect.gen(function*() {
      const { made, seen } = yield* counting
      const iterator = made.execute({}, options())
      for (const value of [1, 2, 3]) {
        assert.strictEqual(yield* next(iterator), value)
        yield* turns
        assert.deepStrictEqual([seen.pulled, seen.closed], [value, 0])
      }
      assert.strictEqual(yield* next(iterator), "done")
      assert.strictEqual(seen.closed, 1)
    }))

  it.effect("answers several nexts at once in their order", () =>
    Effect.gen(function*() {
      const { made } = yield* counting
      const iterator = made.execute({}, options())
      const steps = yield* Effect.promise(() => Promise.all(Array.from({ length: 5 }, () => iterator.next())))
      assert.deepStrictEqual(steps.map((step) => step.done === true ? "done" : step.value), [1, 2, 3, "done", "done"])
    }))

  it.effect("has no value where the Stream has none", () =>
    Effect.gen(function*() {
      const made = yield* tool({ streaming: true, inputSchema: empty, execute: () => Stream.empty })
      assert.deepStrictEqual(yield* read(made.execute({}, options())), { values: [], end: "done" })
    }))

  it.effect("fails with the identical value, after the values before it", () =>
    Effect.gen(function*() {
      const refused = new Refused({ by: "remote" })
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.concat(Stream.make(1, 2), Stream.fail(refused))
      })
      const iterator = made.execute({}, options())
      const { end, values } = yield* read(iterator)
      assert.deepStrictEqual(values, [1, 2])
      assert.strictEqual(end, refused)
      assert.strictEqual(yield* next(iterator), "done")
    }))

  it.effect("fails with what execute throws, and with a Stream's defect", () =>
    Effect.gen(function*() {
      const thrown = new Error("thrown")
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: (): Stream.Stream<number> => {
          throw thrown
        }
      })
      assert.strictEqual((yield* read(made.execute({}, options()))).end, thrown)
      const dying = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.concat(Stream.make(1), Stream.die(thrown))
      })
      assert.deepStrictEqual(yield* read(dying.execute({}, options())), { values: [1], end: thrown })
    }))

  it.effect("fails on a value that does not encode, and closes the Stream", () =>
    Effect.gen(function*() {
      let closed = 0
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        outputSchema: Schema.Struct({ n: Schema.Int }),
        execute: () => Stream.ensuring(Stream.make({ n: 1 }, { n: 0.5 }, { n: 2 }), Effect.sync(() => closed++))
      })
      const { end, values } = yield* read(made.execute({}, options()))
      assert.deepStrictEqual(values, [{ n: 1 }])
      assert.instanceOf(end, ToolResultError)
      assert.strictEqual(closed, 1)
    }))

  it.effect("is interrupted by an abort while nobody reads, and the reader gets the reason", () =>
    Effect.gen(function*() {
      const { made, seen } = yield* counting
      const controller = new AbortController()
      const iterator = made.execute({}, options(controller.signal))
      assert.strictEqual(yield* next(iterator), 1)
      const reason = new Error("enough")
      controller.abort(reason)
      yield* turns
      assert.strictEqual(seen.closed, 1)
      assert.deepStrictEqual(yield* settled(() => iterator.next()), Exit.fail(reason))
      assert.strictEqual(yield* next(iterator), "done")
      assert.strictEqual(seen.pulled, 1)
    }))

  it.effect("gives an abort's reason when the Stream's finalizers are done, and not before", () =>
    Effect.gen(function*() {
      const [waiting, closing, close] = [yield* Latch.make(), yield* Latch.make(), yield* Latch.make()]
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () =>
          Stream.fromEffect(Effect.andThen(waiting.open, Effect.never)).pipe(
            Stream.ensuring(Effect.andThen(closing.open, close.await))
          )
      })
      const controller = new AbortController()
      const iterator = made.execute({}, options(controller.signal))
      const reading = yield* fork(settled(() => iterator.next()))
      yield* waiting.await
      controller.abort("enough")
      yield* closing.await
      yield* turns
      assert.isFalse(ended(reading))
      yield* close.open
      assert.deepStrictEqual(yield* Fiber.join(reading), Exit.fail("enough"))
    }))

  it.effect("runs nothing where the signal is aborted already", () =>
    Effect.gen(function*() {
      const { made, seen } = yield* counting
      const iterator = made.execute({}, options(AbortSignal.abort("too late")))
      assert.deepStrictEqual(yield* settled(() => iterator.next()), Exit.fail("too late"))
      assert.strictEqual(seen.started, 0)
    }))

  it.effect("is interrupted where its reader leaves, which waits for the finalizers", () =>
    Effect.gen(function*() {
      const [closing, close] = [yield* Latch.make(), yield* Latch.make()]
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.ensuring(Stream.make(1, 2), Effect.andThen(closing.open, close.await))
      })
      const iterator = made.execute({}, options())
      yield* next(iterator)
      const leaving = yield* fork(settled<Step>(() => iterator.return!()))
      yield* closing.await
      yield* turns
      assert.isFalse(ended(leaving))
      yield* close.open
      assert.deepStrictEqual(yield* Fiber.join(leaving), Exit.succeed<Step>({ done: true, value: undefined }))
      assert.strictEqual(yield* next(iterator), "done")
    }))

  it.effect("ends the nexts that wait when its reader leaves", () =>
    Effect.gen(function*() {
      const waiting = yield* Latch.make()
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.fromEffect(Effect.andThen(waiting.open, Effect.never))
      })
      const iterator = made.execute({}, options())
      const reading = yield* fork(next(iterator))
      yield* waiting.await
      yield* Effect.promise(() => iterator.return!())
      assert.strictEqual(yield* Fiber.join(reading), "done")
    }))

  it.effect("never starts where its reader leaves before the first next", () =>
    Effect.gen(function*() {
      const { made, seen } = yield* counting
      const iterator = made.execute({}, options())
      yield* Effect.promise(() => iterator.return!())
      assert.strictEqual(yield* next(iterator), "done")
      assert.strictEqual(seen.started, 0)
    }))

  it.effect("tells of a cleanup that failed after its reader left", () => {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ message }) => void logged.push(message))
    return Effect.gen(function*() {
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () => Stream.ensuring(Stream.make(1, 2), Effect.die("cleanup"))
      })
      const iterator = made.execute({}, options())
      yield* next(iterator)
      yield* Effect.promise(() => iterator.return!())
      assert.lengthOf(logged, 1)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("uses the services of where it was made, and the References of the fiber that calls", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        streaming: true,
        inputSchema: empty,
        execute: () =>
          Stream.unwrap(
            Effect.map(Words, (words) =>
              Stream.mapEffect(Stream.fromIterable(words), (word) =>
                Effect.map(References.MinimumLogLevel, (level) =>
                  `${word} ${level}`)))
          )
      }).pipe(Effect.provideService(Words, ["a", "b"]))
      // called inside of the fiber, and read outside of it
      const iterator = yield* Effect.provideService(
        Effect.sync(() => made.execute({}, options())),
        References.MinimumLogLevel,
        "Error"
      )
      assert.deepStrictEqual((yield* read(iterator)).values, ["a Error", "b Error"])
    }))

  it.effect("does not tell the AI SDK of the flag", () =>
    Effect.gen(function*() {
      const { made } = yield* counting
      assert.notProperty(made, "streaming")
    }))

  describe("written in JavaScript", () => {
    const answering = (execute: () => unknown) =>
      Effect.flatMap(
        tool({ streaming: true, inputSchema: empty, execute: execute as () => Stream.Stream<number> }),
        (made) => read(made.execute({}, options()))
      )

    it.effect("may answer an async iterable, a value, an Effect or a Promise", () =>
      Effect.gen(function*() {
        const generator = async function*() {
          yield 1
          yield 2
        }
        assert.deepStrictEqual(yield* answering(generator), { values: [1, 2], end: "done" })
        assert.deepStrictEqual(yield* answering(() => 3), { values: [3], end: "done" })
        assert.deepStrictEqual(yield* answering(() => Effect.succeed(4)), { values: [4], end: "done" })
        assert.deepStrictEqual(yield* answering(() => Promise.resolve(5)), { values: [5], end: "done" })
        assert.deepStrictEqual(yield* answering(() => Effect.succeed(Stream.make(6, 7))), {
          values: [6, 7],
          end: "done"
        })
      }))

    it.effect("closes a generator whose reader leaves", () =>
      Effect.gen(function*() {
        let closed = 0
        const made = yield* tool({
          streaming: true,
          inputSchema: empty,
          execute: (async function*() {
            try {
              yield 1
              yield 2
            } finally {
              closed++
            }
          }) as unknown as () => Stream.Stream<number>
        })
        const iterator = made.execute({}, options())
        assert.strictEqual(yield* next(iterator), 1)
        yield* Effect.promise(() => iterator.return!())
        assert.strictEqual(closed, 1)
      }))

    it.effect("runs a Stream without the flag to its last value, and warns", () => {
      const logged: Array<string> = []
      const logger = Logger.make(({ message }) => void logged.push(String(message)))
      return Effect.gen(function*() {
        const made = yield* tool({
          inputSchema: empty,
          execute: (() => Stream.make(1, 2)) as unknown as () => Effect.Effect<number>
        })
        assert.strictEqual(yield* Effect.promise(() => Promise.resolve(made.execute({}, options()))), 2)
        assert.lengthOf(logged, 1)
        assert.include(logged[0]!, "streaming: true")
      }).pipe(Effect.provide(Logger.layer([logger])))
    })
  })
})
