/**
 * The ledgers that can be run anywhere, without a server.
 */
import { EffectStore } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Effect, Layer, type Scope } from "effect"
import type { SqlClient } from "effect/sql"
import { join } from "node:path"
import { temporaryDirectory } from "../../test/fixtures/temporaryDirectory.ts"
import type { Remote } from "./remote.ts"

/** A ledger, which may live in the database of the tool's world. */
export type Store = Layer.Layer<EffectStore, unknown, Remote | SqlClient.SqlClient>

export interface LabStore {
  readonly name: string
  readonly layer: Store
  /** Whether it lives in the program's own database. */
  readonly inProgramsDatabase: boolean
}

const onFile = (mode: "durable" | "fast"): Layer.Layer<EffectStore, unknown> =>
  Layer.unwrap(
    Effect.map(
      temporaryDirectory,
      (folder) => SqliteEffectStore.layer({ filename: join(folder, "ledger.sqlite"), mode })
    )
  )

/** All of them, opened once until the scope closes: the lab keeps its points apart. */
export const openStores = Effect.gen(function*() {
  const opened = (layer: Layer.Layer<EffectStore, unknown>): Effect.Effect<Store, unknown, Scope.Scope> =>
    Effect.map(Layer.build(layer), (context) => Layer.succeedContext(context))
  const stores: ReadonlyArray<LabStore> = [
    { name: "memory", layer: yield* opened(EffectStore.layerMemory), inProgramsDatabase: false },
    { name: "SQLite, durable", layer: yield* opened(onFile("durable")), inProgramsDatabase: false },
    { name: "SQLite, fast", layer: yield* opened(onFile("fast")), inProgramsDatabase: false },
    { name: "SQL in the program's SQLite", layer: SqlEffectStore.layer(), inProgramsDatabase: true }
  ]
  return stores
})
