/**
 * Several wraps of one tool over one store.
 */
import { assert, describe, it } from "@effect/vitest"
import { defineEffectTool, EffectEvent, EffectStore, ToolContext, wrapToolsForRun } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { Remote } from "../support/remote.ts"
import { call, settle, wrap } from "../support/wrapped.ts"

const run = ToolContext.layer({ runId: "run-1" })
const gated = Layer.mergeAll(EffectStore.layerMemory, Remote.layerGated, run)

const post = defineEffectTool({
  inputSchema: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.flatMap(Remote, (remote) => remote.apply(text))
})

const fork = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const listening = (outcomes: Array<string>) =>
  EffectEvent.layer(({ outcome }) => Effect.sync(() => void outcomes.push(outcome)))

describe("Wraps of one tool", () => {
  it.effect("share a call in flight", () => {
    const outcomes: Array<string> = []
    return Effect.gen(function*() {
      const { applied, gate } = yield* Remote
      const made = yield* post
      const one = yield* wrap({ post: made })
      const two = yield* wrap({ post: made })
      const first = yield* fork(settle(() => one.post.execute({ text: "x" }, call)))
      yield* Deferred.await(gate.reached)
      const second = yield* fork(settle(() => two.post.execute({ text: "x" }, call)))
      yield* Deferred.succeed(gate.open, undefined)
      assert.deepStrictEqual(yield* Fiber.join(second), yield* Fiber.join(first))
      assert.lengthOf(applied, 1)
      assert.sameMembers(outcomes, ["executed", "joined"])
    }).pipe(Effect.scoped, Effect.provide([gated, listening(outcomes)]))
  })

  it.effect("do not take an effect from each other when the scope of one closes", () => {
    const outcomes: Array<string> = []
    return Effect.gen(function*() {
      const { applied, gate } = yield* Remote
      const made = yield* post
      const scope = yield* Scope.make()
      const one = yield* Scope.provide(wrap({ post: made }), scope)
      const two = yield* wrap({ post: made })
      const first = yield* fork(Effect.exit(settle(() => one.post.execute({ text: "x" }, call))))
      yield* Deferred.await(gate.reached)
      const second = yield* fork(settle(() => two.post.execute({ text: "x" }, call)))
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.join(first)))
      yield* Deferred.succeed(gate.open, undefined)
      assert.deepStrictEqual(yield* Fiber.join(second), { id: 1, text: "x" })
      assert.lengthOf(applied, 1)
      // not stopped and started anew
      assert.deepStrictEqual(outcomes, ["interrupted", "joined"])
    }).pipe(Effect.scoped, Effect.provide([gated, listening(outcomes)]))
  })

  it.effect("start from the original: a tool that is wrapped again belongs to the new run alone", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      const scope = yield* Scope.make()
      const earlier = yield* Scope.provide(
        wrapToolsForRun({ post: yield* post }, yield* ToolContext, store, () => false),
        scope
      )
      const again = yield* Effect.flatMap(ToolContext, (ctx) => wrapToolsForRun(earlier, ctx, store)).pipe(
        Effect.provide(ToolContext.layer({ runId: "run-2" }))
      )
      yield* Scope.close(scope, Exit.void)
      yield* settle(() => again.post.execute({ text: "x" }, call))
      const { applied } = yield* Remote
      assert.lengthOf(applied, 1)
      const records = yield* Stream.runCollect(store.list())
      assert.deepStrictEqual(records.map(({ runId }) => runId), ["run-2"])
      const failed = yield* Effect.exit(settle(() => earlier.post.execute({ text: "x" }, call)))
      assert.isTrue(Exit.isFailure(failed))
      assert.lengthOf(applied, 1)
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(EffectStore.layerMemory, Remote.layer, run))))
})
