/**
 * `defineEffectTool` with `streaming: true`: the ledger decides before anything is invoked, the first run shows its values,
 * everybody else sees the recorded one.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  defineEffectTool,
  EffectEvent,
  EffectOutcomeUnknownError,
  EffectResultUnavailableError,
  EffectStore,
  EffectStoreError,
  type IEffectStore,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { Context, Effect, Fiber, Latch, Layer, Logger, Schema, Stream } from "effect"
import { readFileSync } from "node:fs"
import { start } from "../fixtures/child.ts"
import { temporaryDirectory } from "../fixtures/temporaryDirectory.ts"
import { wrap } from "../support/wrapped.ts"
import { empty, entry, gated, layers, streaming } from "./effectToolSupport.ts"
import { ended, fork, next, options, read, silent, turns } from "./support.ts"

/** Collects the outcomes of calls. */
const withOutcomes = (outcomes: Array<string>) => <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(
    effect,
    EffectEvent.Listener,
    (event) => Effect.sync(() => void outcomes.push(event.outcome))
  )

describe("An effect tool that streams", () => {
  it.effect("shows the values of its first run, and a replay the last one only", () => {
    const outcomes: Array<string> = []
    return Effect.gen(function*() {
      const { call, seen } = yield* streaming(() => Stream.make("a", "b", "c"))
      assert.deepStrictEqual(yield* read(call()), { values: ["a", "b", "c"], end: "done" })
      assert.deepStrictEqual(yield* read(call()), { values: ["c"], end: "done" })
      assert.strictEqual(seen.runs, 1)
      assert.deepStrictEqual(outcomes, ["executed", "recorded"])
    }).pipe(Effect.scoped, withOutcomes(outcomes), Effect.provide(layers))
  })

  it.effect("shows values as they come, encoded, as snapshots", () =>
    Effect.gen(function*() {
      const gate = yield* Latch.make()
      const value = { at: new Date(0), n: 1 }
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          streaming: true,
          inputSchema: empty,
          outputSchema: Schema.Struct({ at: Schema.Date, n: Schema.Int }),
          execute: () => gated(gate, value, { at: new Date(1), n: 2 })
        })
      })
      const iterator = tools.made.execute({}, options())
      const first = yield* next(iterator)
      value.n = 7
      assert.deepStrictEqual(first, { at: "1970-01-01T00:00:00.000Z", n: 1 })
      yield* gate.open
      assert.deepStrictEqual(yield* next(iterator), { at: "1970-01-01T00:00:00.001Z", n: 2 })
      assert.strictEqual(yield* next(iterator), "done")
      assert.deepStrictEqual((yield* read(tools.made.execute({}, options()))).values, [{
        at: "1970-01-01T00:00:00.001Z",
        n: 2
      }])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("touches neither ledger nor hooks before the first next", () => {
    let asked = 0
    return Effect.gen(function*() {
      const { call, seen } = yield* streaming(() => Stream.make(1), () => ++asked > 0)
      const iterator = call()
      yield* turns
      assert.deepStrictEqual([asked, seen.runs, yield* entry()], [0, 0, undefined])
      yield* next(iterator)
      assert.deepStrictEqual([asked, seen.runs], [1, 1])
    }).pipe(Effect.scoped, Effect.provide(layers))
  })

  it.effect("ends when its result is recorded, and not before", () =>
    Effect.gen(function*() {
      const gate = yield* Latch.make()
      const memory = yield* EffectStore
      const store: IEffectStore = { ...memory, complete: (items) => Effect.andThen(gate.await, memory.complete(items)) }
      const { call } = yield* Effect.provideService(streaming(() => Stream.make(1, 2)), EffectStore, store)
      const iterator = call()
      assert.deepStrictEqual([yield* next(iterator), yield* next(iterator)], [1, 2])
      const end = yield* fork(next(iterator))
      yield* turns
      assert.isFalse(ended(end))
      yield* gate.open
      assert.strictEqual(yield* Fiber.join(end), "done")
      assert.strictEqual((yield* entry())!.result, `{"value":2}`)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("shows a joiner the last value only, and invokes nothing for it", () => {
    const outcomes: Array<string> = []
    return Effect.gen(function*() {
      const gate = yield* Latch.make()
      const { call, seen } = yield* streaming(() => gated(gate, "a", "b", "c"))
      const first = call()
      assert.strictEqual(yield* next(first), "a")
      const joiner = yield* fork(read(call()))
      yield* turns
      yield* gate.open
      assert.deepStrictEqual(yield* read(first), { values: ["b", "c"], end: "done" })
      assert.deepStrictEqual(yield* Fiber.join(joiner), { values: ["c"], end: "done" })
      assert.strictEqual(seen.runs, 1)
      assert.deepStrictEqual(outcomes.toSorted(), ["executed", "joined"])
    }).pipe(Effect.scoped, withOutcomes(outcomes), Effect.provide(layers))
  })

  it.effect("shows what the remote has instead of running", () =>
    Effect.gen(function*() {
      let runs = 0
      const tools = yield* wrap({
        made: yield* defineEffectTool({
          streaming: true,
          inputSchema: empty,
          alreadyApplied: () => "found",
          execute: () => {
            runs++
            return Stream.succeed("made")
          }
        })
      })
      assert.deepStrictEqual(yield* read(tools.made.execute({}, options())), { values: ["found"], end: "done" })
      assert.strictEqual(runs, 0)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("has the result undefined where the Stream has no value", () =>
    Effect.gen(function*() {
      const { call, seen } = yield* streaming(() => Stream.empty)
      assert.deepStrictEqual(yield* read(call()), { values: [], end: "done" })
      assert.deepStrictEqual(yield* read(call()), { values: [], end: "done" })
      assert.strictEqual(seen.runs, 1)
      assert.strictEqual((yield* entry())!.result, `{"undefined":true}`)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("shows a last undefined too, since the AI SDK takes the last value that it sees", () =>
    Effect.gen(function*() {
      const { call } = yield* streaming(() => Stream.make("a", undefined))
      assert.deepStrictEqual(yield* read(call()), { values: ["a", undefined], end: "done" })
    }).pipe(Effect.scoped, Effect.provide(layers)))

  describe("that fails", () => {
    it.effect("midway records nothing, fails with the identical value, and runs again when it is called again", () =>
      Effect.gen(function*() {
        const refused = new Error("refused")
        let failing = true
        const { call, seen } = yield* streaming(() =>
          failing ? Stream.concat(Stream.make(1, 2), Stream.fail(refused)) : Stream.make(3, 4)
        )
        assert.deepStrictEqual(yield* read(call()), { values: [1, 2], end: refused })
        const after = yield* entry()
        assert.deepStrictEqual([after!.status, after!.doubt], ["released", "tried"])
        failing = false
        assert.deepStrictEqual(yield* read(call()), { values: [3, 4], end: "done" })
        assert.strictEqual(seen.runs, 2)
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("with an unknown outcome, or a defect, leaves the key in doubt", () =>
      Effect.gen(function*() {
        for (const failing of [Stream.fail(new EffectOutcomeUnknownError({ cause: "timeout" })), Stream.die("bug")]) {
          const store = yield* Effect.provide(EffectStore, Layer.fresh(EffectStore.layerMemory))
          const { call } = yield* Effect.provideService(
            streaming(() => Stream.concat(Stream.make(1), failing)),
            EffectStore,
            store
          )
          assert.deepStrictEqual((yield* read(call())).values, [1])
          assert.strictEqual((yield* store.get("k"))!.doubt, "inDoubt")
        }
      }).pipe(Effect.scoped, Effect.provide(layers)))

    it.effect("to encode a preliminary result does not stop the effect: it is not shown, with one warning", () => {
      const logged: Array<string> = []
      const logger = Logger.make(({ message }) => void logged.push(String(message)))
      return Effect.gen(function*() {
        const { call } = yield* streaming(() => Stream.make({ n: 1 }, { n: 1n }, { n: 2n }, { n: 3 }))
        assert.deepStrictEqual(yield* read(call()), { values: [{ n: 1 }, { n: 3 }], end: "done" })
        assert.lengthOf(logged, 1)
      }).pipe(Effect.scoped, Effect.provide([layers, Logger.layer([logger])]))
    })

    it.effect("to encode its last value is recorded as applied without a result", () =>
      Effect.gen(function*() {
        const { call, seen } = yield* streaming(() => Stream.make({ n: 1 }, { n: 2n }))
        for (const values of [[{ n: 1 }], []]) {
          const got = yield* read(call())
          assert.deepStrictEqual(got.values, values)
          assert.instanceOf(got.end, EffectResultUnavailableError)
        }
        assert.strictEqual(seen.runs, 1)
      }).pipe(Effect.scoped, silent, Effect.provide(layers)))
  })

  it.effect("shows another's record after its own values where its claim was lost", () =>
    Effect.gen(function*() {
      const memory = yield* EffectStore
      const store: IEffectStore = {
        ...memory,
        complete: (items) =>
          Effect.andThen(
            memory.complete(items.map((item) => ({ ...item, result: `{"value":"theirs"}` }))),
            Effect.succeed(items.map(() => "lost" as const))
          )
      }
      const { call } = yield* Effect.provideService(streaming(() => Stream.make("a", "mine")), EffectStore, store)
      assert.deepStrictEqual(yield* read(call()), { values: ["a", "mine", "theirs"], end: "done" })
    }).pipe(Effect.scoped, silent, Effect.provide(layers)))

  it.effect("succeeds where its record cannot be written yet", () =>
    Effect.gen(function*() {
      const memory = yield* EffectStore
      let down = true
      const store: IEffectStore = {
        ...memory,
        complete: (items) =>
          Effect.suspend(() =>
            down
              ? Effect.fail(new EffectStoreError({ operation: "record", problem: "it is down" }))
              : memory.complete(items)
          )
      }
      const { call, seen } = yield* Effect.provideService(streaming(() => Stream.make("a", "b")), EffectStore, store)
      assert.deepStrictEqual(yield* read(call()), { values: ["a", "b"], end: "done" })
      assert.deepStrictEqual(yield* read(call()), { values: ["b"], end: "done" })
      down = false
      assert.strictEqual(seen.runs, 1)
    }).pipe(Effect.scoped, silent, Effect.provide(layers)))

  it.effect("gives the hooks of its Stream the key, the run, and a Scope that closes before the record", () => {
    class Client extends Context.Service<Client, string>()("test/Client") {}
    const log: Array<string> = []
    return Effect.gen(function*() {
      const memory = yield* EffectStore
      const store: IEffectStore = {
        ...memory,
        complete: (items) => Effect.andThen(Effect.sync(() => log.push("recorded")), memory.complete(items))
      }
      const made = yield* Effect.provideService(
        defineEffectTool({
          streaming: true,
          inputSchema: empty,
          effectKey: () => "k",
          execute: (_, { effectKey }) =>
            Stream.unwrap(Effect.gen(function*() {
              yield* Effect.addFinalizer(() => Effect.sync(() => log.push("closed")))
              return Stream.make(`${yield* Client} ${(yield* ToolContext).run.runId} ${effectKey}`)
            }))
        }),
        Client,
        "client"
      )
      const tools = yield* wrapToolsForRun({ made }, yield* ToolContext, store)
      assert.deepStrictEqual((yield* read(tools.made.execute({}, options()))).values, ["client run-1 k"])
      assert.deepStrictEqual(log, ["closed", "recorded"])
    }).pipe(Effect.scoped, Effect.provide(layers))
  })

  it.effect("refuses where nobody wrapped it, when it is read", () =>
    Effect.gen(function*() {
      let runs = 0
      const made = yield* defineEffectTool({
        streaming: true,
        inputSchema: empty,
        execute: () => {
          runs++
          return Stream.make(1)
        }
      })
      const { end, values } = yield* read(made.execute({}, options()))
      assert.deepStrictEqual([values, runs], [[], 0])
      assert.include(String(end), "without reconciliation")
    }))

  it.effect("refuses where it is not allowed, and nothing runs", () =>
    Effect.gen(function*() {
      const { call, seen } = yield* streaming(() => Stream.make(1), () => false)
      assert.strictEqual(((yield* read(call())).end as { readonly _tag: string })._tag, "ToolNotAllowedError")
      assert.strictEqual(seen.runs, 0)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("written in JavaScript may answer an async iterable, a value, an Effect or a Promise", () =>
    Effect.gen(function*() {
      const answers: ReadonlyArray<readonly [unknown, ReadonlyArray<unknown>]> = [
        [
          (async function*() {
            yield 1
            yield 2
          })(),
          [1, 2]
        ],
        [3, [3]],
        [Effect.succeed(4), [4]],
        [Promise.resolve(5), [5]]
      ]
      for (const [answer, values] of answers) {
        const { call } = yield* Effect.provide(
          streaming(() => answer),
          Layer.fresh(EffectStore.layerMemory)
        )
        assert.deepStrictEqual(yield* read(call()), { values, end: "done" })
        assert.deepStrictEqual(yield* read(call()), { values: values.slice(-1), end: "done" })
      }
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.live(
    "killed midway is asked for at the remote by the next process, and not run again",
    () =>
      Effect.gen(function*() {
        const directory = yield* temporaryDirectory
        const [ledger, log] = [`${directory}/ledger.sqlite`, `${directory}/log`]
        const first = yield* start("streamingWorker.ts", ledger, log, "hang")
        assert.deepStrictEqual([yield* first.line, yield* first.line], [{ status: "asking" }, { status: "charged" }])
        yield* first.kill("SIGKILL")
        yield* first.ended
        const second = yield* start("streamingWorker.ts", ledger, log, "end")
        assert.deepStrictEqual([yield* second.line, yield* second.line], [{ status: "found" }, "done"])
        assert.strictEqual(readFileSync(log, "utf8"), "charged\n")
      }).pipe(Effect.scoped),
    60_000
  )
})
