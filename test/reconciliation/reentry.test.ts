/**
 * Calls from inside a hook: a circle of keys is an error, whoever closes it, and anything else simply works.
 */
import { assert, describe, expect, it } from "@effect/vitest"
import { type EffectEvent } from "chamvi-effect"
import { type Context, Deferred, Effect, Fiber, Latch } from "effect"
import { across, Application, circleOf, Enclosing, enclosingOf } from "../../src/reconciliation/Application.ts"
import { assertIdle, call, ended, failsWith, fork, gated, memory, told, turns, withEvents } from "./support.ts"

describe("reconciliation", () => {
  it.effect("a circle of keys fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const a = (): Effect.Effect<unknown, unknown> => call(store, { key: "a", execute: () => a() })
      const direct = yield* failsWith(a(), "EffectReentrantError")
      assert.deepStrictEqual(direct["circle"], ["a", "a"])

      const x = (): Effect.Effect<unknown, unknown> => call(store, { key: "x", execute: () => y() })
      const y = (): Effect.Effect<unknown, unknown> => call(store, { key: "y", execute: () => z() })
      const z = (): Effect.Effect<unknown, unknown> => call(store, { key: "z", execute: () => y() })
      const circle = yield* failsWith(x(), "EffectReentrantError")
      assert.deepStrictEqual(circle["circle"], ["y", "z", "y"])
      yield* assertIdle(store)
    }))

  it.effect("a remote check that calls its own key fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const a = (): Effect.Effect<unknown, unknown> => call(store, { alreadyApplied: () => a() })
      yield* failsWith(a(), "EffectReentrantError")
    }))

  it.effect("an execute that takes the error in its stride goes on", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const events: Array<EffectEvent> = []
      const a = (): Effect.Effect<unknown, unknown> =>
        call(store, { execute: () => Effect.orElseSucceed(a(), () => "went on") })
      assert.strictEqual(yield* withEvents(events)(a()), "went on")
      assert.deepStrictEqual(events.map(told), ["failed", "executed"])
    }))

  it.effect("two parallel applications that call each other fail instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const start = Latch.makeUnsafe()
      const mutual = (key: string, other: string): Effect.Effect<unknown, unknown> =>
        call(store, { key, execute: () => Effect.andThen(start.await, Effect.suspend(() => mutual(other, key))) })
      const callers = yield* Effect.forEach([mutual("a", "b"), mutual("b", "a")], fork)
      yield* start.open
      yield* turns
      assert.isTrue(callers.every(ended))
      for (const caller of callers) yield* failsWith(Fiber.join(caller), "EffectReentrantError")
      yield* assertIdle(store)
    }))

  it.effect("a circle through joined calls fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const start = Latch.makeUnsafe()
      const ring = ["a", "b", "c", "d"]
      const link = (i: number): Effect.Effect<unknown, unknown> =>
        call(store, {
          key: ring[i % 4]!,
          execute: () => Effect.andThen(start.await, Effect.suspend(() => link(i + 1)))
        })
      const callers = yield* Effect.forEach([0, 1, 2, 3, 0, 1, 2, 3], (i) => fork(link(i)))
      yield* start.open
      yield* turns
      assert.isTrue(callers.every(ended))
      for (const caller of callers) yield* failsWith(Fiber.join(caller), "EffectReentrantError")
      yield* assertIdle(store)
    }))

  it.effect("a circle is found although one of two waits for the same key was given up", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const start = Latch.makeUnsafe()
      const b = yield* fork(
        call(store, { key: "b", execute: () => Effect.andThen(start.await, call(store, { key: "a" })) })
      )
      const impatient = Latch.makeUnsafe()
      const execute = () =>
        Effect.all([
          call(store, { key: "b" }),
          Effect.raceFirst(call(store, { key: "b" }), impatient.await)
        ], { concurrency: 2 })
      const a = yield* fork(call(store, { key: "a", execute }))
      yield* impatient.open
      yield* turns
      yield* start.open
      yield* turns
      assert.isTrue(ended(a) && ended(b))
      yield* failsWith(Fiber.join(b), "EffectReentrantError")
      yield* failsWith(Fiber.join(a), "EffectReentrantError")
    }))

  it.effect("a circle is found behind a key that leads nowhere", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const start = Latch.makeUnsafe()
      const c = gated()
      const b = yield* fork(
        call(store, { key: "b", execute: () => Effect.andThen(start.await, call(store, { key: "a" })) })
      )
      const execute = () =>
        Effect.all([call(store, { key: "c", execute: c.execute }), call(store, { key: "b" })], { concurrency: 2 })
      const a = yield* fork(call(store, { key: "a", execute }))
      yield* c.entered
      yield* start.open
      yield* turns
      assert.isTrue(ended(b))
      const error = yield* failsWith(Fiber.join(b), "EffectReentrantError")
      assert.deepStrictEqual(error["circle"], ["b", "a", "b"])
      yield* failsWith(Fiber.join(a), "EffectReentrantError")
    }))

  it.effect("a wait that was given up closes no circle", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const start = Latch.makeUnsafe()
      const impatient = Latch.makeUnsafe()
      const finish = Latch.makeUnsafe()
      const b = yield* fork(
        call(store, { key: "b", execute: () => Effect.andThen(start.await, call(store, { key: "a" })) })
      )
      const execute = () =>
        Effect.raceFirst(call(store, { key: "b" }), impatient.await).pipe(
          Effect.andThen(finish.await),
          Effect.as("a")
        )
      const a = yield* fork(call(store, { key: "a", execute }))
      yield* turns
      yield* impatient.open
      yield* turns
      yield* start.open
      yield* turns
      assert.isFalse(ended(b))
      yield* finish.open
      assert.deepStrictEqual(yield* Effect.forEach([a, b], Fiber.join), ["a", "a"])
    }))

  it.effect("a circle over an application that is being interrupted fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const interrupted = Latch.makeUnsafe()
      // b's finalizer calls a, and a's execute calls b
      const execute = () =>
        Effect.onInterrupt(
          Effect.never,
          () => Effect.andThen(interrupted.await, Effect.exit(call(store, { key: "a" })))
        )
      const b = yield* fork(call(store, { key: "b", execute }))
      const leaves = yield* fork(Fiber.interrupt(b))
      const a = yield* fork(call(store, { key: "a", execute: () => call(store, { key: "b", execute: () => "b" }) }))
      yield* interrupted.open
      yield* turns
      assert.isTrue(ended(leaves) && ended(a))
      assert.strictEqual(yield* Fiber.join(a), "b")
      yield* assertIdle(store)
    }))

  it.effect("a finalizer that calls the key whose execute waits for it to leave fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const finalizer = () => Effect.exit(call(store, { key: "a" }))
      const b = yield* fork(call(store, { key: "b", execute: () => Effect.onInterrupt(Effect.never, finalizer) }))
      const impatient = Latch.makeUnsafe()
      const execute = () => Effect.raceFirst(call(store, { key: "b" }), Effect.as(impatient.await, "gave up"))
      const a = yield* fork(call(store, { key: "a", execute }))
      yield* Fiber.interrupt(b)
      yield* impatient.open
      yield* turns
      assert.isTrue(ended(a))
      assert.strictEqual(yield* Fiber.join(a), "gave up")
      yield* assertIdle(store)
    }))

  it.effect("a finalizer that calls its own key fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const seen: Array<unknown> = []
      const execute = () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.tap(failsWith(call(store), "EffectReentrantError"), ({ key }) => Effect.sync(() => seen.push(key))))
      const fiber = yield* fork(call(store, { execute }))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(seen, ["k"])
    }))

  it.effect("another tool that reaches the key from inside gets the conflict", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const execute = () => failsWith(call(store, { tool: "u" }), "EffectKeyConflictError").pipe(Effect.as("x"))
      assert.strictEqual(yield* call(store, { execute }), "x")
    }))

  it.effect("calls of other keys from inside an execute run, share and replay", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let leaves = 0
      const leaf = call(store, { key: "leaf", execute: () => ++leaves })
      const parent = (key: string) => call(store, { key, execute: () => Effect.all([leaf, leaf], { concurrency: 2 }) })
      const both = yield* Effect.all([parent("a"), parent("b")], { concurrency: 2 })
      assert.deepStrictEqual([both, yield* parent("a")], [[[1, 1], [1, 1]], [1, 1]])
    }))

  it.effect("a key that is done may be called from inside the execute of another that it once called", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* call(store, { key: "a", execute: () => call(store, { key: "b", execute: () => "b" }) })
      yield* store.remove("b")
      assert.strictEqual(yield* call(store, { key: "b", execute: () => call(store, { key: "a" }) }), "b")
    }))

  it.effect("waiting for the same key twice in a row closes no circle", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = gated()
      const b = yield* fork(call(store, { key: "b", execute: hook.execute }))
      const inner = call(store, { key: "b" })
      const a = yield* fork(call(store, { key: "a", execute: () => Effect.all([inner, inner]) }))
      yield* hook.open("x")
      assert.deepStrictEqual([yield* Fiber.join(a), yield* Fiber.join(b)], [["x", "x"], "x"])
    }))

  it.effect("an execute that has its own key called elsewhere, with its own services, fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const handed = Deferred.makeUnsafe<Context.Context<never>>()
      const answered = Deferred.makeUnsafe<unknown, unknown>()
      const a = (): Effect.Effect<unknown, unknown> =>
        call(store, {
          key: "a",
          execute: () =>
            Effect.contextWith((context: Context.Context<never>) => {
              Deferred.doneUnsafe(handed, Effect.succeed(context))
              return Deferred.await(answered)
            })
        })
      // it was there before the call, and knows nothing of it but what it is handed
      const elsewhere = yield* fork(
        Effect.flatMap(Deferred.await(handed), (context) => Effect.provideContext(a(), context)).pipe(
          Deferred.into(answered)
        )
      )
      yield* failsWith(a(), "EffectReentrantError")
      yield* Fiber.join(elsewhere)
    }))

  it.effect("an execute that goes on from outside of it, and reaches its own key, fails instead of waiting", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const gate = Latch.makeUnsafe()
      const a = (): Effect.Effect<unknown, unknown> =>
        call(store, { key: "a", execute: () => Effect.andThen(gate.await, a()) })
      const running = yield* fork(a())
      yield* turns
      yield* gate.open
      yield* failsWith(Fiber.join(running), "EffectReentrantError")
    }))
})

