import { Effect } from "effect"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { races } from "./race.ts"

races(
  "SqliteEffectStore",
  true,
  Effect.map(temporaryDirectory, (directory) => ({
    store: "sqlite" as const,
    filename: `${directory}/ledger.sqlite`,
    mode: "fast" as const
  }))
)
