import { assert, describe, it } from "@effect/vitest"
import { applyOnce, defineEffectTool, EffectSettings, EffectStore, type SettingsOptions } from "chamvi-effect"
import { Cause, Effect, Exit, Schema } from "effect"

const bad: ReadonlyArray<readonly [option: keyof SettingsOptions | "settle", value: unknown]> = [
  ["whenInDoubt", "ask"],
  ["whenInDoubt", true],
  ["onInputChange", "keep"],
  ["waitFor", "1 sec"],
  ["waitFor", -1],
  ["lease", "soon"],
  ["lease", "Infinity"],
  ["lease", Number.NaN],
  ["storeTimeout", true],
  ["recordTimeout", "a while"],
  ["largestResult", 0],
  ["largestResult", "1 MiB"]
]

const toolOptions = new Set<string>(["whenInDoubt", "onInputChange", "waitFor", "lease"])

const problemOf = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.map(Effect.exit(effect), (exit) => Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "none")

describe("Settings that only JavaScript or a configuration can get wrong", () => {
  for (const [option, value] of bad) {
    const given = { [option]: value } as SettingsOptions
    const names = new RegExp(`option ${option} of`)

    it.effect(`${option}: ${String(value)} is refused by EffectSettings.layer, which names it`, () =>
      Effect.gen(function*() {
        assert.match(yield* problemOf(Effect.provide(Effect.void, EffectSettings.layer(given))), names)
      }))

    it.effect(`${option}: ${String(value)} is refused by applyOnce, and nothing runs`, () =>
      Effect.gen(function*() {
        let ran = false
        const call = applyOnce({ key: "k", execute: () => Effect.sync(() => ran = true), ...given })
        assert.match(yield* problemOf(Effect.provide(call, EffectStore.layerMemory)), names)
        assert.isFalse(ran)
      }))
  }

  for (const [option, value] of bad.filter(([option]) => toolOptions.has(option))) {
    it.effect(`${option}: ${String(value)} is refused when a tool is made`, () =>
      Effect.gen(function*() {
        const made = defineEffectTool({
          inputSchema: Schema.Struct({}),
          execute: () => Effect.succeed(1),
          ...{ [option]: value } as { readonly lease?: number }
        })
        assert.match(yield* problemOf(made), new RegExp(`option ${option} of defineEffectTool`))
      }))
  }

  it.effect("settle: \"soon\" is refused where it is given", () =>
    Effect.gen(function*() {
      const settle = "soon" as never
      const made = defineEffectTool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed(1), settle })
      assert.match(yield* problemOf(made), /option settle of defineEffectTool/)
      const call = applyOnce({ key: "k", execute: () => Effect.succeed(1), settle })
      assert.match(yield* problemOf(Effect.provide(call, EffectStore.layerMemory)), /option settle of applyOnce/)
    }))
})
