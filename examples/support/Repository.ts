/**
 * The main branch of a remote repository as an agent's tools use it: commits say which effect they are.
 */
import { idempotencyKey } from "chamvi-effect"
import { Context, Effect, FileSystem, Layer, Schema } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { git, GitError } from "./git.ts"

export class Commit extends Schema.Class<Commit>("Commit")({ hash: Schema.String, subject: Schema.String }) {}

const trailer = "Effect-Key"

export class Repository extends Context.Service<Repository, {
  /** The commit on the remote's branch that carries the effect key. */
  readonly find: (effectKey: string) => Effect.Effect<Commit | undefined, GitError>
  /** Commits a file on top of the remote's branch, and pushes. */
  readonly push: (
    file: { readonly path: string; readonly content: string },
    subject: string,
    effectKey: string
  ) => Effect.Effect<Commit, GitError>
}>()("examples/support/Repository") {
  /** `workspace` is the folder where the clone is made, and removed with the layer. */
  static readonly layer = (remote: string, workspace: string) =>
    Layer.effect(
      Repository,
      Effect.gen(function*() {
        const fs = yield* FileSystem.FileSystem
        const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
        const clone = yield* fs.makeTempDirectoryScoped({ directory: workspace, prefix: "clone-" })
        const run = (...args: ReadonlyArray<string>) =>
          Effect.provideService(git(clone, ...args), ChildProcessSpawner.ChildProcessSpawner, spawner)
        yield* run("clone", "--quiet", remote, ".")

        const find = Effect.fn("Repository.find")(function*(effectKey: string) {
          // what this clone saw last may be older than the push that is looked for
          yield* run("fetch", "--quiet", "origin", "main")
          const format = `--format=%H%x09%(trailers:key=${trailer},valueonly,separator=%x20)%x09%s`
          for (const line of (yield* run("log", "FETCH_HEAD", format)).split("\n")) {
            const [hash = "", key, subject = ""] = line.split("\t")
            if (key === idempotencyKey(effectKey)) return new Commit({ hash, subject })
          }
        })

        const push = Effect.fn("Repository.push")(function*(
          file: { readonly path: string; readonly content: string },
          subject: string,
          effectKey: string
        ) {
          yield* run("fetch", "--quiet", "origin", "main")
          yield* run("reset", "--quiet", "--hard", "FETCH_HEAD")
          yield* fs.writeFileString(`${clone}/${file.path}`, file.content).pipe(
            Effect.mapError((cause) => new GitError({ command: `write ${file.path}`, cause }))
          )
          yield* run("add", file.path)
          // a trailer is one line, and a key can be any text: the form for HTTP headers fits
          yield* run("commit", "--quiet", "-m", subject, "--trailer", `${trailer}: ${idempotencyKey(effectKey)}`)
          // not forced: of two agents that push at once, one is refused
          yield* run("push", "--quiet", "origin", "HEAD:main")
          return new Commit({ hash: yield* run("rev-parse", "HEAD"), subject })
        })

        return Repository.of({ find, push })
      })
    )
}
