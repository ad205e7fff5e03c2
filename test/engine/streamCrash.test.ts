/** Runs whose process is killed while they stream, watched by another process on the same file. */
import { describe, expect, it } from "@effect/vitest"
import { EffectStore, Engine } from "chamvi-effect"
import { Effect, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { make } from "../../src/engine/make.ts"
import { layerMemory } from "../../src/engine/port.ts"
import * as RunIndex from "../../src/engineSql/runIndex.ts"
import * as RunParts from "../../src/engineSql/runParts.ts"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { partsOf, reading, shortOf, textsOf } from "../support/streams.ts"

/** An engine that reads a file on which another process runs one; it knows no agents, and executes nothing. */
const readerOf = (filename: string) =>
  Layer.effect(
    Engine,
    Effect.gen(function*() {
      return yield* make({ index: yield* RunIndex.make, parts: yield* RunParts.make, pollInterval: "200 millis" })
    })
  ).pipe(
    Layer.provide([layerMemory, EffectStore.layerMemory, KeyValueStore.layerSql({ table: "chamvi_key_values" })]),
    Layer.provide(SqliteClient.layer({ filename }))
  )

const whole = [
  "start-step 0",
  `"I charge."`,
  "tool-call charge {}",
  `preliminary "contacting the bank"`,
  `preliminary "charged"`,
  `tool-result "charged"`,
  "finish-step 0",
  "start-step 1",
  `"Good day."`,
  "finish-step 1",
  "run-completed"
]

describe("a process that is killed while its run streams", () => {
  for (
    const { at, expected, model, seen } of [
      {
        at: "model 0",
        seen: "text-delta",
        expected: ["start-step 0", `"Hel"`, "step-restarted 0", ...whole.slice(1)],
        model: ["first 0", "second 0", "second 1"]
      },
      {
        at: "tool",
        seen: "tool-result",
        // the call is made again, in the same step
        expected: [...whole.slice(0, 4), ...whole.slice(3)],
        model: ["first 0", "second 1"]
      },
      {
        at: "model 1",
        seen: "text-delta",
        expected: [...whole.slice(0, 8), `"Hel"`, "step-restarted 1", ...whole.slice(8)],
        model: ["first 0", "first 1", "second 1"]
      }
    ]
  ) {
    it.live(
      `at "${at}" leaves parts that the next process goes on with: in the end each text stands once, and each effect is applied once`,
      () =>
        Effect.gen(function*() {
          const directory = yield* temporaryDirectory
          const linesOf = (name: string) => readFileSync(join(directory, name), "utf8").trim().split("\n")
          const first = yield* start("streamWorker.ts", directory, at, "first")
          yield* first.line
          yield* Effect.gen(function*() {
            const engine = yield* Engine
            const reader = yield* reading(engine, "run-1")
            let step = -1
            const before = yield* reader.until((part) => {
              if (part.type === "start-step") step = part.step
              return part.type === seen && (at === "tool" || at === `model ${step}`)
            })
            yield* first.kill("SIGKILL")
            yield* first.ended
            // a reader that comes while nobody runs the run, and stays
            const late = yield* reading(engine, "run-1", { after: before.at(-2)!.cursor })
            yield* start("streamWorker.ts", directory, at, "second")
            const after = yield* reader.until((part) => part.type === "run-completed")
            const parts = [...before, ...after].map(({ part }) => part)
            expect(shortOf(parts)).toEqual(expected)
            expect(textsOf(parts)).toEqual(["I charge.", "Good day."])
            expect((yield* late.until((part) => part.type === "run-completed")).map(({ cursor }) => cursor)).toEqual(
              [...before, ...after].slice(before.length - 1).map(({ cursor }) => cursor)
            )
            expect(yield* partsOf(engine, "run-1")).toEqual(parts)
          }).pipe(Effect.provide(readerOf(join(directory, "engine.sqlite"))))
          expect(linesOf("remote")).toEqual(["charge"])
          expect(linesOf("model")).toEqual(model)
        }),
      { timeout: 120_000 }
    )
  }
})
