/** The log of a run's parts: who may write into it, and what is in it whatever is cut off. */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, EffectStore, Engine, tool } from "chamvi-effect"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { KeyValueStore } from "effect/persistence"
import { SqlClient } from "effect/sql"
import { randomUUID } from "node:crypto"
import type { StepPart } from "../../src/ai/StepPart.ts"
import { EngineStoreError } from "../../src/engine/errors.ts"
import { make as makeEngine } from "../../src/engine/make.ts"
import { layerMemory } from "../../src/engine/port.ts"
import { makeMemory as makeIndex } from "../../src/engine/RunIndex.ts"
import { makeMemory, type RunParts } from "../../src/engine/RunParts.ts"
import { make as makeWriter, takeOver } from "../../src/engine/StreamWriter.ts"
import { make as makeValues } from "../../src/engine/values.ts"
import { make as makeSql } from "../../src/engineSql/runParts.ts"
import * as SqliteClient from "../../src/SqliteClient.ts"
import { calls, scripted } from "../support/model.ts"
import { freshSchema, noPostgres, pool } from "../support/postgres.ts"
import { partsOf } from "../support/streams.ts"

const logOf = () => ({ runId: "run-1", incarnation: randomUUID() })

const values = makeValues({ put: () => Effect.die("nothing here is large"), get: () => Effect.undefined }, 1_000_000)

const text = (text: string): StepPart => ({ type: "text-delta", id: "t", text })
const result = (output: unknown): StepPart => ({ type: "tool-result", toolCallId: "a", toolName: "add", output })

const partsIn = (parts: RunParts, log: ReturnType<typeof logOf>) =>
  Effect.gen(function*() {
    const rows = yield* parts.read(log, 0, 1000)
    const all = yield* Effect.forEach(rows, ({ data }) => values.read(data))
    return all.flat() as ReadonlyArray<StepPart>
  })

const stores: ReadonlyArray<{
  readonly where: string
  readonly skip?: boolean
  readonly make: Effect.Effect<RunParts, unknown, Scope.Scope>
}> = [
  { where: "in memory", make: makeMemory },
  {
    where: "on SQLite",
    make: Effect.flatMap(
      SqliteClient.make({ filename: ":memory:" }),
      (sql) => Effect.provideService(makeSql, SqlClient.SqlClient, sql)
    )
  },
  {
    where: "on Postgres",
    skip: noPostgres,
    make: Effect.gen(function*() {
      const schema = yield* freshSchema
      const context = yield* Layer.build(pool({ startupParameters: { search_path: schema } }))
      return yield* Effect.provideContext(
        Effect.flatMap(SqlClient.SqlClient, (sql) => Effect.andThen(sql`CREATE SCHEMA ${sql(schema)}`, makeSql)),
        context
      )
    })
  }
]

