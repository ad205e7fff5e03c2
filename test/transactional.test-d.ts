import type { LanguageModel } from "ai"
import type { Ai, EffectNestedError, EffectStore, ToolContext } from "chamvi-effect"
import { applyOnce, defineEffectTool, generateText } from "chamvi-effect"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { SqlClient } from "effect/sql"
import { describe, expectTypeOf, it } from "vitest"

declare const model: LanguageModel

type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never
type Failures<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E : never

const insert = (note: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.as(sql`INSERT INTO notes (note) VALUES (${note})`, note.length))

describe("transactional: true", () => {
  it("changes nothing of a tool's types", () => {
    const note = defineEffectTool({
      inputSchema: Schema.Struct({ note: Schema.String }),
      transactional: true,
      execute: ({ note }) => insert(note)
    })
    expectTypeOf<Services<typeof note>>().toEqualTypeOf<SqlClient.SqlClient>()
    const call = Effect.gen(function*() {
      return yield* generateText({ model, prompt: "Note it.", tools: { note: yield* note } })
    })
    expectTypeOf<Services<typeof call>>().toEqualTypeOf<SqlClient.SqlClient | Ai | EffectStore | ToolContext>()
    // @ts-expect-error it is true or false
    void defineEffectTool({ inputSchema: Schema.Struct({}), transactional: "yes", execute: () => Effect.succeed(1) })
  })

  it("leaves applyOnce its services and errors", () => {
    const call = applyOnce({ key: "k", transactional: true, execute: () => insert("x") })
    expectTypeOf<Services<typeof call>>().toEqualTypeOf<SqlClient.SqlClient | EffectStore>()
    expectTypeOf<Extract<Failures<typeof call>, SqlError | EffectNestedError>>().toEqualTypeOf<
      SqlError | EffectNestedError
    >()
    expectTypeOf<Effect.Success<typeof call>>().toEqualTypeOf<number>()
  })
})
