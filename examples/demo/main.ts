/**
 * The crash demo: an agent process is killed between its side effect and the record of it, and is started again.
 *
 * `npm start` runs it with a scripted model; `AI_MODEL=provider/name npm start` with a real one, through the AI SDK's
 * gateway. With a `DATABASE_URL` the ledger is in Postgres, with a `REDIS_URL` in Redis, else in a file.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { EffectStore } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Cause, Clock, ConfigProvider, Console, Effect, Exit, FileSystem, Layer, Path, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { isShared, layerLedger } from "./Ledger.ts"
import { Tracker } from "./Tracker.ts"

const startedAt = await Effect.runPromise(Clock.currentTimeMillis)

const say = (who: string, what: string) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => Console.log(`${((now - startedAt) / 1000).toFixed(2).padStart(6)} s  ${who.padEnd(10)} ${what}`)
  )

interface Job {
  readonly issue: number
  /** A plain tool, an effect tool, or an agent of the engine that has the effect tool. */
  readonly kind: "plain" | "effect" | "agent"
  readonly ledger: string
  readonly runId: string
}

const worker = Effect.fnUntraced(function*(name: string, job: Job, words: string) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const tracker = yield* Tracker
  const path = yield* Path.Path
  const script = path.join(import.meta.dirname, job.kind === "agent" ? "agentWorker.ts" : "worker.ts")
  const handle = yield* spawner.spawn(
    ChildProcess.make(process.execPath, ["--conditions=chamvi-source", script], {
      extendEnv: true,
      env: {
        TRACKER_URL: tracker.url,
        LEDGER: job.ledger,
        RUN_ID: job.runId,
        ISSUE: String(job.issue),
        PLAIN: String(job.kind === "plain"),
        WORDS: words
      }
    })
  )
  yield* say(name, `starts (pid ${handle.pid})`)
  const output = handle.all.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.runForEach((line) => say(name, line))
  )
  return { handle, output }
})

const firstWords = "Fixed in 1.4.2, please upgrade."

/** Lets worker 1 post, and kills it while it waits for the answer. */
const killed = Effect.fnUntraced(function*(job: Job) {
  const tracker = yield* Tracker
  const { handle, output } = yield* worker("worker 1", job, firstWords)
  const kill = Effect.gen(function*() {
    yield* say("tracker", `stored comment ${tracker.comments(job.issue).length}, not answered yet`)
    yield* say("main", "kills worker 1 with SIGKILL: the effect happened, its record did not")
    yield* Effect.orDie(handle.kill({ killSignal: "SIGKILL" }))
  })
  tracker.afterNextPost(job.issue, kill)
  yield* output
  const end = yield* Effect.exit(handle.exitCode)
  if (Exit.isSuccess(end)) return yield* Effect.die("worker 1 ended by itself, before it posted a comment")
  yield* say("worker 1", `is dead (${/SIG[A-Z]+/.exec(Cause.pretty(end.cause))?.[0]})`)
}, Effect.scoped)

const restarted = Effect.fnUntraced(function*(job: Job) {
  // a model that is asked again may say it in other words; the engine does not ask it again
  const words = job.kind === "agent" ? firstWords : "This is solved by version 1.4.2."
  const { handle, output } = yield* worker("worker 2", job, words)
  yield* output
  const code = yield* handle.exitCode
  if (code !== 0) return yield* Effect.die(`worker 2 ended with exit code ${code}`)
}, Effect.scoped)

/** What the ledger knows of the effects; a plain tool leaves no trace in it. */
const readLedger = Effect.fnUntraced(function*({ runId }: Job) {
  const store = yield* EffectStore
  yield* Stream.runForEach(
    store.list({ runId }),
    ({ attempt, key, outcome, status }) =>
      say("ledger", `${key}: ${status}${outcome === undefined ? "" : `, ${outcome}`} (attempt ${attempt})`)
  )
})

const withLedger = (LEDGER: string) =>
  Effect.map(ConfigProvider.ConfigProvider, ConfigProvider.orElse(ConfigProvider.fromUnknown({ LEDGER })))

const run = Effect.fnUntraced(function*(title: string, job: Job) {
  const tracker = yield* Tracker
  const before = 34
  tracker.seed(job.issue, Array.from({ length: before }, (_, i) => `Me too (${i + 1}).`))
  // the engine keeps its ledger in its own file
  const ledger = job.kind === "agent" ? SqliteEffectStore.layer({ filename: job.ledger }) : layerLedger
  const lookIntoLedger = Effect.provide(readLedger(job), Layer.fresh(ledger)).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, yield* withLedger(job.ledger))
  )
  yield* Console.log(`\n${title}`)
  yield* killed(job)
  yield* lookIntoLedger
  yield* restarted(job)
  yield* lookIntoLedger
  return tracker.comments(job.issue).length - before
})

const program = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "chamvi-demo-" })
  const file = (name: string) => path.join(folder, `${name}.sqlite`)
  const runId = (yield* isShared) ? `run-${startedAt}` : "run-1"
  const ledger = file("ledger")
  const control = yield* run("A plain tool", { issue: 8, kind: "plain", ledger, runId })
  const guarded = yield* run("An effect tool", { issue: 7, kind: "effect", ledger, runId })
  const durable = yield* run("An agent on the engine", { issue: 9, kind: "agent", ledger: file("engine"), runId })
  const line = (who: string, count: number) =>
    Console.log(`${who.padEnd(12)} ${count} comment${count === 1 ? "" : "s"} of the agent on the tracker`)
  yield* Console.log("")
  yield* line("plain tool:", control)
  yield* line("effect tool:", guarded)
  yield* line("engine:", durable)
  if (control !== 2 || guarded !== 1 || durable !== 1)
    return yield* Effect.die("expected 2 comments of the plain tool and 1 of each of the others")
})

program.pipe(Effect.scoped, Effect.provide(Layer.merge(Tracker.layer, NodeServices.layer)), NodeRuntime.runMain)
