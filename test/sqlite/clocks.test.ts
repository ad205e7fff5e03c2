import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Effect } from "effect"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { wrongClocks } from "../network/clocks.ts"

wrongClocks(
  "SqliteEffectStore",
  true,
  Effect.gen(function*() {
    const open = SqliteEffectStore.make({ filename: `${yield* temporaryDirectory}/ledger.sqlite` })
    return [yield* open, yield* open] as const
  })
)
