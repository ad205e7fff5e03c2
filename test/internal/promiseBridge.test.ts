import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Latch, Logger } from "effect"
import { fromAbortable, hookAnswer, runCall } from "../../src/internal/promiseBridge.ts"

const run = runCall(Context.empty())

const outcome = (promise: Promise<unknown>) => promise.then((value) => ({ value }), (error: unknown) => ({ error }))

describe("runCall", () => {
  it("runs nothing where the signal is aborted already, not even a synchronous effect", async () => {
    let ran = false
    const reason = { why: "late" }
    const settled = await outcome(run(Effect.sync(() => (ran = true)), AbortSignal.abort(reason)))
    assert.deepStrictEqual([settled, ran], [{ error: reason }, false])
  })

  it("sees an abort that the effect's own first steps cause", async () => {
    const controller = new AbortController()
    const effect = Effect.andThen(Effect.sync(() => controller.abort("self")), Effect.interruptible(Effect.never))
    assert.deepStrictEqual(await outcome(run(effect, controller.signal)), { error: "self" })
  })

  it("rejects with the abort's reason, whatever it is", async () => {
    for (const reason of [undefined, null, 0, "text", new Error("reason")]) {
      const controller = new AbortController()
      const call = run(Effect.interruptible(Effect.never), controller.signal)
      controller.abort(reason)
      const settled = await outcome(call)
      assert.isTrue(Object.is((settled as { error: unknown }).error, controller.signal.reason))
    }
  })

  it("resolves with a value although the signal aborted, where the effect could not be cut", async () => {
    const latch = Latch.makeUnsafe()
    const controller = new AbortController()
    const call = run(Effect.as(latch.await, "value"), controller.signal)
    controller.abort()
    latch.openUnsafe()
    assert.deepStrictEqual(await outcome(call), { value: "value" })
  })

  it("rejects with the effect's own failure, where it fails in spite of an abort", async () => {
    const latch = Latch.makeUnsafe()
    const controller = new AbortController()
    const call = run(Effect.andThen(latch.await, Effect.fail("own")), controller.signal)
    controller.abort("reason")
    latch.openUnsafe()
    assert.deepStrictEqual(await outcome(call), { error: "own" })
  })

  it("logs a finalizer that dies while the call is aborted", async () => {
    const messages: Array<unknown> = []
    const logger = Logger.make(({ cause, message }) => {
      messages.push(message, cause.reasons.map((reason) => reason._tag))
    })
    const context = await Effect.runPromise(
      Effect.provide(Effect.context(), Logger.layer([logger]))
    )
    const controller = new AbortController()
    const effect = Effect.interruptible(Effect.never).pipe(Effect.onInterrupt(() => Effect.die("cleanup")))
    const call = runCall(context)(effect, controller.signal)
    controller.abort("reason")
    assert.deepStrictEqual(await outcome(call), { error: "reason" })
    assert.include(JSON.stringify(messages), "cleanup failed")
    assert.include(JSON.stringify(messages), "Die")
  })

  it("leaves no listener on the signal", async () => {
    const { signal } = new AbortController()
    let listeners = 0
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      removeEventListener.apply(signal, args)
    }
    await run(Effect.delay(Effect.void, 1), signal)
    assert.strictEqual(listeners, 0)
  })
})

describe("hookAnswer", () => {
  it.effect("marks the hook as interruptible, and nothing after it", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const controller = new AbortController()
      const call = run(
        Effect.map(
          hookAnswer("execute", () => Effect.uninterruptible(Effect.as(latch.await, 1))),
          (n) => Number(n) + 1
        ),
        controller.signal
      )
      controller.abort()
      yield* latch.open
      assert.deepStrictEqual(yield* Effect.promise(() => outcome(call)), { value: 2 })
      const cut = run(hookAnswer("execute", () => Effect.never), controller.signal)
      assert.deepStrictEqual(yield* Effect.promise(() => outcome(cut)), { error: controller.signal.reason })
    }))

  it.effect("closes an async iterable that it leaves", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const iterable = {
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise<IteratorResult<number>>(() => undefined),
          return: () => {
            log.push("closed")
            return Promise.resolve({ done: true as const, value: undefined })
          }
        })
      }
      const controller = new AbortController()
      const call = run(hookAnswer("execute", () => iterable), controller.signal)
      controller.abort("enough")
      assert.deepStrictEqual(yield* Effect.promise(() => outcome(call)), { error: "enough" })
      assert.deepStrictEqual(log, ["closed"])
    }))
})

describe("fromAbortable", () => {
  const options = { foreign: undefined, drained: () => Promise.resolve() }

  it.effect("fails with what the promise rejects with, or what making it throws", () =>
    Effect.gen(function*() {
      const rejected = fromAbortable({ ...options, make: () => Promise.reject("no") })
      assert.deepStrictEqual(yield* Effect.exit(rejected), Exit.fail("no"))
      const thrown = fromAbortable({
        ...options,
        make: () => {
          throw "thrown"
        }
      })
      assert.deepStrictEqual(yield* Effect.exit(thrown), Exit.fail("thrown"))
    }))

  it.effect("aborts on interruption, and ends when the work is drained", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const fiber = yield* Effect.forkChild(
        fromAbortable({
          make: (signal) => {
            signal.addEventListener("abort", () => log.push("aborted"))
            return new Promise(() => undefined)
          },
          foreign: undefined,
          drained: async () => {
            await Promise.resolve()
            log.push("drained")
          }
        })
      )
      yield* Effect.yieldNow
      fiber.interruptUnsafe()
      while (fiber.pollUnsafe() === undefined) yield* Effect.promise(() => Promise.resolve())
      assert.deepStrictEqual(log, ["aborted", "drained"])
    }))
})
