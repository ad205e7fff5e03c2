import { defineEffectTool, type EffectStore } from "chamvi-effect"
import { CrashLab, type CrashLabError, type CrashReport } from "chamvi-effect/testing"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expectTypeOf, it } from "vitest"

class Remote extends Context.Service<Remote, { readonly count: number }>()("test/Remote") {
  static readonly layer = Layer.succeed(Remote, { count: 0 })
}
class Other extends Context.Service<Other, { readonly other: string }>()("test/Other") {}

const tool = defineEffectTool({
  inputSchema: Schema.Struct({ at: Schema.Date }),
  execute: () => Effect.as(Remote, "done")
})
const input = { at: "2026-01-01T00:00:00.000Z" }
const count = () => Effect.map(Remote, ({ count }) => count)

describe("CrashLab", () => {
  it("needs what its world does not give, and fails with its own error only", () => {
    expectTypeOf(CrashLab.run({ tool, input, count, world: Remote.layer }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError>>()
    expectTypeOf(CrashLab.run({ tool, input, count }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError, Remote>>()
    const world = Layer.effect(Remote, Effect.as(Other, { count: 0 }))
    expectTypeOf(CrashLab.run({ tool, input, count, world }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError, Other>>()
    const loseReply = Effect.as(Other, undefined)
    expectTypeOf(CrashLab.run({ tool, input, count, world: Remote.layer, loseReply }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError, Other>>()
    const store = Layer.unwrap(Effect.as(Other, {} as Layer.Layer<EffectStore>))
    expectTypeOf(CrashLab.run({ tool, input, count, world: Remote.layer, store }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError, Other>>()
  })

  it("takes the input of the tool, in JSON form", () => {
    // @ts-expect-error a Date is a string there
    void CrashLab.run({ tool, input: { at: new Date(0) }, count, world: Remote.layer })
    // @ts-expect-error it is the input of all other calls, too
    void CrashLab.run({ tool, input, inOtherWords: {}, count, world: Remote.layer })
    // @ts-expect-error an effect tool
    void CrashLab.run({ tool: Effect.succeed({ execute: (_: string) => "done" }), input: "", count })
  })

  it("takes what applyOnce takes, and ties its check to its result", () => {
    const effect = { key: "k", execute: () => Effect.as(Remote, { id: 1 }) }
    expectTypeOf(CrashLab.runApplyOnce({ effect, count, world: Remote.layer }))
      .toEqualTypeOf<Effect.Effect<CrashReport, CrashLabError>>()
    void CrashLab.runApplyOnce({
      // @ts-expect-error the check answers another type
      effect: { ...effect, alreadyApplied: () => Effect.succeed("yes") },
      count
    })
  })
})
