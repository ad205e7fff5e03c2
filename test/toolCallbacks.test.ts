/** Callbacks of tools (`onInputStart`, `onInputDelta`, `onInputAvailable`, `toModelOutput`) and `needsApproval`, in calls and streams. */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { expect, it } from "@effect/vitest"
import * as ai from "ai"
import { Cause, Context, Data, Deferred, Effect, Exit, Fiber, Layer, Logger, Schema, Scope } from "effect"
import { describe } from "vitest"
import { Ai } from "../src/Ai.ts"
import type { AiError } from "../src/AiError.ts"
import { defineEffectTool } from "../src/EffectTool.ts"
import { EffectStore } from "../src/EffectStore.ts"
import { generateText } from "../src/GenerateText.ts"
import { streamText } from "../src/StreamText.ts"
import { tool } from "../src/Tool.ts"
import { ToolContext } from "../src/ToolContext.ts"
import { wrapToolsForRun } from "../src/WrapTools.ts"
import { calls, readBy, says, scripted } from "./support/model.ts"
import { calls as streamedCalls, says as streamedSays, streaming } from "./support/streamModel.ts"

class Log extends Context.Service<Log, { readonly lines: Array<string> }>()("Log") {
  static readonly layer = Layer.sync(Log, () => Log.of({ lines: [] }))
}
const add = (line: string) => Effect.map(Log, ({ lines }) => void lines.push(line))
const lines = Effect.map(Log, (log) => log.lines)

type Success<T> = T extends Effect.Effect<infer A, unknown, unknown> ? A : never

class NoRules extends Data.TaggedError("NoRules")<{}> {}

const empty = Schema.Struct({})
const base = Layer.merge(Ai.layer, Log.layer)

/** Keeps the messages that are logged. */
const keeping = () => {
  const logged: Array<unknown> = []
  return { logged, layer: Logger.layer([Logger.make<unknown, void>(({ message }) => void logged.push(message))]) }
}

const silently = Effect.provide(Logger.layer([]))

/** A turn that calls `tell`, whose input comes in pieces. */
const pieces = (toolName: string, ...deltas: ReadonlyArray<string>): ReadonlyArray<LanguageModelV4StreamPart> => {
  const [start, call, finish] = streamedCalls([toolName, JSON.parse(deltas.join(""))])
  return [
    start!,
    { type: "tool-input-start", id: "call-1", toolName },
    ...deltas.map((delta): LanguageModelV4StreamPart => ({ type: "tool-input-delta", id: "call-1", delta })),
    { type: "tool-input-end", id: "call-1" },
    call!,
    finish!
  ]
}

/** Waits for ever, and says when it has begun and when it was cleaned up. */
const hanging = (begun: Deferred.Deferred<void>) => () =>
  Effect.onInterrupt(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never), () => add("cleaned up"))

const makeTell = tool({
  inputSchema: Schema.Struct({ at: Schema.Date }),
  outputSchema: Schema.Struct({ year: Schema.Int }),
  onInputStart: ({ toolCallId }) => add(`start ${toolCallId}`),
  onInputDelta: ({ inputTextDelta }) => add(`delta ${inputTextDelta}`),
  onInputAvailable: ({ input }) => add(`available ${input.at.getTime()}`),
  execute: ({ at }) => Effect.as(add("execute"), { year: at.getUTCFullYear() }),
  toModelOutput: ({ output }) => Effect.as(add("output"), { type: "text", value: `the year ${output.year}` })
})

