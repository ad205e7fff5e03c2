/**
 * The end of a store, and hooks that are stopped: what the library itself cuts off must never pass for "nothing happened".
 */
import { assert, describe, it } from "@effect/vitest"
import {
  applyOnce,
  EffectEvent,
  EffectStore,
  type EffectStoreError,
  type IEffectStore,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { call, down, fork, memory, turns } from "./support.ts"

const ledger = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "chamvi-closing-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
).pipe(Effect.map((folder) => join(folder, "ledger.sqlite")))

const held = (store: IEffectStore) => Stream.runCollect(store.list({ status: "held" }))

describe("Closing a store", () => {
  for (const mode of ["fast", "durable"] as const) {
    it.live(`leaves nothing held of calls whose claims were pending (${mode})`, () =>
      Effect.gen(function*() {
        const filename = yield* ledger
        let runs = 0
        yield* Effect.gen(function*() {
          const calls = yield* Effect.forEach(["a", "b", "c"], (key) =>
            fork(applyOnce({ key, execute: () => Effect.sync(() => ++runs) })))
          yield* Fiber.interruptAll(calls)
        }).pipe(Effect.provide(SqliteEffectStore.layer({ filename, mode })))
        const rows = yield* Effect.flatMap(EffectStore, held).pipe(
          Effect.provide(SqliteEffectStore.layer({ filename }))
        )
        assert.deepStrictEqual(rows, [])
        // the first write of a turn may be done at once
        assert.isAtMost(runs, 1)
      }).pipe(Effect.scoped))
  }

  it.effect("stops what is under way, waits for its finalizers, and tells its callers", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const store = Context.get(yield* Layer.buildWithScope(EffectStore.layerMemory, scope), EffectStore)
      const reached = yield* Deferred.make<void>()
      let cleaned = false
      const execute = () =>
        Effect.andThen(Deferred.succeed(reached, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Effect.sync(() => void (cleaned = true)))
        )
      const caller = yield* fork(Effect.flip(call(store, { execute })))
      yield* Deferred.await(reached)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(cleaned)
      assert.deepInclude(yield* Fiber.join(caller), {
        _tag: "EffectStoreError",
        operation: "claim",
        problem: "its layer is being closed",
        isRetryable: false
      })
      assert.deepStrictEqual(yield* held(store), [])
    }))

  it.effect("sends the releases that are due once more, all at once and beside the records", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const sent: Array<string> = []
      const store = {
        ...base,
        complete: (): Effect.Effect<never, EffectStoreError> => down("complete"),
        release: (): Effect.Effect<never, EffectStoreError> => down("release")
      }
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      for (const key of ["a", "b", "c"]) {
        yield* Effect.exit(call(store, { key, recordTimeout: 700, execute: () => Effect.fail("no") }))
      }
      yield* call(store, { key: "d", recordTimeout: 700 })
      const noting = (items: ReadonlyArray<{ readonly key: string }>) =>
        Effect.andThen(Effect.sync(() => sent.push(...items.map(({ key }) => key))), Effect.never)
      Object.assign(store, {
        complete: noting,
        // one of a plain store throws
        release: (items: ReadonlyArray<{ readonly key: string }>) => {
          if (items[0]!.key === "a") throw new Error("broken")
          return noting(items)
        }
      })
      const closing = yield* fork(Scope.close(scope, Exit.void))
      yield* turns
      assert.sameMembers(sent, ["b", "c", "d"])
      yield* TestClock.adjust(700)
      yield* Fiber.join(closing)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(sent.length, 3)
    }))

  it.effect("gives records their last try also while tools that were wrapped with it are still in scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const base = yield* memory
      let failing = true
      const store: IEffectStore = { ...base, complete: (items) => failing ? Effect.never : base.complete(items) }
      yield* Layer.buildWithScope(EffectStore.layerOf(Effect.succeed(store)), scope)
      const ctx = Context.get(yield* Layer.build(ToolContext.layer({ runId: "run-1" })), ToolContext)
      yield* wrapToolsForRun({}, ctx, store)
      const running = yield* fork(call(store, { recordTimeout: 20 }))
      yield* TestClock.adjust(20)
      yield* Fiber.join(running)
      failing = false
      // the retries in the background come later than this
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
    }).pipe(Effect.scoped))

  it.effect("gives a store that nobody owns its last try when nobody uses it any more", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let failing = true
      const store: IEffectStore = { ...base, complete: (items) => failing ? Effect.never : base.complete(items) }
      const ctx = Context.get(yield* Layer.build(ToolContext.layer({ runId: "run-1" })), ToolContext)
      yield* Effect.scoped(Effect.gen(function*() {
        yield* wrapToolsForRun({}, ctx, store)
        const running = yield* fork(call(store, { recordTimeout: 20 }))
        yield* TestClock.adjust(20)
        yield* Fiber.join(running)
        failing = false
      }))
      assert.strictEqual((yield* base.get("k"))?.status, "recorded")
    }).pipe(Effect.scoped))

  it.live("gives a store that was made without a layer its last try too", () =>
    Effect.gen(function*() {
      const filename = yield* ledger
      yield* Effect.scoped(Effect.gen(function*() {
        const store = yield* SqliteEffectStore.make({ filename })
        let failing = true
        const complete = store.complete
        Object.assign(store, {
          complete: (items: Parameters<typeof complete>[0]) => failing ? Effect.never : complete(items)
        })
        yield* call(store, { recordTimeout: 20 })
        failing = false
      }))
      const row = yield* Effect.flatMap(EffectStore, (store) => store.get("k")).pipe(
        Effect.provide(SqliteEffectStore.layer({ filename }))
      )
      assert.strictEqual(row?.status, "recorded")
    }).pipe(Effect.scoped))
})

