/**
 * A place for a SQLite ledger in a folder of its own, which is removed with the scope.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem } from "effect"

export const ledgerFile = FileSystem.FileSystem.pipe(
  Effect.flatMap((fs) => fs.makeTempDirectoryScoped({ prefix: "chamvi-example-" })),
  Effect.map((folder) => `${folder}/ledger.sqlite`),
  Effect.provide(NodeFileSystem.layer)
)
