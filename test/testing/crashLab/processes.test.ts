/**
 * The lab with processes of the operating system, which it kills.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { describe, expect, it } from "@effect/vitest"
import { CrashLab, type CrashReport } from "chamvi-effect/testing"
import { Context, Effect, FileSystem, Layer } from "effect"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"

class Folder extends Context.Service<Folder, string>()("test/testing/Folder") {
  static readonly layer = Layer.effect(
    Folder,
    Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped({ prefix: "chamvi-crash-lab-" }))
  )
}

const worker = fileURLToPath(new URL("../../fixtures/crashLabWorker.ts", import.meta.url))

const start = (script: string, ...args: ReadonlyArray<string>) =>
  ChildProcess.make(process.execPath, ["--conditions=chamvi-source", "--no-warnings", script, ...args])

const labOf = (tool: string) => ({
  world: Folder.layer,
  command: Effect.map(Folder, (folder) => start(worker, folder, tool)),
  count: (key: string) =>
    Effect.flatMap(
      Folder,
      (folder) =>
        Effect.flatMap(FileSystem.FileSystem, (fs) =>
          fs.readFileString(`${folder}/letters`).pipe(
            Effect.map((text) => text.split("\n").filter((line) => line === key).length),
            Effect.catch(() => Effect.succeed(0))
          ))
    )
})

const shown = ({ points }: CrashReport) =>
  points.map(({ applied, calls, name, verdict }) => {
    const ends = calls.map(({ flags, outcome }) => [outcome, ...flags].join(" "))
    return `${name}: ${verdict}, ${applied}, ${ends.join(", ")}`
  })

describe("CrashLab.runProcesses", () => {
  it.live(
    "kills real processes where they say that they are, and lets a tool pass that is right",
    () =>
      Effect.gen(function*() {
        const tried = [
          "killed after claim",
          "killed at written",
          "killed after record",
          "two calls at once in two processes"
        ]
        const report = yield* CrashLab.runProcesses({ ...labOf("checked"), only: (point) => tried.includes(point) })
        expect(shown(report)).toEqual([
          "no trouble: once, 1, executed",
          "killed after claim: once, 1, killed, executed takenOver, recorded",
          "killed at written: once, 1, killed, reconciled takenOver, recorded",
          "killed after record: once, 1, killed, recorded, recorded",
          expect.stringMatching(/^two calls at once in two processes: once, 1, .*executed.*recorded/)
        ])
        expect(report).toMatchObject({ tool: "letter", faults: [], notExamined: [] })
        CrashLab.assertOnce(report)
      }).pipe(Effect.provide(NodeServices.layer)),
    600_000
  )

  it.live("convicts a tool without a check, in those points that are asked for", () =>
    Effect.gen(function*() {
      const only = (point: string) => point === "killed at written"
      const report = yield* CrashLab.runProcesses({ ...labOf("unchecked"), only })
      expect(shown(report)).toEqual([
        "no trouble: once, 1, executed",
        "killed at written: twice, 2, killed, executed takenOver executedInDoubt, recorded"
      ])
      expect(report.faults.map(({ name }) => name)).toEqual(["NoCheck"])
    }).pipe(Effect.provide(NodeServices.layer)), 600_000)

  it.live("says what a process complained of that did not come so far", () =>
    Effect.gen(function*() {
      const lab = { ...labOf("checked"), command: start("/no/such/worker.ts") }
      const { message } = yield* Effect.flip(CrashLab.runProcesses(lab))
      expect(message).toContain("without a call of CrashLab.child")
      expect(message).toContain("Cannot find module")
    }).pipe(Effect.provide(NodeServices.layer)), 600_000)
})
