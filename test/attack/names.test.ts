/**
 * Keys, tools, runs and owners with hostile names, on every store: each call gets its own result or a typed error, nothing
 * is applied twice, and no name reaches into another row, another statement or another object.
 */
import { assert, describe, it } from "@effect/vitest"
import { EffectStore } from "chamvi-effect"
import { Arbitrary, Cause, Effect, Exit, Layer, Stream } from "effect"
import { vi } from "vitest"
import { call, tagOf } from "../reconciliation/support.ts"
import { text, texts } from "./hostile.ts"
import { stores } from "./stores.ts"

vi.setConfig({ testTimeout: 120_000 })

const isBlank = (key: string) => /^[\p{Cc}\s\p{Default_Ignorable_Code_Point}]*$/u.test(key)

const attempt = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
  const store = yield* EffectStore
  const applied = new Map<string, number>()
  const asked = (key: string) =>
    Effect.exit(call(store, {
      key,
      execute: (key) =>
        Effect.sync(() => {
          applied.set(key, (applied.get(key) ?? 0) + 1)
          return { key }
        })
    }))
  const distinct = [...new Set(names)]
  for (const key of [...distinct, ...distinct]) {
    const exit = yield* asked(key)
    if (Exit.isSuccess(exit)) assert.deepStrictEqual(exit.value, { key })
    else {
      assert.strictEqual(tagOf(Cause.squash(exit.cause)), "EffectKeyError", JSON.stringify(key.slice(0, 50)))
      assert.isUndefined(applied.get(key))
      assert.isTrue(!key.isWellFormed() || isBlank(key) || key.length > 16_000, JSON.stringify(key.slice(0, 50)))
    }
  }
  assert.deepStrictEqual([...applied.values()].filter((times) => times !== 1), [])
  const rows = yield* Stream.runCollect(store.list())
  const sorted = (keys: Iterable<string>) => [...keys].sort()
  assert.deepStrictEqual(sorted(rows.map(({ key }) => key)), sorted(applied.keys()))
  for (const key of applied.keys()) {
    assert.strictEqual((yield* store.get(key))?.key, key)
    assert.isTrue(yield* store.remove(key))
  }
  assert.deepStrictEqual(yield* Stream.runCollect(store.list()), [])
  return true
})

for (const { isThere, layer, name } of stores) {
  describe.skipIf(!isThere)(`hostile names on ${name}`, () => {
    it.live("each known one is a key of its own, or refused", () => Effect.provide(attempt(texts), Layer.fresh(layer)))

    it.live("any others are, too", () =>
      Effect.gen(function*() {
        const result = yield* Arbitrary.checkEffect(
          Arbitrary.array(text, { minLength: 1, maxLength: 12 }),
          attempt,
          { runs: 30, seed: 1 }
        )
        assert.strictEqual(result._tag, "Passed", Arbitrary.formatCheckFailure(result))
      }).pipe(Effect.provide(Layer.fresh(layer))))

    it.live("tools and runs are told apart and found, whatever they are called", () =>
      Effect.gen(function*() {
        const store = yield* EffectStore
        for (const [index, name] of texts.filter((name) => name.isWellFormed()).entries()) {
          const named = { key: `key ${index}`, tool: name, runId: name }
          const applying = call(store, { ...named, execute: () => Effect.succeed(index) })
          assert.strictEqual(yield* applying, index)
          assert.strictEqual(yield* applying, index)
          const found = yield* Stream.runCollect(store.list({ tool: name, runId: name }))
          assert.deepStrictEqual(found.map(({ key, runId, tool }) => ({ key, tool, runId })), [named])
        }
      }).pipe(Effect.provide(Layer.fresh(layer))))

    it.live("a tool whose name no store can keep never gets another's result", () =>
      Effect.gen(function*() {
        const store = yield* EffectStore
        for (const names of [["\ufffd", "\ud800"], ["\ud800", "\ufffd"], ["a\udc00", "a\udc01"]]) {
          for (const [index, tool] of names.entries()) {
            const key = `of ${JSON.stringify(names)}`
            const exit = yield* Effect.exit(call(store, { key, tool, execute: () => Effect.succeed(index) }))
            if (Exit.isSuccess(exit)) assert.strictEqual(exit.value, index)
            else assert.include(["EffectKeyError", "EffectKeyConflictError"], tagOf(Cause.squash(exit.cause)))
          }
        }
      }).pipe(Effect.provide(Layer.fresh(layer))))
  })
}
