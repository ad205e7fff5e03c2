/**
 * Claims and releases whose replies are lost, late or refused: no process locks itself out, and no claim stays held.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  down,
  ended,
  failsWith,
  fork,
  gated,
  losingReply,
  memory,
  told,
  turns,
  withEvents,
  withLogs
} from "./support.ts"

type Claim = IEffectStore["claim"]

/** The store with claims that go wrong one after the other, and then right. */
const claimingAs = (base: IEffectStore, ...wrong: ReadonlyArray<(claim: Claim) => Claim>): IEffectStore => {
  const left = [...wrong]
  return { ...base, claim: (requests) => (left.shift()?.(base.claim) ?? base.claim)(requests) }
}

const replyLost = (claim: Claim): Claim => (requests) => losingReply("claim", claim(requests))
const replyNever = (claim: Claim): Claim => (requests) => Effect.andThen(claim(requests), Effect.never)
const replyAfter = (latch: Latch.Latch) => (claim: Claim): Claim => (requests) =>
  Effect.tap(claim(requests), () => latch.await)
const sentAfter = (latch: Latch.Latch) => (claim: Claim): Claim => (requests) =>
  Effect.andThen(latch.await, claim(requests))

const statusOf = (store: IEffectStore) =>
  Effect.map(store.get("k"), (row) => `${row?.status} ${row?.doubt} attempt ${row?.attempt}`)