describe("callbacks of tools", () => {
  it.effect("use services, in streams too, where they hear every piece of the input", () =>
    Effect.gen(function*() {
      const model = streaming(pieces("tell", `{"at":"1970-`, `01-01T00:00:00.000Z"}`), streamedSays("ok"))
      const result = yield* streamText({
        model,
        prompt: "go",
        tools: { tell: yield* makeTell },
        stopWhen: ai.isStepCount(2)
      })
      expect(yield* result.text).toBe("ok")
      expect(yield* lines).toEqual([
        "start call-1",
        `delta {"at":"1970-`,
        `delta 01-01T00:00:00.000Z"}`,
        "available 0",
        "execute",
        "output"
      ])
      expect(JSON.stringify(model.doStreamCalls[1]!.prompt)).toContain("the year 1970")
    }).pipe(Effect.scoped, Effect.provide(base)))

  it.effect("use services in plain streams of the AI SDK too", () =>
    Effect.gen(function*() {
      const tell = yield* makeTell
      const text = yield* Effect.promise(async () =>
        ai.streamText({
          model: streaming(pieces("tell", `{"at":"1970-01-01T00:00:00.000Z"}`), streamedSays("ok")),
          prompt: "go",
          tools: { tell },
          stopWhen: ai.isStepCount(2)
        }).text
      )
      expect(text).toBe("ok")
      expect((yield* lines).map((line) => line.split(" ")[0]))
        .toEqual(["start", "delta", "available", "execute", "output"])
    }).pipe(Effect.provide(Log.layer)))

  for (const name of ["onInputStart", "onInputAvailable"] as const) {
    it.effect(`go on where the call is interrupted (${name})`, () =>
      Effect.gen(function*() {
        const [begun, go, done] = yield* Effect.all([
          Deferred.make<void>(),
          Deferred.make<void>(),
          Deferred.make<void>()
        ])
        const slow = yield* tool({
          inputSchema: empty,
          execute: () => Effect.succeed("never"),
          [name]: () =>
            Effect.andThen(
              Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go)),
              Deferred.succeed(done, undefined)
            )
        })
        const call = yield* Effect.forkChild(
          generateText({ model: scripted(calls(["slow", {}])), prompt: "go", tools: { slow } })
        )
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(call)
        yield* Deferred.succeed(go, undefined)
        yield* Deferred.await(done)
      }).pipe(Effect.provide(base)))
  }

  for (const name of ["onInputAvailable", "toModelOutput"] as const) {
    it.effect(`hold up nobody who ends the call (${name})`, () =>
      Effect.gen(function*() {
        const ends = {
          "leaving a stream": (read: Fiber.Fiber<unknown, unknown>) => Fiber.interrupt(read),
          "aborting it": (_: unknown, stop: AbortController) => Effect.sync(() => stop.abort())
        }
        for (const end of Object.values(ends)) {
          for (const streams of [true, false]) {
            const begun = yield* Deferred.make<void>()
            const slow = yield* tool({
              inputSchema: empty,
              execute: () => Effect.succeed("done"),
              [name]: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
            })
            const stop = new AbortController()
            const options = { prompt: "go", tools: { slow }, stopWhen: ai.isStepCount(2), abortSignal: stop.signal }
            const call: Effect.Effect<unknown, AiError, Ai | Scope.Scope> = streams
              ? Effect.flatMap(
                streamText({ ...options, model: streaming(streamedCalls(["slow", {}]), streamedSays("done")) }),
                ({ text }) => text
              )
              : generateText({ ...options, model: scripted(calls(["slow", {}]), says("done")) })
            const read = yield* Effect.forkChild(Effect.scoped(call))
            yield* Deferred.await(begun)
            yield* end(read, stop)
            expect(Exit.isFailure(yield* Fiber.await(read))).toBe(true)
          }
        }
      }).pipe(silently, Effect.provide(base)))
  }

  it.effect("stop when their Ai closes; the call goes on, and is not failed by those that come later", () =>
    Effect.gen(function*() {
      const { layer, logged } = keeping()
      const begun = yield* Deferred.make<void>()
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(Ai.layer, scope)
      const made = yield* tool({
        inputSchema: empty,
        onInputStart: hanging(begun),
        onInputAvailable: () => add("never"),
        execute: () => Effect.succeed("done"),
        toModelOutput: () => Effect.as(add("never"), { type: "text", value: "never" })
      })
      const model = scripted(calls(["made", {}]), says("ok"))
      const call = yield* generateText({ model, prompt: "go", tools: { made }, stopWhen: ai.isStepCount(2) }).pipe(
        Effect.provideContext(context),
        Effect.provide(layer),
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      yield* Scope.close(scope, Exit.void)
      expect(yield* lines).toEqual(["cleaned up"])
      expect((yield* Fiber.join(call)).text).toBe("ok")
      expect(readBy(model)).toEqual(["done"])
      expect(yield* lines).toEqual(["cleaned up"])
      expect(logged).toEqual(
        ["onInputStart", "onInputAvailable", "toModelOutput"].map((name) => [
          `A tool's ${name} was stopped, or came after its Ai had closed`
        ])
      )
    }).pipe(Effect.provide(Log.layer)))

  it.effect("that die are logged, and never fail a stream whose effect is done", () =>
    Effect.gen(function*() {
      const made = yield* tool({
        inputSchema: Schema.Struct({ a: Schema.Int }),
        onInputStart: () => Effect.die("broken"),
        onInputDelta: () => Effect.die("broken"),
        onInputAvailable: () => Promise.reject(new Error("broken")),
        execute: () => Effect.succeed({ done: true }),
        toModelOutput: () => {
          throw new Error("broken")
        }
      })
      const model = streaming(pieces("made", `{"a":1}`), streamedSays("ok"))
      const { layer, logged } = keeping()
      const result = yield* Effect.provide(
        streamText({ model, prompt: "go", tools: { made }, stopWhen: ai.isStepCount(2) }),
        layer
      )
      expect(yield* result.text).toBe("ok")
      expect(logged).toEqual(
        ["onInputStart", "onInputDelta", "onInputAvailable", "toModelOutput"].map((name) => [`A tool's ${name} failed`])
      )
      expect(JSON.stringify(model.doStreamCalls[1]!.prompt)).toContain(`{"type":"json","value":{"done":true}}`)
    }).pipe(Effect.scoped, Effect.provide(base)))

  it.effect("of effect tools are the same", () =>
    Effect.gen(function*() {
      const label = yield* defineEffectTool({
        inputSchema: Schema.Struct({ label: Schema.String }),
        onInputAvailable: ({ input }) => add(`available ${input.label}`),
        needsApproval: ({ label }) => Effect.as(add(`approve ${label}`), false),
        execute: ({ label }) => Effect.succeed(label),
        toModelOutput: () => Effect.die("broken")
      })
      const model = scripted(calls(["label", { label: "bug" }]), says("ok"))
      yield* generateText({ model, prompt: "go", tools: { label }, stopWhen: ai.isStepCount(2) })
      expect(yield* lines).toEqual(["available bug", "approve bug"])
      expect(readBy(model)).toEqual(["bug"])
    }).pipe(
      Effect.provide([Ai.layer, EffectStore.layerMemory, ToolContext.layer({ runId: "run-1" })]),
      Effect.provide(Log.layer),
      silently
    ))
})

