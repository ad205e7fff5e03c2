import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { Effect, Layer } from "effect"
import { wrongClocks } from "../network/clocks.ts"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"

wrongClocks(
  "SqlEffectStore on Postgres",
  !noPostgres,
  Effect.gen(function*() {
    const schema = yield* freshSchema
    const open = Effect.flatMap(
      Layer.build(pool()),
      (context) => Effect.provide(SqlEffectStore.make({ schema }), context)
    )
    return [yield* open, yield* open] as const
  })
)
