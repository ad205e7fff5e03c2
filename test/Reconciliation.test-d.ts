import {
  applyOnce,
  type EffectRecordError,
  type EffectResolution,
  type EffectStore,
  type EffectToolError
} from "chamvi-effect"
import { Context, Effect, Schema, type Scope } from "effect"
import { describe, expectTypeOf, it } from "vitest"

class Remote
  extends Context.Service<Remote, { readonly find: Effect.Effect<{ id: number } | undefined> }>()("t/Remote")
{}
class Other extends Context.Service<Other, { readonly apply: Effect.Effect<{ id: number }, "down"> }>()("t/Other") {}

describe("applyOnce", () => {
  it("infers result, errors and services from both hooks, in either order", () => {
    const one = applyOnce({
      key: "k",
      alreadyApplied: () => Effect.flatMap(Remote, (remote) => remote.find),
      execute: () => Effect.flatMap(Other, (other) => other.apply)
    })
    expectTypeOf(one).toEqualTypeOf<
      Effect.Effect<{ id: number }, "down" | EffectToolError, EffectStore | Remote | Other>
    >()
    const other = applyOnce({
      key: "k",
      execute: () => Effect.flatMap(Other, (other) => other.apply),
      alreadyApplied: (_key) => Effect.flatMap(Remote, (remote) => remote.find)
    })
    expectTypeOf(other).toEqualTypeOf(one)
  })

  it("gives each call a Scope of its own", () => {
    const scoped = applyOnce({
      key: "k",
      execute: () => Effect.as(Effect.addFinalizer(() => Effect.void) as Effect.Effect<void, never, Scope.Scope>, 1)
    })
    expectTypeOf<Effect.Services<typeof scoped>>().toEqualTypeOf<EffectStore>()
  })

  it("asks for a schema where JSON cannot carry the result", () => {
    // @ts-expect-error a Date is not JSON
    void applyOnce({ key: "k", execute: () => Effect.succeed(new Date()) })
    const dated = applyOnce({ key: "k", schema: Schema.Date, execute: () => Effect.succeed(new Date()) })
    expectTypeOf<Effect.Success<typeof dated>>().toEqualTypeOf<Date>()
  })

  it("infers the result through a schema when execute takes the key", () => {
    class Receipt extends Schema.Class<Receipt>("Receipt")({ id: Schema.Int }) {}
    const make = (key: string) => Effect.succeed(new Receipt({ id: key.length }))
    const charged = applyOnce({ key: "k", schema: Receipt, execute: (key) => make(key) })
    expectTypeOf<Effect.Success<typeof charged>>().toEqualTypeOf<Receipt>()
    const counted = applyOnce({
      key: "k",
      execute: (key) => Effect.succeed({ n: key.length }),
      schema: Schema.Struct({ n: Schema.Int })
    })
    expectTypeOf<Effect.Success<typeof counted>>().toEqualTypeOf<{ n: number }>()
    // @ts-expect-error a Date is not JSON
    void applyOnce({ key: "k", execute: (key) => Effect.succeed(new Date(key)) })
    // @ts-expect-error the schema of another result
    void applyOnce({ key: "k", schema: Schema.Struct({ m: Schema.Int }), execute: (key) => Effect.succeed({ n: key }) })
  })

  it("takes as the remote's answer the result, undefined, or a resolution, and null only where it is a result", () => {
    void applyOnce({
      key: "k",
      execute: () => Effect.succeed({ id: 1 }),
      // @ts-expect-error a string is not the result
      alreadyApplied: () => Effect.succeed("yes")
    })
    void applyOnce({
      key: "k",
      execute: () => Effect.succeed({ id: 1 }),
      // @ts-expect-error null is not the result
      alreadyApplied: () => Effect.succeed(null)
    })
    void applyOnce({
      key: "k",
      execute: () => Effect.succeed(null as { id: number } | null),
      alreadyApplied: () => Effect.succeed(null)
    })
    void applyOnce({
      key: "k",
      execute: () => Effect.succeed({ id: 1 }),
      alreadyApplied: () => Effect.succeed<EffectResolution<{ id: number }> | undefined>(undefined)
    })
  })

  it("names the library's own errors", () => {
    expectTypeOf<EffectRecordError>().toExtend<EffectToolError>()
  })
})
