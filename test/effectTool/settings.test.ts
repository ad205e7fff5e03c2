/**
 * The settings that a tool brings along.
 */
import { assert, describe, it } from "@effect/vitest"
import { defineEffectTool, EffectSettings, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { fork, gated, tagOf } from "../reconciliation/support.ts"
import { call, settle, wrap } from "../support/wrapped.ts"

const layers = Layer.mergeAll(EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" }))

const around = EffectSettings.layer({
  lease: "1 minute",
  waitFor: "5 minutes",
  whenInDoubt: "execute",
  onInputChange: "replay"
})

const inputSchema = Schema.Struct({ text: Schema.String })
const effectKey = () => "k"

describe("The settings of an effect tool", () => {
  it.effect("hold for its calls, above those around it", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      const hook = gated()
      const made = yield* defineEffectTool({
        inputSchema,
        effectKey,
        lease: "6 seconds",
        waitFor: "2 seconds",
        whenInDoubt: "fail",
        onInputChange: "fail",
        execute: () => hook.execute() as Effect.Effect<string>
      })
      const here = yield* wrap({ made })
      const elsewhere = yield* wrapToolsForRun({ made }, yield* ToolContext, { ...store })
      const execute = (tools: typeof here, text: string, abortSignal?: AbortSignal) =>
        settle(() => tools.made.execute({ text }, { ...call, ...(abortSignal && { abortSignal }) }))
      const controller = new AbortController()
      const first = yield* fork(Effect.exit(execute(here, "x", controller.signal)))
      yield* hook.entered
      const row = yield* store.get("k")
      assert.strictEqual(row!.leaseEnd - row!.createdAt, 6000)
      const waiting = yield* fork(Effect.flip(execute(elsewhere, "x")))
      yield* TestClock.adjust(1999)
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.strictEqual(tagOf(yield* Fiber.join(waiting)), "EffectInProgressError")
      assert.strictEqual(tagOf(yield* Effect.flip(execute(here, "y"))), "EffectInputChangedError")
      controller.abort()
      yield* Fiber.join(first)
      assert.strictEqual(tagOf(yield* Effect.flip(execute(here, "x"))), "EffectInDoubtError")
      assert.strictEqual(hook.runs, 1)
    }).pipe(Effect.scoped, Effect.provide([layers, around])))

  it.effect("say how long a remote's no is not believed", () =>
    Effect.gen(function*() {
      let asked = 0
      let runs = 0
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          inputSchema,
          effectKey,
          settle: "3 seconds",
          alreadyApplied: () => Effect.sync(() => void asked++),
          execute: () => Effect.suspend(() => ++runs === 1 ? Effect.fail("no") : Effect.succeed(runs))
        })
      })
      const execute = settle(() => tools.made.execute({ text: "x" }, call))
      yield* Effect.flip(execute)
      const again = yield* fork(execute)
      yield* TestClock.adjust(2999)
      assert.deepStrictEqual([runs, again.pollUnsafe()], [1, undefined])
      assert.isAbove(asked, 2)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* Fiber.join(again), 2)
    }).pipe(Effect.scoped, Effect.provide(layers)))
})