describe("A hook that is asked to stop", () => {
  const stopped = (execute: (signal: AbortSignal) => unknown) =>
    Effect.gen(function*() {
      const store = yield* memory
      const controller = new AbortController()
      const running = yield* fork(call(store, { execute: () => execute(controller.signal) }))
      yield* turns
      const leaving = yield* fork(Fiber.interrupt(running))
      yield* turns
      controller.abort()
      yield* Fiber.join(leaving)
      return yield* store.get("k")
    })

  const rejecting = (signal: AbortSignal) =>
    new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))))
  const landing = (signal: AbortSignal) =>
    new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("landed")))

  it.effect("and fails in a part that cannot be cut leaves the key in doubt, since that may be our own abort", () =>
    Effect.gen(function*() {
      const row = yield* stopped((signal) => Effect.uninterruptible(Effect.tryPromise(() => rejecting(signal))))
      assert.strictEqual(row?.doubt, "inDoubt")
    }))

  const promises: ReadonlyArray<readonly [string, (make: () => Promise<string>) => unknown]> = [
    ["a Promise", (make) => make()],
    // a mistake that JavaScript makes: @effect-diagnostics-next-line lazyPromiseInEffectSync:off
    ["an Effect of a Promise", (make) => Effect.sync(make)],
    ["an async iterable", async function*(make) {
      yield await make()
    }],
    ["an Effect of an async iterable", (make) =>
      Effect.sync(async function*() {
        yield await make()
      })]
  ]
  for (const [name, of] of promises) {
    it.effect(`and is ${name} holds its key until it has settled`, () =>
      Effect.gen(function*() {
        const row = yield* stopped((signal) => of(() => landing(signal)))
        // an iterable is stopped after the value at hand; whether there were more, nobody knows
        assert.include(["recorded", "released"], row?.status)
        if (name.includes("Promise")) assert.strictEqual(row?.status, "recorded")
        else assert.strictEqual(row?.doubt, "inDoubt")
      }))
    it.effect(`and is ${name} that rejects leaves the key in doubt`, () =>
      Effect.gen(function*() {
        const row = yield* stopped((signal) => of(() => rejecting(signal)))
        assert.strictEqual(row?.doubt, "inDoubt")
      }))
  }

  it.effect("that reaches its own key over a Promise fails instead of waiting for itself", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const inner = Effect.runPromise
      const execute = () =>
        Effect.promise(async () => {
          await Promise.resolve()
          return inner(Effect.flip(call(store)))
        })
      const answer = yield* call(store, {
        execute: () => Effect.map(execute(), (error) => (error as { readonly _tag: string })._tag)
      })
      assert.strictEqual(answer, "EffectReentrantError")
    }))
})

describe("A result that cannot be looked at", () => {
  const throwing = (): never => {
    throw new Error("no")
  }
  const results: ReadonlyArray<readonly [string, unknown]> = [
    ["a throwing then", Object.defineProperty({}, "then", { get: throwing, enumerable: true })],
    [
      "a revoked Proxy",
      (() => {
        const { proxy, revoke } = Proxy.revocable({}, {})
        revoke()
        return proxy
      })()
    ],
    ["a Proxy that answers no question", new Proxy({}, { has: throwing, get: throwing, getPrototypeOf: throwing })]
  ]
  for (const [name, result] of results) {
    it.effect(`(${name}) is applied once, and unavailable ever after`, () =>
      Effect.gen(function*() {
        const store = yield* memory
        let runs = 0
        const execute = () =>
          Effect.sync(() => {
            runs++
            return result
          })
        for (let i = 0; i < 2; i++) {
          const error = yield* Effect.flip(call(store, { execute }))
          assert.strictEqual((error as { readonly _tag: string })._tag, "EffectResultUnavailableError")
        }
        assert.strictEqual(runs, 1)
      }))
  }
})

describe("A report", () => {
  it.effect("of a slow record does not call the claim lost that the record has ended", () => {
    const lost: Array<boolean> = []
    return Effect.gen(function*() {
      const store = yield* memory
      const reached = yield* Deferred.make<void>()
      const slow: IEffectStore = {
        ...store,
        complete: (items) =>
          Effect.flatMap(
            store.complete(items),
            (replies) =>
              Effect.andThen(Deferred.succeed(reached, undefined), Effect.delay(Effect.succeed(replies), 500))
          )
      }
      const running = yield* fork(call(slow, { lease: 600 }))
      yield* Deferred.await(reached)
      yield* TestClock.adjust(500)
      assert.strictEqual(yield* Fiber.join(running), "done")
      assert.deepStrictEqual(lost, [false])
    }).pipe(
      Effect.provide(
        EffectEvent.layer((event) => Effect.sync(() => void lost.push(event.claimLost)))
      )
    )
  })

  it.effect("that a logger cannot take does not fail a call whose effect has happened", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const broken: IEffectStore = { ...store, complete: () => Effect.die("down") }
      const logger = Logger.make(() => {
        throw new Error("the disk of the log is full")
      })
      const result = yield* call(broken).pipe(Effect.provide(Logger.layer([logger])))
      assert.strictEqual(result, "done")
    }))
})
