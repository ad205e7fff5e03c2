/**
 * The same value first and later: what a first call answers, a joiner, and a replay in another process.
 */
import { assert, describe, it } from "@effect/vitest"
import { type EffectEvent, EffectResolution, type IEffectStore } from "chamvi-effect"
import { Effect, Fiber, Schema, SchemaGetter } from "effect"
import { TestClock } from "effect/testing"
import { registryOf } from "../../src/reconciliation/Registry.ts"
import { hindered } from "../transactional/hindered.ts"
import { transactional } from "../transactional/world.ts"
import {
  anotherProcess,
  assertIdle,
  call,
  counting,
  down,
  ended,
  failsWith,
  failureOf,
  fork,
  gated,
  memory,
  told,
  withEvents
} from "./support.ts"

const codec = (schema: Schema.Constraint) => schema as unknown as Schema.Codec<unknown, unknown>

const Rich = codec(
  Schema.Struct({ at: Schema.Date, total: Schema.BigInt, tags: Schema.ReadonlyMap(Schema.String, Schema.Finite) })
)
const rich = { at: new Date(1234), total: 2n ** 70n, tags: new Map([["a", 1], ["b", 2]]) }

/** A first call, one that joins it, a replay, and a replay in another process. */
const everyWay = Effect.fnUntraced(
  function*(store: IEffectStore, options: Parameters<typeof call>[1] & { result: unknown }) {
    const hook = gated()
    const { result, ...rest } = options
    const first = yield* fork(call(store, { ...rest, execute: hook.execute }))
    const joined = yield* fork(call(store, rest))
    yield* hook.open(result)
    return [
      yield* Fiber.join(first),
      yield* Fiber.join(joined),
      yield* call(store, rest),
      yield* call(anotherProcess(store), rest)
    ]
  }
)

const unencodable: ReadonlyArray<readonly [string, unknown]> = [
  ["a BigInt", 10n],
  ["NaN", Number.NaN],
  ["a Map", new Map()],
  ["a class that JSON would flatten", new URLSearchParams("a=1")],
  ["a function inside", { f: () => 1 }],
  ["a lone surrogate", "\uD800"],
  ["a member that throws", {
    get x() {
      throw new Error("no")
    }
  }]
]

