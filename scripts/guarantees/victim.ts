/**
 * A process that is killed, and the one that comes after it: `node victim.ts <folder> <ledger>`. The effect is a line of a
 * file, which its check looks for.
 */
import { defineEffectTool } from "chamvi-effect"
import { SqlEffectStore } from "chamvi-effect/SqlEffectStore"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { CrashLab } from "chamvi-effect/testing"
import { Effect, Layer, Schema } from "effect"
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as SqliteClient from "../../src/SqliteClient.ts"

const [folder = "", ledger = ""] = process.argv.slice(2)
const file = join(folder, "lines")
const filename = join(folder, "ledger.sqlite")

const line = defineEffectTool({
  description: "Writes a line.",
  inputSchema: Schema.Struct({ line: Schema.Int }),
  // the lease of the one that is killed is longer than that
  waitFor: "1 second",
  alreadyApplied: (key) =>
    Effect.sync(() => existsSync(file) && readFileSync(file, "utf8").includes(key) ? "written" : undefined),
  execute: (_, { effectKey }) =>
    Effect.sync(() => {
      appendFileSync(file, `${effectKey}\n`)
      return "written"
    })
})

Effect.runFork(CrashLab.child({
  tool: line,
  input: { line: 1 },
  store: ledger === "program's"
    ? SqlEffectStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename })))
    : SqliteEffectStore.layer({ filename, mode: ledger === "fast" ? "fast" : "durable" })
}))
