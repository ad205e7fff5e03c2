/**
 * How slow the machine is at the moment, and a cache of compiled modules for the workers: half of what a start costs is compiling.
 */
import { Clock, Effect } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"

/** Milliseconds that a machine with nothing else to do takes at most. */
const usual = 1500
/** However slow the machine is, nobody waits longer than so many times as long as usual. */
const most = 6

/** How to start a script as a process whose modules are kept compiled in the directory. */
export const scriptArguments = (script: string, ...args: ReadonlyArray<string>): ReadonlyArray<string> => [
  "--conditions=chamvi-source",
  "--no-warnings",
  fileURLToPath(new URL(script, import.meta.url)),
  ...args
]

export const compiledIn = (directory: string): NodeJS.ProcessEnv => ({ ...process.env, NODE_COMPILE_CACHE: directory })

export const warmUp = Effect.gen(function*() {
  const directory = yield* temporaryDirectory
  const startedAt = yield* Clock.currentTimeMillis
  yield* Effect.acquireUseRelease(
    Effect.sync(() =>
      spawn(process.execPath, scriptArguments("load.ts"), { stdio: "inherit", env: compiledIn(directory) })
    ),
    (child) => Effect.callback<void>((resume) => void child.on("close", () => resume(Effect.void))),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  const pace = ((yield* Clock.currentTimeMillis) - startedAt) / usual
  return { compiled: compiledIn(directory), pace: Math.min(Math.max(1, pace), most) }
})
