import { NodeFileSystem, NodePath } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { ToolContext } from "chamvi-effect"
import { Cause, Effect, Exit, Layer, Option, Schema, type Scope } from "effect"
import { KeyValueStore } from "effect/persistence"
import * as SqliteClient from "../src/SqliteClient.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"

/** Stores that can be left and opened again. */
const stores: Record<string, Effect.Effect<Layer.Layer<KeyValueStore.KeyValueStore, unknown>, never, Scope.Scope>> = {
  memory: Effect.map(
    Layer.build(KeyValueStore.layerMemory),
    (context) => Layer.succeedContext(context)
  ),
  files: Effect.map(
    temporaryDirectory,
    (directory) =>
      KeyValueStore.layerFileSystem(`${directory}/values`).pipe(Layer.provide([NodeFileSystem.layer, NodePath.layer]))
  ),
  SQLite: Effect.map(temporaryDirectory, (directory) =>
    KeyValueStore.layerSql().pipe(
      Layer.provide(SqliteClient.layer({ filename: `${directory}/values.sqlite`, mode: "fast" }))
    ))
}

const Counter = Schema.Struct({ count: Schema.Int, at: Schema.Date, note: Schema.Option(Schema.String) })

const odd = [
  "a",
  "A",
  "a/b",
  "a%2Fb",
  "..",
  ".",
  "",
  "a:b",
  "a b",
  "\u00e9",
  "e\u0301",
  "\u{1F600}",
  "\u0000",
  "\ud800",
  "\ud801",
  "\ufffd",
  "x".repeat(10_000),
  "x".repeat(10_001)
]

for (const [name, makeLayer] of Object.entries(stores)) {
  describe(`ToolContext on ${name}`, () => {
    /** Runs `use` in the context of a run, on a store that outlives it. */
    const inRun = Effect.map(makeLayer, (layer) =>
    <A, E>(
      runId: string,
      use: (context: ToolContext["Service"]) => Effect.Effect<A, E>
    ): Effect.Effect<A, unknown> =>
      Effect.flatMap(ToolContext, use).pipe(
        Effect.provide(Layer.provide(ToolContext.layerKeyValueStore({ runId }), layer))
      ))

    it.effect("state keeps typed values per run", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        const value = { count: 1, at: new Date(5), note: Option.some("n") }
        yield* run("one", ({ state }) => state.set("counter", Counter, value))
        expect(yield* run("one", ({ state }) => state.get("counter", Counter))).toEqual(value)
        expect(yield* run("two", ({ state }) => state.get("counter", Counter))).toBe(undefined)
        expect(yield* run("one", ({ state }) => state.get("other", Counter))).toBe(undefined)
      }))

    it.effect("a value that no longer fits its schema is a failure", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        yield* run("one", ({ state }) => state.set("counter", Schema.String, "x"))
        const exit = yield* Effect.exit(run("one", ({ state }) => state.get("counter", Schema.Int)))
        expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toMatchObject({ _tag: "SchemaError" })
      }))

    it.effect("updates and sets at once do not overwrite each other", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        yield* run("one", ({ state }) =>
          Effect.all([
            ...Array.from({ length: 25 }, () => state.update("count", Schema.Int, (count = 0) => count + 1)),
            state.set("other", Schema.Int, 7),
            ...Array.from({ length: 25 }, () => state.update("count", Schema.Int, (count = 0) => count + 1))
          ], { concurrency: "unbounded" }))
        expect(yield* run("one", ({ state }) => state.get("count", Schema.Int))).toBe(50)
        expect(yield* run("one", ({ state }) => state.update("other", Schema.Int, (value = 0) => value * 2))).toBe(14)
      }))

    it.effect("an update that dies changes nothing and lets the next one run", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        yield* run("one", ({ state }) => state.set("count", Schema.Int, 1))
        yield* Effect.exit(run("one", ({ state }) =>
          state.update("count", Schema.Int, () => {
            throw new Error("no")
          })))
        expect(yield* run("one", ({ state }) => state.update("count", Schema.Int, (count = 0) => count + 1))).toBe(2)
      }))

    it.effect("artifacts keep bytes and texts with their media type", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
        const texts = ["", "plain", "QUJD", "\ufeffmark", "\u0000", "é\u{1F600}", "\ud800", "x".repeat(1_000_000)]
        yield* run("one", ({ artifacts }) =>
          Effect.gen(function*() {
            expect(yield* artifacts.put("bytes", bytes, "application/pdf")).toEqual({
              name: "bytes",
              mediaType: "application/pdf",
              size: 256
            })
            for (const [index, text] of texts.entries()) yield* artifacts.put(`text ${index}`, text, "text/plain")
          }))
        yield* run("one", ({ artifacts }) =>
          Effect.gen(function*() {
            expect(yield* artifacts.get("bytes")).toEqual({
              name: "bytes",
              mediaType: "application/pdf",
              size: 256,
              content: bytes
            })
            for (const [index, text] of texts.entries()) {
              const artifact = yield* artifacts.get(`text ${index}`)
              expect(artifact?.content === text).toBe(true)
              expect(artifact?.size).toBe(Buffer.byteLength(text))
            }
          }))
        expect(yield* run("two", ({ artifacts }) => artifacts.get("bytes"))).toBe(undefined)
      }))

    it.effect("artifacts are snapshots", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        const bytes = new Uint8Array([1, 2, 3])
        yield* run("one", ({ artifacts }) =>
          Effect.gen(function*() {
            yield* artifacts.put("a", bytes, "x/y")
            bytes[0] = 9
            const first = yield* artifacts.get("a")
            expect(first?.content).toEqual(new Uint8Array([1, 2, 3]))
            if (typeof first?.content === "object") first.content[0] = 8
            expect((yield* artifacts.get("a"))?.content).toEqual(new Uint8Array([1, 2, 3]))
          }))
      }))

    it.effect("the list of artifacts is sorted, survives a restart, and is the run's own", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        yield* run("one", ({ artifacts }) =>
          Effect.gen(function*() {
            yield* artifacts.put("b", "22", "text/plain")
            yield* artifacts.put("a", "1", "text/plain")
            yield* artifacts.put("b", new Uint8Array(3), "x/y")
            yield* artifacts.put("c", "1", "text/plain")
            yield* artifacts.remove("c")
            yield* artifacts.remove("never there")
          }))
        yield* run("on", ({ artifacts }) => artifacts.put("z", "z", "text/plain"))
        expect(yield* run("one", ({ artifacts }) => artifacts.list)).toEqual([
          { name: "a", mediaType: "text/plain", size: 1 },
          { name: "b", mediaType: "x/y", size: 3 }
        ])
        expect(yield* run("one", ({ artifacts }) => artifacts.get("c"))).toBe(undefined)
      }))

    it.effect("no run, and no name, is ever taken for another", () =>
      Effect.gen(function*() {
        const run = yield* inRun
        const runs = odd.filter((runId) => runId.trim() !== "" && runId.isWellFormed())
        for (const runId of runs) {
          yield* run(runId, ({ artifacts, state }) =>
            Effect.forEach(odd, (name, index) =>
              Effect.all([
                state.set(name, Schema.String, `${runId}${index}`),
                artifacts.put(name, `${runId}${index}`, "text/plain")
              ])))
        }
        for (const runId of runs) {
          yield* run(runId, ({ artifacts, state }) =>
            Effect.gen(function*() {
              for (const [index, name] of odd.entries()) {
                expect((yield* state.get(name, Schema.String)) === `${runId}${index}`).toBe(true)
                expect((yield* artifacts.get(name))?.content === `${runId}${index}`).toBe(true)
              }
              expect(new Set((yield* artifacts.list).map(({ name }) => name))).toEqual(new Set(odd))
            }))
        }
      }), 60_000)
  })
}

