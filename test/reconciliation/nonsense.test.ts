import { assert, describe, it } from "@effect/vitest"
import { type ClaimReply, EffectStoreError, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber } from "effect"
import { anotherProcess, call, counting, failsWith, fork, gated, memory } from "./support.ts"

const replies: ReadonlyArray<readonly [string, unknown]> = [
  ["a grant without a token", { _tag: "Claimed", doubt: "none", attempt: 1, takenOver: false }],
  ["a grant without a doubt", { _tag: "Claimed", token: 1, attempt: 1, takenOver: false }],
  ["a grant with a doubt that is none", { _tag: "Claimed", token: 1, doubt: "maybe", attempt: 1, takenOver: false }],
  ["a grant whose token is no number", { _tag: "Claimed", token: NaN, doubt: "none", attempt: 1, takenOver: false }],
  ["a grant whose token is not exact", {
    _tag: "Claimed",
    token: 2 ** 53,
    doubt: "none",
    attempt: 1,
    takenOver: false
  }],
  ["a grant whose earlier attempt is null", { _tag: "Claimed", token: 1, doubt: "tried", attempt: 2, earlier: null }],
  ["a grant whose earlier attempt has no age", {
    _tag: "Claimed",
    token: 1,
    doubt: "tried",
    attempt: 2,
    earlier: { fingerprint: "" }
  }],
  ["a grant whose earlier attempt has an age that is no number", {
    _tag: "Claimed",
    token: 1,
    doubt: "tried",
    attempt: 2,
    earlier: { age: NaN, fingerprint: "" }
  }],
  ["a grant whose earlier attempt has no fingerprint", {
    _tag: "Claimed",
    token: 1,
    doubt: "tried",
    attempt: 2,
    earlier: { age: 1 }
  }],
  ["a grant whose earlier attempt has a fingerprint that is no text", {
    _tag: "Claimed",
    token: 1,
    doubt: "tried",
    attempt: 2,
    earlier: { age: 1, fingerprint: 5 }
  }],
  ["a record without a tool", { _tag: "Recorded", result: `{"value":1}`, outcome: "executed", fingerprint: "" }],
  ["a holder without a tool", { _tag: "Held", owner: "x", remaining: 5 }],
  ["a holder whose time left is no number", { _tag: "Held", tool: "t", owner: "x", remaining: Number.NaN }],
  ["a holder whose time left is a text", { _tag: "Held", tool: "t", owner: "x", remaining: "5" }],
  ["a holder without a time left", { _tag: "Held", tool: "t", owner: "x" }],
  ["a tag that is none", { _tag: "Granted", token: 1 }],
  ["nothing", undefined],
  ["a text", "Claimed"]
]

describe("A claim's reply that says less than it must", () => {
  for (const [name, reply] of replies) {
    it.effect(`(${name}) is EffectStoreError, and nothing is executed`, () =>
      Effect.gen(function*() {
        const claim: IEffectStore["claim"] = () => Effect.succeed([reply as ClaimReply])
        const store = { ...(yield* memory), claim }
        const hook = counting("x")
        const error = yield* Effect.flip(call(store, { execute: hook.execute, whenInDoubt: "fail" }))
        assert.strictEqual((error as { readonly _tag: string })._tag, "EffectStoreError")
        assert.strictEqual(hook.runs, 0)
      }))
  }
})

describe("Two tools that compute one key", () => {
  it.effect("do not hide each other's lost claims", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let failing: "before" | "after" | "no" = "before"
      const claim: IEffectStore["claim"] = (requests) => {
        const down = Effect.fail(new EffectStoreError({ operation: "claim", problem: "no answer" }))
        return failing === "before"
          ? down
          : failing === "after"
          ? Effect.andThen(store.claim(requests), down)
          : store.claim(requests)
      }
      const lossy = { ...store, claim }
      yield* Effect.flip(call(lossy, { tool: "a" }))
      failing = "after"
      yield* Effect.flip(call(lossy, { tool: "b" }))
      failing = "no"
      // granted to b without its knowing: the same id is answered with the same token
      assert.strictEqual(yield* call(lossy, { tool: "b" }), "done")
      assert.strictEqual((yield* store.get("k"))?.attempt, 1)
    }))
})

describe("A store that fails", () => {
  const claimFailing = (claim: Effect.Effect<never, unknown>) =>
    Effect.flatMap(
      memory,
      (store) => Effect.flip(call({ ...store, claim: () => claim as ReturnType<IEffectStore["claim"]> }))
    )

  it.effect("in its own words is heard in them", () =>
    Effect.gen(function*() {
      const failure = new EffectStoreError({ operation: "claim", problem: "the disk is full" })
      assert.strictEqual(yield* claimFailing(Effect.fail(failure)), failure)
    }))

  it.effect("with anything else, or dies, fails the call with EffectStoreError", () =>
    Effect.gen(function*() {
      for (const claim of [Effect.fail("no"), Effect.die(new Error("no"))]) {
        const error = yield* claimFailing(claim)
        assert.instanceOf(error, EffectStoreError)
        assert.deepStrictEqual([error.operation, error.key, error.problem], ["claim", "k", "it failed"])
      }
    }))
})

describe("A store that is asked", () => {
  it.effect("hears which process asks", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* call(store)
      assert.match((yield* store.get("k"))!.owner, new RegExp(` pid ${process.pid}$`))
    }))

  it.effect("once, tells of a conflict", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let asked = 0
      const counted: IEffectStore = {
        ...anotherProcess(store),
        claim: (requests) => {
          asked++
          return store.claim(requests)
        }
      }
      const hook = gated()
      const holder = yield* fork(call(store, { execute: hook.execute }))
      yield* hook.entered
      yield* failsWith(call(counted, { tool: "u" }), "EffectKeyConflictError")
      assert.strictEqual(asked, 1)
      yield* hook.open()
      yield* Fiber.join(holder)
    }))
})
