/** Three workers on one Postgres, killed at every phase of a run. */
import { describe, expect, it } from "@effect/vitest"
import { readUIMessageStream } from "ai"
import { Engine, RunStream } from "chamvi-effect"
import { Effect, Fiber, Option, Stream } from "effect"
import { agents, makeCluster } from "../support/cluster.ts"
import { noPostgres } from "../support/postgres.ts"
import { reading, shortOf, textsOf } from "../support/streams.ts"

const timeout = 240_000

describe.skipIf(noPostgres)("a worker that is killed", () => {
  it.live(
    "at any point leaves its run to another one, which completes it with each effect and each model call once",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const engine = yield* cluster.engine
        let workers = yield* cluster.workers({}, {}, {})
        for (
          const kill of ["model 0", "tool", "before the effect", "after the effect", "after the record", "model 1"]
        ) {
          const run = kill.replaceAll(" ", "-")
          const result = yield* Effect.forkScoped(engine.run(agents.charger, cluster.inputOf({ run, kill })))
          const killed = yield* Effect.raceAllFirst(workers.map((worker) => Effect.as(worker.ended, worker)))
          // who waits is in this process, and the run is in another one again
          const [replacement] = yield* Effect.all([cluster.worker(), Fiber.join(result)], { concurrency: "unbounded" })
          workers = [...workers.filter((worker) => worker !== killed), replacement]
          expect({ kill, model: cluster.modelOf(run), remote: cluster.remoteOf(run) }).toEqual({
            kill,
            model: [`${run} step 0`, `${run} step 1`],
            remote: [`${run}:charge`, `${run}:look`]
          })
        }
      }),
    { timeout }
  )

  it.live(
    "while it streams leaves readers with the parts that the next worker goes on with",
    () =>
      Effect.gen(function*() {
        const cluster = yield* makeCluster
        const engine = yield* cluster.engine
        const workers = yield* cluster.workers({}, {})
        const run = "streamed"
        yield* engine.start(agents.streamer, cluster.inputOf({ run, stay: "streaming 1" }))
        const reader = yield* reading(engine, run)
        const owner = yield* Effect.raceAllFirst(workers.map((worker) => Effect.as(worker.line, worker)))
        let step = -1
        const before = yield* reader.until((part) => {
          if (part.type === "start-step") step = part.step
          return step === 1 && part.type === "text-delta"
        })
        yield* owner.kill("SIGKILL")
        const after = yield* reader.until(({ type }) => type === "run-completed")
        const parts = [...before, ...after].map(({ part }) => part)
        expect(shortOf(parts).slice(-6)).toEqual([
          "start-step 1",
          `"Hel"`,
          "step-restarted 1",
          `"Hello."`,
          "finish-step 1",
          "run-completed"
        ])
        expect(textsOf(parts)).toEqual(["Hello.", "Hello."])
        const chunks = yield* Stream.toReadableStreamEffect(RunStream.uiMessages(run)).pipe(
          Effect.provideService(Engine, engine)
        )
        const messages = Stream.fromAsyncIterable(readUIMessageStream({ stream: chunks }), (error) => error)
        const message = yield* Stream.runLast(messages)
        expect(Option.getOrThrow(message).parts.flatMap((part) => part.type === "text" ? [part.text] : [])).toEqual([
          "Hello.",
          "Hello."
        ])
        expect({ model: cluster.modelOf(run), remote: cluster.remoteOf(run) }).toEqual({
          model: [`${run} step 0`, `${run} step 1`],
          remote: [`${run}:charge`]
        })
      }),
    { timeout }
  )
})
