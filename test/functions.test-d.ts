import type { Embedding, EmbeddingModel, RerankingModel } from "ai"
import { Context, Effect } from "effect"
import { describe, expectTypeOf, it } from "vitest"
import { type Ai, type AiError, embed, embedMany, type EmbedOptions, rerank } from "chamvi-effect"
import type { Same } from "./support/types.ts"

class Audit extends Context.Service<Audit, { readonly note: (line: string) => Effect.Effect<void> }>()("app/Audit") {}
class Bill extends Context.Service<Bill, { readonly add: (tokens: number) => Effect.Effect<void> }>()("app/Bill") {}

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never
type Failure<T> = T extends Effect.Effect<unknown, infer E, unknown> ? E : never
type Services<T> = T extends Effect.Effect<unknown, unknown, infer R> ? R : never

declare const model: EmbeddingModel
declare const ranking: RerankingModel

describe("functions without tools", () => {
  it("need an Ai, and fail with AiError", () => {
    const call = embed({ model, value: "sun" })
    expectTypeOf<Same<Services<typeof call>, Ai>>().toEqualTypeOf<true>()
    expectTypeOf<Failure<typeof call>>().toEqualTypeOf<AiError>()
    expectTypeOf<Success<typeof call>["embedding"]>().toEqualTypeOf<Embedding>()
  })

  it("need the services of both callbacks, without Scope", () => {
    const call = embedMany({
      model,
      values: ["sun"],
      runtimeContext: { user: "ada" },
      onStart: ({ runtimeContext }) => Effect.flatMap(Audit, (audit) => audit.note(runtimeContext.user)),
      onEnd: ({ usage }) =>
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Effect.void)
          yield* (yield* Bill).add(usage.tokens)
        })
    })
    expectTypeOf<Same<Services<typeof call>, Ai | Audit | Bill>>().toEqualTypeOf<true>()
    const sync = embedMany({ model, values: ["sun"], onStart: () => {}, onEnd: async () => {} })
    expectTypeOf<Same<Services<typeof sync>, Ai>>().toEqualTypeOf<true>()
  })

  it("take no callback that can fail, and no misspelt option", () => {
    type OnStart = NonNullable<EmbedOptions["onStart"]>
    expectTypeOf<() => Effect.Effect<void>>().toExtend<OnStart>()
    expectTypeOf<() => Effect.Effect<void, string>>().not.toExtend<OnStart>()
    // @ts-expect-error not an option
    void embed({ model, value: "sun", maxRetry: 1 })
  })

  it("keep the type of the documents", () => {
    const call = rerank({ model: ranking, query: "q", documents: [{ id: 1 }, { id: 2 }], onEnd: () => Effect.void })
    expectTypeOf<Success<typeof call>["rerankedDocuments"]>().toEqualTypeOf<Array<{ id: number }>>()
  })
})