describe("ToolContext", () => {
  it.effect("an old place throws an error that names the new one, and is not enumerable", () =>
    Effect.gen(function*() {
      const signal = new AbortController().signal
      const context = yield* Effect.provide(
        ToolContext,
        ToolContext.layer({ runId: "run", agent: "helper", trigger: { issue: 7 }, signal })
      )
      expect(context.run).toEqual({ runId: "run", agent: "helper", trigger: { issue: 7 }, signal })
      for (const name of ["runId", "agent", "trigger", "signal"]) {
        expect(() => Reflect.get(context, name)).toThrow(`ctx.run.${name}`)
      }
      expect(Object.keys(context).toSorted()).toEqual(["artifacts", "run", "state"])
      expect(Object.keys({ ...context }).toSorted()).toEqual(["artifacts", "run", "state"])
    }))

  it.effect("a run without an agent, a trigger and a signal says so", () =>
    Effect.gen(function*() {
      const { run } = yield* Effect.provide(ToolContext, ToolContext.layer({ runId: "run" }))
      expect(run).toMatchObject({ agent: undefined, trigger: undefined })
      expect(run.signal.aborted).toBe(false)
    }))

  it.effect("a runId that is no id is a defect that says what to give", () =>
    Effect.gen(function*() {
      for (const runId of ["", " \n", undefined, null, 7, "\ud800"]) {
        const exit = yield* Effect.exit(Effect.provide(ToolContext, ToolContext.layer({ runId: runId as never })))
        expect(Exit.isFailure(exit) && Cause.squash(exit.cause)).toBeInstanceOf(TypeError)
        expect(String(Exit.isFailure(exit) && Cause.squash(exit.cause))).toContain("runId")
      }
    }))
})