describe("an application", () => {
  const application = (key: string) => new Application({ key, tool: "t", fingerprint: "", transactional: false })

  it("tells nobody who has left of its end", () => {
    const told: Array<string> = []
    const one = application("a")
    const leave = one.join(() => void told.push("first"))!
    one.join(() => void told.push("second"))
    Effect.runSync(leave)
    one.end({ _tag: "Over" })
    expect(told).toEqual(["second"])
  })

  it("that waits in a circle of others does not keep a caller from finding that there is none of its own", () => {
    const [a, b, c] = ["a", "b", "c"].map(application)
    a!.waitFor(b!)
    b!.waitFor(a!)
    expect(circleOf([c!], a!)).toBe(undefined)
    b!.waitFor(c!)
    expect(circleOf([c!], a!)).toEqual(["c", "a", "b", "c"])
  })

  it.effect("is looked for in the fiber first, and then where its call came from", () =>
    Effect.gen(function*() {
      const [a, b] = ["a", "b"].map(application)
      const seen = Effect.withFiber((fiber) => Effect.succeed(enclosingOf(fiber).map(({ key }) => key)))
      const run = (effect: Effect.Effect<ReadonlyArray<string>>) => across.run([a!], () => Effect.runSync(effect))
      expect(run(seen)).toEqual(["a"])
      expect(run(Effect.provideService(seen, Enclosing, [a!, b!]))).toEqual(["a", "b"])
      expect(yield* seen).toEqual([])
    }))
})
