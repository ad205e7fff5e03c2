import { assert, describe, it } from "@effect/vitest"
import { generateText as sdkGenerateText, isStepCount } from "ai"
import {
  Context,
  Data,
  Deferred,
  Effect,
  Exit,
  Latch,
  Layer,
  Logger,
  Redacted,
  References,
  Schema,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import { Ai } from "../src/Ai.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, readBy, says, scripted } from "./support/model.ts"

const options = (abortSignal?: AbortSignal) => ({
  toolCallId: "1",
  messages: [],
  context: {},
  ...abortSignal === undefined ? {} : { abortSignal }
})

/** What a direct call of a tool settles with. */
const settled = (promise: PromiseLike<unknown>) =>
  Effect.promise(() =>
    Promise.resolve(promise).then(
      (value) => Exit.succeed(value) as Exit.Exit<unknown, unknown>,
      (error: unknown) => Exit.fail(error)
    )
  )

const empty = Schema.Struct({})

const silent = Effect.provideService(References.CurrentLoggers, new Set<never>())

class Refused extends Data.TaggedError("Refused")<{ readonly by: string }> {}

describe("tool", () => {
  it.effect("passes the AI SDK's options on as they are", () =>
    Effect.gen(function*() {
      const metadata = { source: "test" }
      const providerOptions = { openai: { strict: true } }
      const made = yield* tool({
        description: ({ context }) => `For ${String(context["user"])}`,
        title: "A title",
        inputSchema: Schema.Struct({ a: Schema.Int }),
        inputExamples: [{ input: { a: 1 } }],
        strict: true,
        metadata,
        providerOptions,
        deferLoading: false,
        needsApproval: true,
        execute: () => Effect.void
      })
      assert.strictEqual(made.metadata, metadata)
      assert.strictEqual(made.providerOptions, providerOptions)
      assert.deepStrictEqual(
        [made.title, made.strict, made.deferLoading, made.needsApproval, made.inputExamples],
        ["A title", true, false, true, [{ input: { a: 1 } }]]
      )
      assert.isFunction(made.description)
    }))

  it.effect("answers a direct call in JSON form", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        inputSchema: Schema.Struct({ at: Schema.Date }),
        outputSchema: Schema.Struct({ next: Schema.Date }),
        execute: ({ at }) => Effect.succeed({ next: new Date(at.getTime() + 1) })
      })
      const result = yield* Effect.promise(() => made.execute({ at: "2026-01-01T00:00:00.000Z" }, options()))
      assert.deepStrictEqual(result, { next: "2026-01-01T00:00:00.001Z" })
    }))

  it.effect("gives execute the call's options and its own validated context", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        inputSchema: empty,
        contextSchema: Schema.Struct({ since: Schema.DateFromString }),
        execute: (_, { context, toolCallId }) => Effect.succeed([context.since.getTime(), toolCallId] as const)
      })
      const result = yield* generateText({
        model: scripted(calls(["made", {}, "id-7"])),
        prompt: "go",
        tools: { made },
        toolsContext: { made: { since: "1970-01-01T00:00:00.005Z" } }
      })
      assert.deepStrictEqual(result.toolResults[0]?.output, [5, "id-7"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("runs nothing where the signal is aborted already", () =>
    Effect.gen(function*() {
      let ran = false
      const made = yield* tool({ inputSchema: empty, execute: () => Effect.sync(() => void (ran = true)) })
      const reason = new Error("too late")
      const exit = yield* settled(made.execute({}, options(AbortSignal.abort(reason))))
      assert.isTrue(
        Exit.isFailure(exit) && exit.cause.reasons[0]?._tag === "Fail" && exit.cause.reasons[0].error === reason
      )
      assert.isFalse(ran)
    }))

  it.effect("is interrupted by the call's abort, and settles after its finalizers with the abort's reason", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const made = yield* tool({
        inputSchema: empty,
        execute: () =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("scope"))))
            return yield* Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("interrupted")))
          })
      })
      const controller = new AbortController()
      const call = made.execute({}, options(controller.signal))
      controller.abort("enough")
      assert.deepStrictEqual(yield* settled(call), Exit.fail("enough"))
      assert.deepStrictEqual(log, ["interrupted", "scope"])
    }))

  it.effect("gives each call a Scope of its own", () =>
    Effect.gen(function*() {
      const log: Array<number> = []
      const made = yield* tool({
        inputSchema: Schema.Struct({ n: Schema.Int }),
        execute: ({ n }) => Effect.acquireRelease(Effect.succeed(n), () => Effect.sync(() => log.push(n)))
      })
      yield* Effect.promise(() => Promise.resolve(made.execute({ n: 1 }, options())))
      assert.deepStrictEqual(log, [1])
      yield* Effect.promise(() => Promise.resolve(made.execute({ n: 2 }, options())))
      assert.deepStrictEqual(log, [1, 2])
    }))

  it.effect("never loses the value of an uninterruptible execute, encoded too", () =>
    Effect.gen(function*() {
      for (const steps of [0, 1, 31, 32, 33, 64, 2500]) {
        const latch = Latch.makeUnsafe()
        const made = yield* tool({
          inputSchema: empty,
          outputSchema: Schema.Struct({ at: Schema.Date }),
          execute: () =>
            Effect.uninterruptible(Effect.gen(function*() {
              yield* latch.await
              for (let step = 0; step < steps; step++) yield* Effect.sync(() => step)
              return { at: new Date(0) }
            }))
        })
        const controller = new AbortController()
        const call = made.execute({}, options(controller.signal))
        controller.abort()
        yield* latch.open
        assert.deepStrictEqual(yield* settled(call), Exit.succeed({ at: "1970-01-01T00:00:00.000Z" }))
      }
    }))

  it.effect("keeps the value of an uninterruptible execute when its generateText is interrupted", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const made = yield* tool({
        inputSchema: empty,
        execute: () =>
          Effect.uninterruptible(
            Effect.gen(function*() {
              yield* Deferred.succeed(started, undefined)
              yield* Effect.sleep("1 second")
              log.push("applied")
              return "applied"
            })
          )
      })
      const fiber = yield* Effect.forkChild(
        generateText({ model: scripted(calls(["made", {}])), prompt: "go", tools: { made } })
      )
      yield* Deferred.await(started)
      const interrupting = yield* Effect.forkChild(Effect.sync(() => fiber.interruptUnsafe()))
      yield* Effect.yieldNow
      assert.isDefined(interrupting.pollUnsafe())
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      yield* Effect.yieldNow
      assert.deepStrictEqual(log, ["applied"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("captures services where it is made, and takes References from a fiber that calls it directly", () =>
    Effect.gen(function*() {
      class Name extends Context.Service<Name, string>()("test/Name") {}
      const made = yield* tool({
        inputSchema: empty,
        execute: () =>
          Effect.gen(function*() {
            return [yield* Name, (yield* References.CurrentLogAnnotations)["call"] as string] as const
          })
      }).pipe(Effect.provideService(Name, "captured"), Effect.annotateLogs("call", "making"))
      const result = yield* Effect.suspend(() => Effect.promise(() => made.execute({}, options()))).pipe(
        Effect.annotateLogs("call", "calling")
      )
      assert.deepStrictEqual(result, ["captured", "calling"])
    }))

  it.effect("survives a spread: it is still bound to the fiber that calls", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        inputSchema: empty,
        execute: () => Effect.map(References.CurrentLogAnnotations, (all) => all["call"] as string)
      })
      const result = yield* generateText({
        model: scripted(calls(["copy", {}])),
        prompt: "go",
        tools: { copy: { ...made, description: "A copy" } }
      }).pipe(Effect.annotateLogs("call", "calling"))
      assert.strictEqual(result.toolResults[0]?.output, "calling")
    }).pipe(Effect.provide(Ai.layer)))

  describe("under plain ai", () => {
    it.effect("fails with the identical value where the SDK can carry it", () =>
      Effect.gen(function*() {
        for (const value of [new Refused({ by: "policy" }), "no", null, { code: 1 }, 42]) {
          const made = yield* tool({ inputSchema: empty, execute: () => Effect.asVoid(Effect.fail(value)) })
          const result = yield* Effect.promise(() =>
            sdkGenerateText({ model: scripted(calls(["made", {}])), prompt: "go", tools: { made } })
          )
          const error = result.content.find((part) => part.type === "tool-error")
          assert.isTrue(Object.is(error?.error, value))
        }
      }))

    it.effect("does not make the call reject where the SDK cannot", () =>
      Effect.gen(function*() {
        const cyclic: Record<string, unknown> = {}
        cyclic["self"] = cyclic
        for (const value of [10n, cyclic, undefined, () => 1, Symbol("why")]) {
          const model = scripted(calls(["made", {}]), says("sorry"))
          const made = yield* tool({ inputSchema: empty, execute: () => Effect.asVoid(Effect.fail(value)) })
          const result = yield* Effect.promise(() =>
            sdkGenerateText({ model, prompt: "go", tools: { made }, stopWhen: isStepCount(2) })
          )
          assert.strictEqual(result.text, "sorry")
          assert.strictEqual(result.steps[0]?.content.filter((part) => part.type === "tool-error").length, 1)
        }
      }))
  })

  describe("callbacks", () => {
    it.effect("run as Effects, in order, with decoded input", () =>
      Effect.gen(function*() {
        const log: Array<unknown> = []
        const made = yield* tool({
          inputSchema: Schema.Struct({ at: Schema.Date }),
          onInputStart: () => Effect.sync(() => void log.push("start")),
          onInputAvailable: ({ input }) => Effect.sync(() => void log.push(input.at)),
          execute: () => Effect.sync(() => void log.push("execute"))
        })
        yield* generateText({
          model: scripted(calls(["made", { at: "1970-01-01T00:00:00.000Z" }])),
          prompt: "go",
          tools: { made }
        })
        assert.deepStrictEqual(log, ["start", new Date(0), "execute"])
      }).pipe(Effect.provide(Ai.layer)))

    it.effect("are logged where they die, and the call goes on", () => {
      const logged: Array<unknown> = []
      const logger = Logger.make(({ message }) => void logged.push(message))
      return Effect.gen(function*() {
        const made = yield* tool({
          inputSchema: empty,
          onInputStart: () => Effect.die("broken"),
          onInputAvailable: () => {
            throw new Error("broken")
          },
          execute: () => Effect.succeed("done"),
          toModelOutput: () => Effect.die("broken")
        })
        const model = scripted(calls(["made", {}]), says("ok"))
        const result = yield* generateText({ model, prompt: "go", tools: { made }, stopWhen: isStepCount(2) })
        assert.strictEqual(result.text, "ok")
        assert.deepStrictEqual(logged.flat(), [
          "A tool's onInputStart failed",
          "A tool's onInputAvailable failed",
          "A tool's toModelOutput failed"
        ])
      }).pipe(Effect.provide([Ai.layer, Logger.layer([logger])]))
    })

    it.effect("leave the model with the result where toModelOutput dies, as without one", () =>
      Effect.gen(function*() {
        for (const [value, read] of [["done", "done"], [{ a: 1 }, { a: 1 }], [undefined, null]] as const) {
          const made = yield* tool({
            inputSchema: empty,
            execute: () => Effect.succeed(value),
            toModelOutput: () => Effect.die("broken")
          })
          const model = scripted(calls(["made", {}]), says("ok"))
          yield* generateText({ model, prompt: "go", tools: { made }, stopWhen: isStepCount(2) })
          assert.deepStrictEqual(readBy(model), [read])
        }
      }).pipe(Effect.provide(Ai.layer), silent))

    it.effect("stop when their Ai closes, and one that comes later does not fail its call", () =>
      Effect.gen(function*() {
        const made = yield* tool({
          inputSchema: empty,
          onInputStart: () => Effect.never,
          execute: () => Effect.succeed("done")
        })
        const ai = yield* Layer.build(Ai.layer).pipe(Effect.scoped)
        const result = yield* generateText({ model: scripted(calls(["made", {}])), prompt: "go", tools: { made } })
          .pipe(
            Effect.provideContext(ai)
          )
        assert.strictEqual(result.toolResults[0]?.output, "done")
      }).pipe(silent))

    it.effect("toModelOutput sees decoded values, and what it makes is what the model reads", () =>
      Effect.gen(function*() {
        const made = yield* tool({
          inputSchema: Schema.Struct({ days: Schema.BigInt }),
          outputSchema: Schema.Struct({ at: Schema.Date }),
          execute: ({ days }) => Effect.succeed({ at: new Date(Number(days) * 86_400_000) }),
          toModelOutput: ({ input, output }) =>
            Effect.succeed({ type: "text", value: `${input.days + 1n} ${output.at.getUTCDate()}` })
        })
        const model = scripted(calls(["made", { days: "2" }]), says("ok"))
        yield* generateText({ model, prompt: "go", tools: { made }, stopWhen: isStepCount(2) })
        assert.deepStrictEqual(readBy(model), ["3 3"])
      }).pipe(Effect.provide(Ai.layer)))
  })

  describe("hooks written in JavaScript", () => {
    const run = (execute: () => unknown) =>
      Effect.gen(function*() {
        const made = yield* tool({ inputSchema: empty, execute: execute as () => Effect.Effect<string> })
        return yield* settled(made.execute({}, options()))
      })

    it.effect("may answer a value, a Promise, an async iterable or a Stream: its last value counts", () =>
      Effect.gen(function*() {
        async function* numbers() {
          yield 1
          yield 2
        }
        assert.deepStrictEqual(yield* run(() => 1), Exit.succeed(1))
        assert.deepStrictEqual(yield* run(async () => 2), Exit.succeed(2))
        assert.deepStrictEqual(yield* run(numbers), Exit.succeed(2))
        assert.deepStrictEqual(yield* run(() => Stream.make(1, 2, 3)), Exit.succeed(3))
        // @effect-diagnostics-next-line promiseInEffectSuccess:off
        assert.deepStrictEqual(yield* run(() => Effect.succeed(Promise.resolve(4))), Exit.succeed(4))
      }).pipe(silent))

    it.effect("fail with what they throw or reject with", () =>
      Effect.gen(function*() {
        const thrown = new Error("thrown")
        assert.deepStrictEqual(
          yield* run(() => {
            throw thrown
          }),
          Exit.fail(thrown)
        )
        assert.deepStrictEqual(yield* run(() => Promise.reject(thrown)), Exit.fail(thrown))
      }))

    it.effect("fail where they answer an Effect in an Effect", () =>
      Effect.gen(function*() {
        const exit = yield* run(() => Effect.succeed(Effect.succeed(1)))
        assert.match(String(Exit.isFailure(exit) ? exit.cause : ""), /Effect inside of another Effect/)
      }))
  })

  it.effect("describes failures that hold redacted values without them", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["made", {}]), says("sorry"))
      const made = yield* tool({
        inputSchema: empty,
        execute: () =>
          Effect.asVoid(Effect.fail({ _tag: "Denied", key: Redacted.make("hunter2"), nested: [Redacted.make("x")] }))
      })
      yield* generateText({ model, prompt: "go", tools: { made }, stopWhen: isStepCount(2) })
      assert.deepStrictEqual(readBy(model), [`Denied {"key":"<redacted>","nested":["<redacted>"]}`])
    }).pipe(Effect.provide(Ai.layer)))
})