describe("reconciliation", () => {
  it.effect("a lost claim reply does not lock the process out", () =>
    Effect.gen(function*() {
      for (const times of [1, 2, 3]) {
        const store = claimingAs(yield* memory, ...new Array<typeof replyLost>(times).fill(replyLost))
        const hook = counting()
        const options = { waitFor: 0, execute: hook.execute }
        for (let i = 0; i < times; i++) yield* failsWith(call(store, options), "EffectStoreError")
        assert.strictEqual(hook.runs, 0)
        const events: Array<EffectEvent> = []
        assert.strictEqual(yield* withEvents(events)(call(store, options)), "done")
        // its own claim, not one that it took from somebody
        assert.deepStrictEqual(events.map(told), ["executed"])
        assert.strictEqual(yield* statusOf(store), "recorded none attempt 1")
        yield* assertIdle(store)
      }
    }))

  it.effect("an outage does not fill the memory with claims that nobody answered", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), claim: () => down("claim") }
      const { unanswered } = registryOf(store)
      for (let i = 0; i < 10_000; i++) {
        unanswered.set(`old ${i}`, { claimId: String(i), tool: "t", asking: 0, token: undefined, late: undefined })
      }
      yield* failsWith(call(store, { key: "new" }), "EffectStoreError")
      assert.deepStrictEqual([unanswered.size, unanswered.has("old 0"), unanswered.has("t\u0000new")], [
        10_000,
        false,
        true
      ])
    }))

  it.effect("a claim that is never answered does not lock the process out", () =>
    Effect.gen(function*() {
      const store = claimingAs(yield* memory, replyNever, replyNever)
      for (let i = 0; i < 2; i++) {
        const fiber = yield* fork(call(store))
        yield* TestClock.adjust(9_999)
        assert.isFalse(ended(fiber))
        yield* TestClock.adjust(1)
        yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      }
      assert.strictEqual(yield* call(store, { waitFor: 0 }), "done")
      assert.strictEqual(yield* statusOf(store), "recorded none attempt 1")
    }))

  it.effect("a grant that comes after the timeout is given back", () =>
    Effect.gen(function*() {
      for (const late of [replyAfter, sentAfter]) {
        const latch = Latch.makeUnsafe()
        const base = yield* memory
        const verdicts: Array<string> = []
        const store: IEffectStore = {
          ...claimingAs(base, late(latch)),
          release: (items) => {
            verdicts.push(...items.map(({ verdict }) => verdict))
            return base.release(items)
          }
        }
        const fiber = yield* fork(call(store))
        yield* TestClock.adjust("10 seconds")
        yield* failsWith(Fiber.join(fiber), "EffectStoreError")
        yield* latch.open
        yield* turns
        assert.strictEqual(yield* statusOf(store), "released none attempt 1")
        assert.deepStrictEqual(verdicts, ["clean"])
        yield* assertIdle(store)
        assert.strictEqual(yield* call(anotherProcess(store), { waitFor: 0, whenInDoubt: "fail" }), "done")
      }
    }))

  it.effect("a late reply that is no grant leaves nothing behind", () =>
    Effect.gen(function*() {
      for (const reply of ["recorded", "held", "failed"]) {
        const base = yield* memory
        const hook = gated()
        const other = yield* fork(call(base, { execute: hook.execute }))
        if (reply === "recorded") yield* Effect.andThen(hook.open(), Fiber.join(other))
        const latch = Latch.makeUnsafe()
        const store = claimingAs(base, (claim) => (requests) =>
          Effect.andThen(
            Effect.tap(claim(requests), () => latch.await),
            (replies) => reply === "failed" ? down("claim") : Effect.succeed(replies)
          ))
        const process = anotherProcess(store)
        const fiber = yield* fork(call(process))
        yield* TestClock.adjust("10 seconds")
        yield* failsWith(Fiber.join(fiber), "EffectStoreError")
        yield* latch.open
        yield* turns
        assert.strictEqual(registryOf(process).unanswered.size, reply === "failed" ? 1 : 0, reply)
        yield* hook.open()
        yield* Fiber.join(other)
        assert.strictEqual(yield* call(process), "done")
        yield* assertIdle(process)
      }
    }))

  it.effect("a late reply that is no grant does not cost the process the grant of its second ask", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const hook = gated()
      const other = yield* fork(call(base, { execute: hook.execute }))
      const [first, second] = [Latch.makeUnsafe(), Latch.makeUnsafe()]
      const lostAfter = (claim: Claim): Claim => (requests) =>
        Effect.andThen(second.await, losingReply("claim", claim(requests)))
      const store = anotherProcess(claimingAs(base, replyAfter(first), lostAfter))
      const one = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(one), "EffectStoreError")
      const two = yield* fork(call(store))
      yield* first.open
      yield* turns
      yield* Fiber.interrupt(other)
      yield* second.open
      yield* failsWith(Fiber.join(two), "EffectStoreError")
      // the ledger granted the second ask, and its id is still known
      assert.strictEqual(yield* call(store, { waitFor: 0 }), "done")
      yield* assertIdle(store)
    }))

  it.effect("a late grant whose release fails is released by and by", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const base = yield* memory
      let failures = 4
      const store: IEffectStore = {
        ...claimingAs(base, replyAfter(latch)),
        release: (items) => failures-- > 0 ? down("release") : base.release(items)
      }
      const lines: Array<string> = []
      const fiber = yield* fork(withLogs(lines)(call(store)))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(fiber), "EffectStoreError")
      yield* latch.open
      yield* turns
      assert.strictEqual(lines.length, 1)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* statusOf(store), "released none attempt 1")
      yield* assertIdle(store)
    }))

  it.effect("a late reply does not take the claim from the call that asked again", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const store = claimingAs(yield* memory, replyAfter(latch))
      const first = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(first), "EffectStoreError")
      const running = Latch.makeUnsafe()
      const second = yield* fork(call(store, { execute: () => Effect.as(running.await, "second") }))
      yield* latch.open
      yield* turns
      assert.strictEqual(yield* statusOf(store), "held none attempt 1")
      yield* running.open
      assert.strictEqual(yield* Fiber.join(second), "second")
      yield* assertIdle(store)
    }))

  it.effect("a late reply during a second ask leaves the claim to it", () =>
    Effect.gen(function*() {
      const first = Latch.makeUnsafe()
      const second = Latch.makeUnsafe()
      const store = claimingAs(yield* memory, replyAfter(first), replyAfter(second))
      const a = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(a), "EffectStoreError")
      const b = yield* fork(call(store))
      yield* first.open
      yield* turns
      assert.strictEqual(yield* statusOf(store), "held none attempt 1")
      yield* second.open
      assert.strictEqual(yield* Fiber.join(b), "done")
      yield* assertIdle(store)
    }))

  it.effect("when the second ask is answered too late as well, the claim is given back once", () =>
    Effect.gen(function*() {
      for (const order of [[0, 1], [1, 0]] as const) {
        const latches = [Latch.makeUnsafe(), Latch.makeUnsafe()]
        const store = claimingAs(yield* memory, ...latches.map(replyAfter))
        for (let i = 0; i < 2; i++) {
          const fiber = yield* fork(call(store))
          yield* TestClock.adjust("10 seconds")
          yield* failsWith(Fiber.join(fiber), "EffectStoreError")
        }
        for (const i of order) {
          yield* latches[i]!.open
          yield* turns
        }
        assert.strictEqual(yield* statusOf(store), "released none attempt 1")
        yield* assertIdle(store)
      }
    }))

  it.effect("a claim that arrives after its key was released is given back", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe()
      const store = claimingAs(yield* memory, sentAfter(latch))
      const first = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(first), "EffectStoreError")
      // asked again with the same id, granted, tried, released; only now the first request reaches the ledger
      yield* failsWith(call(store, { execute: () => Effect.fail({ _tag: "No" }) }), "No")
      yield* latch.open
      yield* turns
      assert.strictEqual(yield* statusOf(store), "released tried attempt 2")
      assert.strictEqual(yield* call(anotherProcess(store), { waitFor: 0, whenInDoubt: "fail" }), "done")
    }))

  it.effect("a claim that arrives while the next one waits for its reply goes to it, or back", () =>
    Effect.gen(function*() {
      const sent = Latch.makeUnsafe()
      const answered = Latch.makeUnsafe()
      const store = claimingAs(yield* memory, sentAfter(sent), replyAfter(answered))
      const first = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(first), "EffectStoreError")
      const second = yield* fork(call(store))
      yield* sent.open
      yield* turns
      yield* answered.open
      assert.strictEqual(yield* Fiber.join(second), "done")
      yield* turns
      assert.strictEqual(yield* statusOf(store), "recorded none attempt 1")
      yield* assertIdle(store)
    }))

  it.effect("a late grant is given back as soon as the next ask got another one", () =>
    Effect.gen(function*() {
      const late = Latch.makeUnsafe()
      const answered = Latch.makeUnsafe()
      const released: Array<number> = []
      const grant = (token: number, latch: Latch.Latch): Claim => () =>
        Effect.as(latch.await, [
          { _tag: "Claimed", token, doubt: "none", earlier: undefined, attempt: 1, takenOver: false } as const
        ])
      const base = claimingAs(yield* memory, () => grant(7, late), () => grant(8, answered))
      const store: IEffectStore = {
        ...base,
        complete: (items) => Effect.succeed(items.map(() => "ok" as const)),
        release: (items) => {
          released.push(...items.map(({ token }) => token))
          return Effect.succeed(items.map(() => "ok" as const))
        }
      }
      const first = yield* fork(call(store))
      yield* TestClock.adjust("10 seconds")
      yield* failsWith(Fiber.join(first), "EffectStoreError")
      const second = yield* fork(call(store))
      yield* turns
      yield* late.open
      yield* turns
      // whoever is asking may get the same grant
      assert.deepStrictEqual(released, [])
      yield* answered.open
      assert.strictEqual(yield* Fiber.join(second), "done")
      yield* turns
      assert.deepStrictEqual(released, [7])
    }))

  it.effect("a claim that is over does not take the one that came after it along", () =>
    Effect.gen(function*() {
      const registry = registryOf(yield* memory)
      const first = registry.expectAnswer("k", "t")
      registry.forgetAnswer("k", first)
      const second = registry.expectAnswer("k", "t")
      registry.forgetAnswer("k", first)
      assert.strictEqual(registry.expectAnswer("k", "t"), second)
      assert.notStrictEqual(second.claimId, first.claimId)
    }))

  it.effect("another tool's conflict does not cost the process a grant whose reply was lost", () =>
    Effect.gen(function*() {
      const store = claimingAs(yield* memory, replyLost)
      yield* failsWith(call(store), "EffectStoreError")
      yield* failsWith(call(store, { tool: "u" }), "EffectKeyConflictError")
      assert.strictEqual(yield* call(store, { waitFor: 0, whenInDoubt: "fail" }), "done")
      yield* assertIdle(store)
    }))
})