describe.each(stores)("the log of a run's parts $where", ({ make, skip }) => {
  it.live.skipIf(skip === true)(
    "takes each place once, and the same row again from its own writer",
    () =>
      Effect.gen(function*() {
        const parts = yield* make
        const log = logOf()
        const row = { seq: 1, writer: "a", marks: "[1]", data: "[]" }
        expect(yield* parts.append(log, row)).toBe(true)
        expect(yield* parts.append(log, row)).toBe(true)
        expect(yield* parts.append(log, { ...row, writer: "b" })).toBe(false)
        expect(yield* parts.append(log, { ...row, seq: 2, writer: "b", marks: "" })).toBe(true)
        expect(yield* parts.append({ ...log, incarnation: "other" }, { ...row, writer: "c" })).toBe(true)
        expect(yield* parts.marks(log)).toEqual({ last: 2, marks: ["[1]"] })
        expect((yield* parts.read(log, 0, 10)).map(({ seq }) => seq)).toEqual([1, 2])
        expect((yield* parts.read(log, 0, 1)).map(({ seq }) => seq)).toEqual([1])
        expect((yield* parts.read(log, 1, 10)).map(({ seq }) => seq)).toEqual([2])
        yield* parts.remove(log.runId)
        expect(yield* parts.marks(log)).toEqual({ last: 0, marks: [] })
        expect(yield* parts.marks({ ...log, incarnation: "other" })).toEqual({ last: 0, marks: [] })
      })
  )

  it.live.skipIf(skip === true)(
    "refuses a writer that thaws after another one has taken over",
    () =>
      Effect.gen(function*() {
        const parts = yield* make
        const log = logOf()
        const frozen = yield* makeWriter({ parts, log, values })
        yield* frozen.begin(0)
        yield* frozen.live(0, text("Hel"))
        yield* frozen.flush
        const next = yield* makeWriter({ parts, log, values })
        yield* frozen.live(0, text("lo"))
        const answer = yield* next.begin(0)
        yield* next.live(0, text("Hi"))
        yield* frozen.once(0, "tool/0/a", result("stale"))
        yield* next.written(0, answer)
        // it waits for nothing, and writes nothing, not even behind the other one
        for (const word of "abcdefgh") {
          yield* frozen.live(0, text(word))
          yield* frozen.flush
        }
        expect(yield* partsIn(parts, log)).toEqual([
          { type: "start-step", step: 0 },
          text("Hel"),
          { type: "step-restarted", step: 0 },
          text("Hi")
        ])
      })
  )

  it.live.skipIf(skip === true)(
    "lets one of many that take over at once write at a time",
    () =>
      Effect.gen(function*() {
        const parts = yield* make
        const log = logOf()
        const taken = yield* Effect.forEach(Array.from({ length: 8 }), () => takeOver(parts, log), {
          concurrency: "unbounded"
        })
        expect(taken.map(({ seq }) => seq).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
      })
  )
})

describe("a writer of a run's parts", () => {
  /** A writer on `parts` that is gone when `use` ends, as if its process had died. */
  const life = <A>(
    parts: RunParts,
    log: ReturnType<typeof logOf>,
    use: (writer: Effect.Success<ReturnType<typeof makeWriter>>) => Effect.Effect<A>
  ) => Effect.scoped(Effect.flatMap(makeWriter({ parts, log, values }), use))

  it.live("writes what was finished once, however often it is replayed", () =>
    Effect.gen(function*() {
      const parts = yield* makeMemory
      const log = logOf()
      const content = { whole: [text("Hello")], rest: [] }
      let answer = ""
      const replay = life(parts, log, (writer) =>
        Effect.gen(function*() {
          yield* writer.answered(0, answer, content)
          yield* writer.once(0, "tool/0/a", result(1))
          yield* writer.once(0, "tool/1/a", result(2))
        }))
      yield* life(parts, log, (writer) => Effect.map(writer.begin(0), (made) => answer = made))
      yield* replay
      yield* replay
      yield* replay
      expect(yield* partsIn(parts, log)).toEqual([
        { type: "start-step", step: 0 },
        // the first life has died in the middle, for all that the second one knows
        { type: "step-restarted", step: 0 },
        text("Hello"),
        result(1),
        result(2)
      ])
    }))

  it.live("tells again from the journal what a life had written and not stored", () =>
    Effect.gen(function*() {
      const parts = yield* makeMemory
      const log = logOf()
      // all of the answer was written; then the process died before the journal had it
      yield* life(parts, log, (writer) =>
        Effect.gen(function*() {
          const answer = yield* writer.begin(0)
          yield* writer.live(0, text("Hello"))
          yield* writer.written(0, answer)
        }))
      const second = yield* life(parts, log, (writer) =>
        Effect.gen(function*() {
          const answer = yield* writer.begin(0)
          yield* writer.live(0, text("Good day"))
          yield* writer.written(0, answer)
          yield* writer.answered(0, answer, { whole: [text("Good day")], rest: [result("file")] })
          return answer
        }))
      yield* life(
        parts,
        log,
        (writer) => writer.answered(0, second, { whole: [text("Good day")], rest: [result("file")] })
      )
      expect(yield* partsIn(parts, log)).toEqual([
        { type: "start-step", step: 0 },
        text("Hello"),
        { type: "step-restarted", step: 0 },
        text("Good day"),
        result("file")
      ])
    }))

  it.live("collects while a batch is written, makes one part of a text's deltas, and lets the model wait for storage", () =>
    Effect.gen(function*() {
      const memory = yield* makeMemory
      const gate = yield* Deferred.make<void>()
      const reached = yield* Deferred.make<void>()
      let rows = 0
      const parts: RunParts = {
        ...memory,
        append: (log, row) =>
          ++rows === 2
            ? Effect.andThen(
              Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(gate)),
              memory.append(log, row)
            )
            : memory.append(log, row)
      }
      const log = logOf()
      const writer = yield* makeWriter({ parts, log, values })
      yield* writer.begin(0)
      yield* Deferred.await(reached)
      let told = 0
      const model = yield* Effect.forkChild(Effect.forEach(
        Array.from({ length: 10_000 }, (_, index) => text(`${index} `)),
        (part) => Effect.andThen(writer.live(0, part), Effect.sync(() => told++)),
        { discard: true }
      ))
      // until the model tells nothing more
      let before = -1
      while (before !== told) {
        before = told
        yield* Effect.repeat(Effect.yieldNow, { times: 1000 })
      }
      expect(told).toBeGreaterThan(200)
      expect(told).toBeLessThan(1000)
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(model)
      yield* writer.flush
      const written = yield* partsIn(parts, log)
      expect(written.map((part) => part.type === "text-delta" ? part.text : "").join("")).toBe(
        Array.from({ length: 10_000 }, (_, index) => `${index} `).join("")
      )
      expect(written.length).toBeLessThan(200)
      expect(rows).toBeLessThan(200)
    }))

  it.live("bears storage that fails for a while, and answers that were lost", () =>
    Effect.gen(function*() {
      const memory = yield* makeMemory
      let calls = 0
      const parts: RunParts = {
        ...memory,
        append: (log, row) =>
          Effect.suspend(() => {
            const failure = Effect.fail(
              new EngineStoreError({ operation: "add parts of a run", problem: "it is away" })
            )
            const append = memory.append(log, row)
            calls++
            // of three, one is not done, and of one that is done the answer is lost
            return calls % 3 === 0 ? failure : calls % 3 === 1 ? Effect.andThen(append, failure) : append
          })
      }
      const log = logOf()
      yield* life(parts, log, (writer) =>
        Effect.gen(function*() {
          yield* writer.begin(0)
          yield* writer.flush
          for (const word of ["a", "b", "c"]) {
            yield* writer.live(0, text(word))
            yield* writer.flush
          }
        })).pipe(Effect.provide(Logger.layer([])))
      expect(yield* partsIn(parts, log)).toEqual([
        { type: "start-step", step: 0 },
        text("a"),
        text("b"),
        text("c")
      ])
    }))

  it.live("holds up nobody who outlives its pass", () =>
    Effect.gen(function*() {
      const memory = yield* makeMemory
      const log = logOf()
      const stuck = yield* Deferred.make<void>()
      const parts: RunParts = {
        ...memory,
        append: (log, row) =>
          row.seq === 1 ? memory.append(log, row) : Effect.andThen(Deferred.succeed(stuck, undefined), Effect.never)
      }
      const scope = yield* Scope.make()
      const writer = yield* Effect.provideService(makeWriter({ parts, log, values }), Scope.Scope, scope)
      const activity = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 1000 }), () => writer.live(0, result(1)), { discard: true })
      )
      const flushing = yield* Effect.forkChild(writer.flush)
      yield* Deferred.await(stuck)
      yield* Scope.close(scope, Exit.interrupt())
      yield* Fiber.join(activity)
      yield* Fiber.join(flushing)
      yield* writer.written(0, "answer")
      expect(yield* partsIn(memory, log)).toEqual([])
    }))

  it.live("adds nothing to a run that was cancelled meanwhile", () =>
    Effect.gen(function*() {
      const parts = yield* makeMemory
      const index = yield* makeIndex
      const pay = tool({ inputSchema: Schema.Struct({}), needsApproval: true, execute: () => Effect.succeed("paid") })
      const agent = defineAgent({ name: "payer", model: scripted(calls(["pay", {}])), tools: { pay } })
      const engine = Layer.effect(Engine, makeEngine({ index, parts, pollInterval: undefined })).pipe(
        Layer.provide([layerMemory, EffectStore.layerMemory, KeyValueStore.layerMemory])
      )
      yield* Effect.gen(function*() {
        yield* Effect.flip(Engine.run(agent, { runId: "run-1", prompt: "Pay." }))
        const log = (yield* index.get("run-1"))!
        const frozen = yield* makeWriter({ parts, log, values })
        yield* Engine.cancel("run-1")
        const before = yield* partsOf(yield* Engine, "run-1")
        yield* frozen.live(0, text("stale"))
        yield* frozen.flush
        expect(yield* partsOf(yield* Engine, "run-1")).toEqual(before)
        expect(before.at(-1)).toEqual({ type: "run-cancelled" })
      }).pipe(Effect.provide(agent.layer.pipe(Layer.provideMerge(engine))))
    }))

  it.live("leaves a part out that cannot be kept, and keeps what a tool showed as it was then", () =>
    Effect.gen(function*() {
      const parts = yield* makeMemory
      const log = logOf()
      const circle: Array<unknown> = []
      circle.push(circle)
      const growing = [1]
      yield* life(parts, log, (writer) =>
        Effect.gen(function*() {
          yield* writer.live(0, result(circle))
          yield* writer.live(0, result(growing))
          growing.push(2)
          yield* writer.live(0, result(growing))
        })).pipe(Effect.provide(Logger.layer([])))
      expect(yield* partsIn(parts, log)).toEqual([result([1]), result([1, 2])])
    }))
})
