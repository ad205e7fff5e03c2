// mistakes are made here on purpose: @effect-diagnostics missingEffectError:off
import { jsonSchema, type JSONValue, type ToolSet } from "ai"
import { Context, Effect, type Option, Schema, type SchemaGetter, type Scope } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { z } from "zod"
import { tool } from "../src/Tool.ts"

class Clock1 extends Context.Service<Clock1, { readonly now: Effect.Effect<number> }>()("test/Clock1") {}
class Clock2 extends Context.Service<Clock2, { readonly now: Effect.Effect<number> }>()("test/Clock2") {}
class Decoder extends Context.Service<Decoder, string>()("test/Decoder") {}

type Input<T> = T extends Effect.Effect<{ execute: (input: infer I, ...rest: never) => unknown }, never, unknown> ? I
  : never
type Output<T> = T extends Effect.Effect<{ execute: (...args: never) => PromiseLike<infer O> }, never, unknown> ? O
  : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

describe("tool", () => {
  it("infers decoded input for the hooks, and JSON forms for the AI SDK", () => {
    const made = tool({
      inputSchema: Schema.Struct({
        at: Schema.Date,
        note: Schema.Option(Schema.String),
        tag: Schema.optional(Schema.String),
        count: Schema.BigInt
      }),
      execute: (input) => {
        expectTypeOf(input.at).toEqualTypeOf<Date>()
        expectTypeOf(input.note).toEqualTypeOf<Option.Option<string>>()
        expectTypeOf(input.count).toEqualTypeOf<bigint>()
        return Effect.succeed({ ok: true })
      }
    })
    expectTypeOf<Input<typeof made>>().toEqualTypeOf<{
      readonly at: string
      readonly note: { readonly _tag: "Some"; readonly value: string } | { readonly _tag: "None" }
      readonly tag?: string | null
      readonly count: string
    }>()
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<{ ok: boolean }>()
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<never>()
  })

  it("takes Zod, jsonSchema() and Standard Schema", () => {
    const zod = tool({ inputSchema: z.object({ q: z.string() }), execute: ({ q }) => Effect.succeed(q.length) })
    expectTypeOf<Input<typeof zod>>().toEqualTypeOf<{ q: string }>()
    const json = tool({ inputSchema: jsonSchema<{ n: number }>({}), execute: ({ n }) => Effect.succeed(n) })
    expectTypeOf<Input<typeof json>>().toEqualTypeOf<{ n: number }>()
    const standard = tool({
      inputSchema: Schema.toStandardSchemaV1(Schema.Struct({ s: Schema.String })),
      execute: ({ s }) => Effect.succeed(s)
    })
    expectTypeOf<Input<typeof standard>>().toEqualTypeOf<{ readonly s: string }>()
  })

  it("widens literal results", () => {
    const made = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed("sent") })
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<string>()
    const record = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.succeed({ status: "sent", count: 1 }) })
    expectTypeOf<Output<typeof record>>().toEqualTypeOf<{ status: string; count: number }>()
  })

  it("requires the services of every hook and of the schemas, without Scope", () => {
    const Secret = Schema.String.pipe(Schema.decode({
      decode: {} as never as ReturnType<typeof secretGetter>,
      encode: {} as never
    }))
    const made = tool({
      inputSchema: Schema.Struct({ secret: Secret }),
      execute: () =>
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Effect.void)
          return yield* (yield* Clock1).now
        }),
      onInputAvailable: () => Effect.asVoid(Clock2),
      toModelOutput: ({ output }) => Effect.succeed({ type: "text", value: output.toFixed() })
    })
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<Clock1 | Clock2 | Decoder>()
    expectTypeOf<Extract<Services<typeof made>, Scope.Scope>>().toEqualTypeOf<never>()
  })

  it("infers an inline Effect.fn", () => {
    const made = tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      execute: Effect.fn(function*({ a }) {
        return { a, now: yield* (yield* Clock1).now }
      })
    })
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<{ a: number; now: number }>()
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<Clock1>()
  })

  it("infers an inline Effect.fn beside a toModelOutput where there is an outputSchema", () => {
    const made = tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      outputSchema: Schema.Struct({ a: Schema.Int }),
      execute: Effect.fn(function*({ a }) {
        yield* Clock1
        return { a }
      }),
      toModelOutput: ({ output }) => ({ type: "text", value: output.a.toFixed() })
    })
    expectTypeOf<Services<typeof made>>().toEqualTypeOf<Clock1>()
  })

  it("lets an Effect Schema carry what JSON cannot, and a Zod schema not", () => {
    const made = tool({
      inputSchema: Schema.Struct({}),
      outputSchema: Schema.Struct({ at: Schema.Date }),
      execute: () => Effect.succeed({ at: new Date(0) }),
      toModelOutput: ({ output }) => ({ type: "text", value: output.at.toISOString() })
    })
    expectTypeOf<Output<typeof made>>().toEqualTypeOf<{ readonly at: string }>()
    void tool({
      inputSchema: Schema.Struct({}),
      outputSchema: z.object({ n: z.number() }),
      execute: () => Effect.succeed({ n: 1 })
    })
  })

  it("takes a result that is not JSON with an Effect Schema only", () => {
    void tool({
      inputSchema: Schema.Struct({}),
      // @ts-expect-error Zod has no encoder
      outputSchema: z.object({ at: z.date() }),
      execute: () => Effect.succeed({ at: new Date(0) })
    })
    void tool({
      inputSchema: Schema.Struct({}),
      // @ts-expect-error a JSON Schema has no encoder
      outputSchema: jsonSchema<{ at: Date }>({ type: "object" }),
      execute: () => Effect.succeed({ at: new Date(0) })
    })
    void tool({
      inputSchema: Schema.Struct({}),
      outputSchema: z.object({ n: z.number() }),
      execute: () => Effect.succeed({ n: 1 })
    })
  })

  it("takes results that JSON carries: interfaces, optional fields, unions, arrays, brands, void, recursion", () => {
    interface Tree {
      readonly name: string
      readonly children?: ReadonlyArray<Tree>
      readonly size: number | null
      readonly id: string & { readonly brand: "Id" }
    }
    const of = <T>(): Effect.Effect<T> => Effect.die("types only")
    void tool({ inputSchema: Schema.Struct({}), execute: () => of<Tree>() })
    void tool({ inputSchema: Schema.Struct({}), execute: () => of<Tree | "none" | undefined>() })
    void tool({ inputSchema: Schema.Struct({}), execute: () => Effect.void })
    void tool({ inputSchema: Schema.Struct({}), execute: () => of<JSONValue>() })
    void tool({ inputSchema: Schema.Struct({}), execute: () => of<readonly [string, number]>() })
  })

  it("asks for an outputSchema where JSON cannot carry the result", () => {
    const of = <T>(): Effect.Effect<T> => Effect.die("types only")
    const inputSchema = Schema.Struct({})
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<Date>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<{ n: bigint }>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<Map<string, string>>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<Option.Option<string>>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<Error>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<unknown>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<ReadonlyArray<string | undefined>>() })
    // @ts-expect-error Property 'outputSchema' is missing
    void tool({ inputSchema, execute: () => of<{ f: () => void }>() })
  })

  it("reports a mistake where it is made", () => {
    void tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      // @ts-expect-error there is no b
      execute: ({ b: _b }) => Effect.succeed(1)
    })
    void tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      outputSchema: Schema.Struct({ at: Schema.Date }),
      // @ts-expect-error the result has no at
      execute: () => Effect.succeed({ id: 1 })
    })
    void tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      execute: ({ a }) => Effect.succeed(a),
      // @ts-expect-error a number is no text
      toModelOutput: ({ output }) => ({ type: "text", value: output })
    })
    void tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      execute: ({ a }) => Effect.succeed(a),
      // @ts-expect-error callbacks cannot fail
      onInputStart: () => Effect.fail("no")
    })
    void tool({
      inputSchema: Schema.Struct({ a: Schema.Int }),
      execute: ({ a }) => Effect.succeed(a),
      // @ts-expect-error misspelt
      descripton: "x"
    })
  })

  it("gives hooks the decoded context, and the call's toolsContext the encoded one", () => {
    const made = tool({
      inputSchema: Schema.Struct({}),
      contextSchema: Schema.Struct({ since: Schema.DateFromString }),
      execute: (_, { context }) => {
        expectTypeOf(context.since).toEqualTypeOf<Date>()
        return Effect.void
      }
    })
    type C = typeof made extends Effect.Effect<{ execute: (i: never, o: infer Opt) => unknown }> ? Opt
      : never
    expectTypeOf<C extends { context: infer X } ? X : never>().toEqualTypeOf<{ readonly since: string }>()
  })

  it("fits into the AI SDK's ToolSet", () => {
    const made = tool({ inputSchema: Schema.Struct({ a: Schema.Date }), execute: () => Effect.succeed(1) })
    type Made = typeof made extends Effect.Effect<infer T> ? T : never
    expectTypeOf<{ made: Made }>().toExtend<ToolSet>()
  })
})

declare const secretGetter: () => SchemaGetter.Getter<string, string, Decoder>
