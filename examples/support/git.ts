/**
 * Running git, and a bare repository that kills the agent that pushes to it.
 */
import { Effect, FileSystem, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export class GitError extends Schema.TaggedError<GitError>()("GitError", {
  command: Schema.String,
  cause: Schema.Defect()
}) {}

// nothing of the machine's own settings
const env = {
  GIT_AUTHOR_NAME: "agent",
  GIT_AUTHOR_EMAIL: "agent@example.com",
  GIT_COMMITTER_NAME: "agent",
  GIT_COMMITTER_EMAIL: "agent@example.com",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1"
}

/** What git prints, without the white space around it. */
export const git = Effect.fn("git")(
  function*(cwd: string, ...args: ReadonlyArray<string>) {
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const handle = yield* spawner.spawn(ChildProcess.make("git", args, { cwd, env, extendEnv: true }))
    const output = yield* handle.all.pipe(Stream.decodeText(), Stream.mkString)
    // reading the output alone would take a push that was refused for one that was done
    const code = yield* handle.exitCode
    return code === 0 ? output.trim() : yield* Effect.fail(output)
  },
  Effect.scoped,
  (run, _cwd, ...args) => Effect.mapError(run, (cause) => new GitError({ command: `git ${args.join(" ")}`, cause }))
)

// git runs this after the branch has moved, and before whoever pushed is answered
const killer = `#!/bin/sh
[ -z "$AGENT_PID" ] || kill -9 "$AGENT_PID"
`

/** A bare repository with one commit on main. A process that pushes with its AGENT_PID in the environment dies of it. */
export const makeDeadlyRemote = Effect.fn("makeDeadlyRemote")(function*(folder: string) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.makeDirectory(folder)
  yield* git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
  const nothing = yield* git(folder, "hash-object", "-t", "tree", "-w", "/dev/null")
  const start = yield* git(folder, "commit-tree", nothing, "-m", "Start")
  yield* git(folder, "update-ref", "refs/heads/main", start)
  yield* fs.writeFileString(`${folder}/hooks/post-receive`, killer, { mode: 0o755 })
})
