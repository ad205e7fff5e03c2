/**
 * How soon a ledger sees that the holder of a claim has been killed: by real processes, of which the first is killed with
 * a claim of an hour.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { CrashLab } from "chamvi-effect/testing"
import { Context, Effect, Layer } from "effect"
import { ChildProcess } from "effect/process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { temporaryDirectory } from "../../test/fixtures/temporaryDirectory.ts"

export type Ledger = "durable" | "fast" | "program's"

class Folder extends Context.Service<Folder, string>()("scripts/guarantees/Folder") {
  static readonly layer = Layer.effect(Folder, temporaryDirectory)
}

const script = fileURLToPath(new URL("victim.ts", import.meta.url))
const killed = "killed after execute"

const lines = (folder: string): number => {
  const file = join(folder, "lines")
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0
}

export const seesDeaths = (ledger: Ledger) =>
  CrashLab.runProcesses({
    world: Folder.layer,
    command: Effect.map(
      Folder,
      (folder) =>
        ChildProcess.make(process.execPath, ["--conditions=chamvi-source", "--no-warnings", script, folder, ledger])
    ),
    count: () => Effect.map(Folder, lines),
    lease: "1 hour",
    only: (point) => point === killed
  }).pipe(
    Effect.map(({ points }) => {
      const point = points.find(({ name }) => name === killed)
      const next = point?.calls[1]
      if (point?.applied === 1 && next?.outcome === "reconciled" && next.flags.includes("takenOver")) return "at once"
      if (point?.applied === 1 && next?.outcome === "inProgress") return "after its lease"
      throw new Error(`a killed holder's key, on the ledger ${ledger}: ${JSON.stringify(point)}`)
    }),
    Effect.provide(NodeServices.layer)
  )