describe("reconciliation", () => {
  it.effect("the first call and a replay return equal values", () =>
    Effect.gen(function*() {
      const values: ReadonlyArray<readonly [result: unknown, seen: unknown]> = [
        [{ a: [1, { b: null }] }, { a: [1, { b: null }] }],
        // what JSON leaves out is left out of the first answer too
        [{ a: undefined, b: 1 }, { b: 1 }],
        [[undefined], [null]],
        [-0, 0],
        [new Date(0), "1970-01-01T00:00:00.000Z"],
        [JSON.parse(`{"__proto__":{"amount":1}}`), JSON.parse(`{"__proto__":{"amount":1}}`)],
        [{ value: 1, undefined: true, unavailable: "x" }, { value: 1, undefined: true, unavailable: "x" }]
      ]
      for (const [result, seen] of values) {
        for (const value of yield* everyWay(yield* memory, { result })) assert.deepStrictEqual(value, seen)
      }
    }))

  it.effect("a schema carries dates, big integers and maps to every caller", () =>
    Effect.gen(function*() {
      for (const value of yield* everyWay(yield* memory, { result: rich, schema: Rich })) {
        assert.deepStrictEqual(value, rich)
      }
    }))

  it.effect("callers share the encoded result", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const log: Array<string> = []
      const noting = (what: string) => (value: string) => {
        log.push(what)
        return value
      }
      const schema = codec(Schema.String.pipe(Schema.decode({
        decode: SchemaGetter.transform(noting("decode")),
        encode: SchemaGetter.transform(noting("encode"))
      })))
      const hook = gated()
      const callers = yield* Effect.forEach([1, 2, 3], () => fork(call(store, { schema, execute: hook.execute })))
      yield* hook.open("x")
      assert.deepStrictEqual(yield* Effect.forEach(callers, Fiber.join), ["x", "x", "x"])
      assert.deepStrictEqual(log, ["encode", "decode", "decode", "decode"])
    }))

  it.effect("empty results are results", () =>
    Effect.gen(function*() {
      for (const result of [undefined, null, false, 0, ""]) {
        const store = yield* memory
        const hook = counting(result)
        assert.strictEqual(yield* call(store, { execute: hook.execute }), result)
        assert.strictEqual(yield* call(store, { execute: hook.execute }), result)
        assert.strictEqual(
          yield* call(anotherProcess(store), { execute: hook.execute, alreadyApplied: () => "x" }),
          result
        )
        assert.strictEqual(hook.runs, 1)
        for (const value of yield* everyWay(yield* memory, { result })) assert.strictEqual(value, result)
      }
    }))

  it.effect("results are snapshots", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const result = { list: [1] }
      const hook = gated()
      const callers = yield* Effect.forEach([1, 2], () => fork(call(store, { execute: hook.execute })))
      yield* hook.open(result)
      const copies = (yield* Effect.forEach(callers, Fiber.join)) as Array<typeof result>
      const replay = (yield* call(store)) as typeof result
      for (const one of [result, ...copies, replay]) one.list.push(2)
      assert.deepStrictEqual([...copies, replay].map(({ list }) => list), [[1, 2], [1, 2], [1, 2]])
      assert.deepStrictEqual(yield* call(store), { list: [1] })
    }))

  it.effect("a result is taken when execute returns it", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const result = { list: [1] }
      // the hook's owner goes on changing it while the record is on its way
      const store: IEffectStore = {
        ...base,
        complete: (items) => Effect.tap(base.complete(items), () => Effect.sync(() => result.list.push(2)))
      }
      assert.deepStrictEqual(yield* call(store, { execute: () => result }), { list: [1] })
      assert.deepStrictEqual(yield* call(store), { list: [1] })
    }))

  it.effect("answers from memory are snapshots too", () =>
    Effect.gen(function*() {
      const store: IEffectStore = { ...(yield* memory), complete: () => down("complete") }
      const first = (yield* call(store, { execute: () => ({ list: [1] }) })) as { list: Array<number> }
      first.list.push(2)
      const second = (yield* call(store)) as { list: Array<number> }
      second.list.push(3)
      assert.deepStrictEqual(yield* call(store), { list: [1] })
    }))

  it.effect("a result that cannot be encoded is never applied again", () =>
    Effect.gen(function*() {
      for (const [name, result] of unencodable) {
        const store = yield* memory
        const hook = counting(result)
        const events: Array<EffectEvent> = []
        const options = { execute: hook.execute }
        yield* withEvents(events)(failsWith(call(store, options), "EffectResultUnavailableError"))
        yield* failsWith(call(store, options), "EffectResultUnavailableError")
        const error = yield* failsWith(call(anotherProcess(store), options), "EffectResultUnavailableError")
        assert.isNotEmpty(error["reason"], name)
        assert.strictEqual(hook.runs, 1, name)
        assert.deepStrictEqual(events.map(told), ["failed"])
        assert.strictEqual((yield* store.get("k"))?.status, "recorded")
      }
    }))

  it.effect("a result that its schema refuses, or dies of, is never applied again", () =>
    Effect.gen(function*() {
      const dying = codec(Schema.String.pipe(Schema.decode({
        decode: { run: (value: string) => Effect.succeed(value) },
        encode: { run: () => Effect.die("encoder") }
      } as never)))
      for (const [schema, result] of [[Rich, { at: "today" }], [codec(Schema.Int), 1.5], [dying, "x"]] as const) {
        const store = yield* memory
        const hook = counting(result)
        const options = { schema, execute: hook.execute }
        yield* failsWith(call(store, options), "EffectResultUnavailableError")
        yield* failsWith(call(anotherProcess(store), options), "EffectResultUnavailableError")
        assert.strictEqual(hook.runs, 1)
      }
    }))

  it.effect("a result that is too large is never applied again", () =>
    Effect.gen(function*() {
      const store = yield* memory
      // {"value":"..."} takes twelve bytes of its own, and an umlaut two
      for (
        const [result, fits] of [["x".repeat(88), true], ["x".repeat(89), false], ["ü".repeat(44), true], [
          "ü".repeat(45),
          false
        ]] as const
      ) {
        const hook = counting(result)
        const options = { largestResult: 100, execute: hook.execute }
        for (const on of [store, store, anotherProcess(store)]) {
          if (fits) assert.strictEqual(yield* call(on, options), result)
          else yield* failsWith(call(on, options), "EffectResultUnavailableError")
        }
        assert.strictEqual(hook.runs, 1)
        yield* store.remove("k")
      }
    }))

  it.effect("an answer of the remote check that is too large is applied without a result", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const hook = counting()
      const options = { largestResult: 100, execute: hook.execute }
      const found = (length: number) => ({ ...options, alreadyApplied: () => "x".repeat(length) })
      // with the twelve bytes around it
      assert.strictEqual(yield* call(store, { ...found(88), key: "fits" }), "x".repeat(88))
      yield* failsWith(call(store, found(89)), "EffectResultUnavailableError")
      yield* failsWith(call(anotherProcess(store), { execute: hook.execute }), "EffectResultUnavailableError")
      assert.strictEqual(hook.runs, 0)
    }))

  it.effect("alreadyApplied supplies an unavailable result", () =>
    Effect.gen(function*() {
      for (const form of ["found", EffectResolution.applied("found")]) {
        const store = yield* memory
        const hook = counting(10n)
        let applied = false
        const options = {
          execute: () =>
            Effect.tap(hook.execute(), () =>
              Effect.sync(() => {
                applied = true
              })),
          alreadyApplied: () => applied ? form : undefined
        }
        assert.strictEqual(yield* call(store, options), "found")
        // it is written down, for those who cannot ask
        assert.strictEqual(yield* call(anotherProcess(store), { execute: hook.execute }), "found")
        assert.strictEqual(hook.runs, 1)
      }
    }))

  it.effect("alreadyApplied supplies what the record of a lost claim's winner has not", () =>
    Effect.gen(function*() {
      const store = yield* memory
      let applied = false
      // while it is executed, a person takes the key away and resolves it without a result
      const execute = () =>
        Effect.gen(function*() {
          applied = true
          yield* TestClock.adjust("31 seconds")
          yield* store.resolve("k", EffectResolution.applied())
          return "mine"
        })
      const renew: IEffectStore["renew"] = () => Effect.never
      const options = { execute, alreadyApplied: () => applied ? "found" : undefined }
      assert.strictEqual(yield* call({ ...store, renew }, options), "found")
    }))

  it.effect("a replay asks alreadyApplied for an unavailable result, and never runs execute", () =>
    Effect.gen(function*() {
      const hook = counting(10n)
      const fails = { _tag: "Down" }
      const checks: ReadonlyArray<readonly [check: () => unknown, tag: string]> = [
        [() => undefined, "EffectResultUnavailableError"],
        [() => EffectResolution.notApplied, "EffectResultUnavailableError"],
        [() => EffectResolution.unknown, "EffectResultUnavailableError"],
        [() => EffectResolution.applied(), "EffectResultUnavailableError"],
        [() => Effect.fail(fails), "Down"]
      ]
      for (const [alreadyApplied, tag] of checks) {
        const store = yield* memory
        yield* failsWith(call(store, { execute: hook.execute }), "EffectResultUnavailableError")
        hook.runs = 0
        yield* failsWith(call(store, { alreadyApplied, execute: hook.execute }), tag)
        yield* assertIdle(store)
        const events: Array<EffectEvent> = []
        const found = { alreadyApplied: () => undefined, execute: hook.execute }
        yield* failsWith(call(store, found), "EffectResultUnavailableError")
        assert.strictEqual(yield* withEvents(events)(call(store, { ...found, alreadyApplied: () => "found" })), "found")
        assert.strictEqual(yield* call(anotherProcess(store), found), "found")
        assert.strictEqual(hook.runs, 0)
      }
    }))

  it.effect("a remote that has the effect, but not its result, is asked once by a call", () =>
    Effect.gen(function*() {
      let asked = 0
      const alreadyApplied = () => {
        asked++
        return EffectResolution.applied()
      }
      yield* failsWith(call(yield* memory, { alreadyApplied }), "EffectResultUnavailableError")
      assert.strictEqual(asked, 1)
      yield* failsWith(transactional(hindered(yield* memory).store, { alreadyApplied }), "EffectResultUnavailableError")
      assert.strictEqual(asked, 2)
    }))

  it.effect("a result that was supplied while its record could not be written is answered ever after", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let up = false
      const store: IEffectStore = { ...base, complete: (items) => up ? base.complete(items) : down("complete") }
      let applied = false
      const options = {
        execute: () =>
          Effect.sync(() => {
            applied = true
            return 10n
          }),
        alreadyApplied: () => applied ? "found" : undefined
      }
      assert.strictEqual(yield* call(store, options), "found")
      assert.strictEqual(yield* call(store), "found")
      up = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* call(anotherProcess(base)), "found")
      assert.strictEqual(registryOf(store).unwritten.size, 0)
    }))

  it.effect("a missing result may be supplied while its record cannot be written, to its own tool only", () =>
    Effect.gen(function*() {
      const base = yield* memory
      let up = false
      const store: IEffectStore = { ...base, complete: (items) => up ? base.complete(items) : down("complete") }
      yield* failsWith(call(store, { input: 1, execute: () => 10n }), "EffectResultUnavailableError")
      const check = counting("another tool's")
      yield* failsWith(call(store, { tool: "u", alreadyApplied: check.execute }), "EffectKeyConflictError")
      assert.strictEqual(check.runs, 0)
      const supplied = { input: 1, onInputChange: "fail", alreadyApplied: () => "found" } as const
      yield* failsWith(call(store, { ...supplied, input: 2 }), "EffectInputChangedError")
      assert.strictEqual(yield* call(store, supplied), "found")
      assert.strictEqual(yield* call(store), "found")
      up = true
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* call(anotherProcess(base)), "found")
    }))

  it.effect("a store that does not take the supplied result keeps nobody waiting", () =>
    Effect.gen(function*() {
      const base = yield* memory
      for (
        const resolve of [() => Effect.never, () => down("resolve"), () => Effect.die("broken"), () => {
          throw new Error("broken")
        }] as ReadonlyArray<IEffectStore["resolve"]>
      ) {
        const store = { ...base, resolve }
        yield* base.remove("k")
        yield* failureOf(call(store, { execute: () => 10n }))
        const fiber = yield* fork(call(store, { alreadyApplied: () => "found" }))
        yield* TestClock.adjust("10 seconds")
        assert.isTrue(ended(fiber))
        assert.strictEqual(yield* Fiber.join(fiber), "found")
      }
    }))

  it.effect("a record that no longer decodes is an error", () =>
    Effect.gen(function*() {
      const store = yield* memory
      yield* call(store, { execute: () => "text" })
      const hook = counting()
      const schema = codec(Schema.Struct({ id: Schema.Int }))
      const options = { schema, alreadyApplied: hook.execute, execute: hook.execute }
      for (const on of [store, anotherProcess(store)]) {
        const error = yield* failsWith(call(on, options), "EffectRecordError")
        assert.deepStrictEqual([error["key"], error["tool"]], ["k", "t"])
      }
      assert.strictEqual(hook.runs, 0)
      // each caller reads with its own schema
      assert.strictEqual(yield* call(store, { schema: codec(Schema.String) }), "text")
    }))

  it.effect("a corrupt record is an error, and nothing runs", () =>
    Effect.gen(function*() {
      const base = yield* memory
      const recorded = (result: unknown): IEffectStore["claim"] => () =>
        Effect.succeed([{ _tag: "Recorded", tool: "t", result, outcome: "executed", fingerprint: "" } as never])
      const claims: ReadonlyArray<IEffectStore["claim"]> = [
        () => Effect.succeed([{ _tag: "Unreadable", tool: "t", problem: "torn page" }]),
        ...["", "{", "null", "[]", `"x"`, "{}", `{"valu":1}`, undefined, 7].map(recorded)
      ]
      const hook = counting()
      for (const claim of claims) {
        yield* failsWith(
          call({ ...base, claim }, { alreadyApplied: hook.execute, execute: hook.execute }),
          "EffectRecordError"
        )
      }
      assert.strictEqual(hook.runs, 0)
    }))
})
