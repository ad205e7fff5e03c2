/**
 * A git push: the commit carries the effect key as a trailer, and `alreadyApplied` looks for it in the remote's log.
 *
 * The first agent is a process that dies by SIGKILL while it pushes: the commit is on the branch, and nobody heard of it.
 * The second one finds it there, although its model says it in other words.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { isStepCount } from "ai"
import { Ai, defineEffectTool, EffectEvent, generateText, ToolContext } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Config, Console, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { git, makeDeadlyRemote } from "./support/git.ts"
import { Commit, Repository } from "./support/Repository.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

const release = defineEffectTool({
  description: "Pushes the release notes of a version.",
  inputSchema: Schema.Struct({ version: Schema.String, notes: Schema.String }),
  outputSchema: Commit,
  // one release per version, in whatever run and in whatever words
  effectKey: ({ version }) => `release:${version}`,
  alreadyApplied: (key) => Effect.flatMap(Repository, (repository) => repository.find(key)),
  execute: ({ notes, version }, { effectKey }) =>
    Effect.flatMap(
      Repository,
      (repository) => repository.push({ path: "NOTES.md", content: notes }, `Release ${version}`, effectKey)
    )
})

const agent = Effect.fn("agent")(function*(notes: string) {
  const result = yield* generateText({
    model: scriptedModel(calls(["release", { version: "1.4.2", notes }]), says("It is out.")),
    prompt: "Release version 1.4.2.",
    stopWhen: isStepCount(2),
    tools: { release: yield* release }
  })
  yield* Console.log(result.text)
})

const layersIn = (folder: string) =>
  Layer.mergeAll(
    Ai.layer,
    Repository.layer(`${folder}/remote.git`, folder),
    SqliteEffectStore.layer({ filename: `${folder}/ledger.sqlite` }),
    ToolContext.layer({ runId: "run-1" }),
    EffectEvent.layer((event) => Console.log(event.outcome, event.takenOver ? "(claim taken over)" : ""))
  )

const main = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "chamvi-example-" })
  const remote = `${folder}/remote.git`
  yield* makeDeadlyRemote(remote)

  // `exec` keeps the shell's process id, so the remote learns whom to kill
  const self = ["AGENT_PID=$$ exec \"$@\"", "sh", process.execPath, ...process.execArgv, import.meta.filename]
  const shell = ChildProcess.make("sh", ["-c", ...self], { env: { FOLDER: folder }, extendEnv: true })
  const death = yield* Effect.flip(spawner.exitCode(shell))
  yield* Console.log(String(death.cause).match(/SIG\w+/)?.[0]) // => SIGKILL
  yield* Console.log(yield* git(remote, "log", "--format=%s", "main"))
  // => Release 1.4.2
  // => Start
  yield* Effect.provide(agent("Version 1.4.2 has the fix."), layersIn(folder))
  // => reconciled (claim taken over)
  // => It is out.
  yield* Console.log(yield* git(remote, "rev-list", "--count", "main")) // => 2
})

const first = (folder: string) => Effect.provide(agent("Fixed in 1.4.2."), layersIn(folder))
Config.option(Config.String("FOLDER")).pipe(
  Effect.flatMap(Option.match({ onNone: () => main, onSome: first })),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