describe("the other hooks of a wrapped effect tool", () => {
  const makeLabel = defineEffectTool({
    inputSchema: empty,
    onInputAvailable: () => Effect.flatMap(ToolContext, ({ run }) => add(`available in ${run.runId}`)),
    needsApproval: () => Effect.flatMap(ToolContext, ({ run }) => Effect.as(add(`asked in ${run.runId}`), false)),
    execute: () => Effect.flatMap(ToolContext, ({ run }) => Effect.as(add(`executed in ${run.runId}`), "done")),
    toModelOutput: () =>
      Effect.map(ToolContext, ({ run }) => ({ type: "text" as const, value: `output of ${run.runId}` }))
  })
  const wrapped = (runId: string, tools: { readonly label: Success<typeof makeLabel> }) =>
    Effect.gen(function*() {
      const context = yield* Layer.build(ToolContext.layer({ runId }))
      return yield* wrapToolsForRun(tools, Context.get(context, ToolContext), yield* EffectStore)
    })
  const seen = (runId: string) => ["available in", "asked in", "executed in"].map((what) => `${what} ${runId}`)

  it.effect("have the run's ToolContext, in plain ai", () =>
    Effect.gen(function*() {
      const tools = yield* wrapped("run-1", { label: yield* makeLabel })
      const model = scripted(calls(["label", {}]), says("ok"))
      yield* Effect.promise(() => ai.generateText({ model, prompt: "go", tools, stopWhen: ai.isStepCount(2) }))
      expect(yield* lines).toEqual(seen("run-1"))
      expect(readBy(model)).toEqual(["output of run-1"])
    }).pipe(Effect.scoped, Effect.provide([EffectStore.layerMemory, Log.layer])))

  it.effect("have that of the last wrap, inside of another run's generateText too", () =>
    Effect.gen(function*() {
      const tools = yield* wrapped("run-2", yield* wrapped("run-1", { label: yield* makeLabel }))
      const model = scripted(calls(["label", {}]), says("ok"))
      yield* Effect.promise(() => ai.generateText({ model, prompt: "go", tools, stopWhen: ai.isStepCount(2) }))
      expect((yield* lines).splice(0)).toEqual(seen("run-2"))
      yield* generateText({ model: scripted(calls(["label", {}]), says("ok")), prompt: "go", tools }).pipe(
        Effect.provide(ToolContext.layer({ runId: "run-3" }))
      )
      expect((yield* lines).slice(0, 2)).toEqual(seen("run-2").slice(0, 2))
    }).pipe(Effect.scoped, Effect.provide([Ai.layer, EffectStore.layerMemory, Log.layer])))
})

