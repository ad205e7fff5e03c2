import { assert, describe, it } from "@effect/vitest"
import { applyOnce, effectMarker, EffectStore } from "chamvi-effect"
import { Effect, Layer, Schedule, Schema } from "effect"
import { Activity, Workflow, WorkflowEngine } from "effect/workflow"
import { Remote } from "../support/remote.ts"

const Post = Workflow.make("Post", {
  payload: { id: Schema.String },
  idempotencyKey: ({ id }) => id,
  success: Schema.Int
})

describe("An effect inside an Activity of Effect's workflows", () => {
  it.live("stays single when the Activity is interrupted after the effect landed, and its engine runs it again", () => {
    let executions = 0
    const activity = (id: string) =>
      Activity.make({
        name: "post",
        success: Schema.Int,
        interruptRetryPolicy: Schedule.recurs(3),
        execute: Effect.gen(function*() {
          const remote = yield* Remote
          const applied = yield* applyOnce({
            key: `post:${id}`,
            alreadyApplied: (key) => remote.find(effectMarker(key)),
            execute: (key) => {
              executions++
              const landing = remote.apply(effectMarker(key))
              return executions === 1 ? Effect.andThen(landing, Effect.interrupt) : landing
            }
          })
          return applied.id
        }).pipe(Effect.orDie)
      })
    const workflow = Post.toLayer(({ id }) => activity(id))
    return Effect.gen(function*() {
      assert.strictEqual(yield* Post.execute({ id: "1" }), 1)
      assert.strictEqual(executions, 1)
      assert.lengthOf((yield* Remote).applied, 1)
    }).pipe(
      Effect.provide(
        workflow.pipe(
          Layer.provideMerge(WorkflowEngine.layerMemory),
          Layer.provideMerge(Layer.merge(EffectStore.layerMemory, Remote.layer))
        )
      )
    )
  })
})