describe("needsApproval", () => {
  const guard = (needsApproval: (input: { readonly a: number }) => Effect.Effect<boolean, NoRules, Log>) =>
    tool({ inputSchema: Schema.Struct({ a: Schema.Int }), needsApproval, execute: ({ a }) => Effect.succeed(a) })

  it.effect("may answer an Effect, which decides", () =>
    Effect.gen(function*() {
      const guarded = yield* guard(({ a }) => Effect.as(add(`asked ${a}`), a > 1))
      const result = yield* generateText({
        model: scripted(calls(["guarded", { a: 1 }], ["guarded", { a: 2 }])),
        prompt: "go",
        tools: { guarded }
      })
      expect(yield* lines).toEqual(["asked 1", "asked 2"])
      expect(result.toolResults.map(({ output }) => output)).toEqual([1])
      expect(result.content.filter(({ type }) => type === "tool-approval-request").length).toBe(1)
    }).pipe(Effect.provide(base)))

  it.effect("that fails ends the call with the identical failure, and nothing is executed", () =>
    Effect.gen(function*() {
      const noRules = new NoRules()
      let executed = 0
      const guarded = yield* guard(() => Effect.fail(noRules))
      const other = yield* tool({ inputSchema: empty, execute: () => Effect.sync(() => ++executed) })
      const tools = { guarded, other }
      const turn = [["other", {}], ["guarded", { a: 1 }]] as const
      const failure: unknown = yield* Effect.flip(
        generateText({ model: scripted(calls(...turn)), prompt: "go", tools })
      )
      expect(failure).toBe(noRules)
      const stream = yield* streamText({ model: streaming(streamedCalls(...turn)), prompt: "go", tools })
      expect(yield* Effect.flip(stream.text)).toBe(noRules)
      const rejected = yield* Effect.promise(() =>
        ai.generateText({ model: scripted(calls(...turn)), prompt: "go", tools }).then(
          () => undefined,
          (error) => error
        )
      )
      expect(rejected).toBe(noRules)
      expect(executed).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(base)))

  it.effect("that dies makes the call die, and is interrupted with it", () =>
    Effect.gen(function*() {
      const broken = yield* guard(() => Effect.die("broken"))
      const exit = yield* Effect.exit(
        generateText({ model: scripted(calls(["broken", { a: 1 }])), prompt: "go", tools: { broken } })
      )
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause) && Cause.squash(exit.cause)).toBe("broken")
      const begun = yield* Deferred.make<void>()
      const slow = yield* guard(hanging(begun))
      const call = yield* Effect.forkChild(
        generateText({ model: scripted(calls(["slow", { a: 1 }])), prompt: "go", tools: { slow } })
      )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(call)
      expect(yield* lines).toEqual(["cleaned up"])
    }).pipe(Effect.provide(base)))

  it.effect("may be a value, or a plain function, as in the AI SDK", () =>
    Effect.gen(function*() {
      for (const needsApproval of [true, () => true, async () => true]) {
        const made = yield* tool({ inputSchema: empty, needsApproval, execute: () => Effect.succeed(1) })
        const result = yield* generateText({ model: scripted(calls(["made", {}])), prompt: "go", tools: { made } })
        expect(result.content.map(({ type }) => type)).toContain("tool-approval-request")
      }
    }).pipe(Effect.provide(base)))
})
