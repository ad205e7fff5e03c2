/** Callback options that answer Effects, in `generateText`: what they may do to a call, and what happens to them. */
import { expect, it } from "@effect/vitest"
import { isStepCount } from "ai"
import { Cause, Context, Data, Deferred, Effect, Exit, Fiber, Layer, Logger, References, Schema, Scope } from "effect"
import { describe } from "vitest"
import { Ai } from "../src/Ai.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, readBy, says, scripted, type Turn } from "./support/model.ts"

class Log extends Context.Service<Log, { readonly lines: Array<string> }>()("Log") {
  static readonly layer = Layer.sync(Log, () => Log.of({ lines: [] }))
}
const add = (line: string) => Effect.map(Log, ({ lines }) => void lines.push(line))
const lines = Effect.map(Log, (log) => log.lines)

class Refused extends Data.TaggedError("Refused")<{ readonly why: string }> {}

const base = Layer.merge(Ai.layer, Log.layer)
const makeAdd = tool({
  inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  execute: ({ a, b }) => Effect.succeed(a + b)
})

/** A logger that keeps what it gets. */
const keeping = () => {
  const logged: Array<{
    readonly message: unknown
    readonly cause: Cause.Cause<unknown>
    readonly level: string
    readonly annotations: Readonly<Record<string, unknown>>
  }> = []
  const logger = Logger.make<unknown, void>(({ cause, fiber, logLevel, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations)
    logged.push({ message, cause, level: logLevel, annotations })
  })
  return { logged, layer: Logger.layer([logger]) }
}

const deferreds = Effect.all([Deferred.make<void>(), Deferred.make<void>(), Deferred.make<void>()])

describe("notifications", () => {
  it.effect("use services of the call, in the order of what they tell, whatever their names", () =>
    Effect.gen(function*() {
      yield* generateText({
        model: scripted(calls(["add", { a: 1, b: 2 }]), says("3")),
        prompt: "1 + 2?",
        tools: { add: yield* makeAdd },
        stopWhen: isStepCount(2),
        experimental_onStart: () => add("start"),
        onStepStart: ({ stepNumber }) => add(`step ${stepNumber}`),
        experimental_onLanguageModelCallStart: () => add("model"),
        onLanguageModelCallEnd: async () => {},
        onToolExecutionStart: ({ toolCall }) => add(`tool ${toolCall.toolName}`),
        experimental_onToolCallFinish: ({ toolOutput }) => add(toolOutput.type),
        onStepFinish: (step) => add(`end ${step.finishReason}`),
        onFinish: ({ text }) => add(text)
      })
      expect(yield* lines).toEqual([
        "start",
        "step 0",
        "model",
        "tool add",
        "tool-result",
        "end tool-calls",
        "step 1",
        "model",
        "end stop",
        "3"
      ])
    }).pipe(Effect.provide(base)))

  it.effect("that die, throw, reject or fail are logged with their cause, and the call goes on", () =>
    Effect.gen(function*() {
      const { layer, logged } = keeping()
      const result = yield* generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () => Effect.die("dies"),
        onStepStart: () => {
          throw new Error("throws")
        },
        onStepEnd: () => Promise.reject(new Error("rejects")),
        onEnd: (() => Effect.fail("fails")) as never
      }).pipe(Effect.provide(layer))
      expect(result.text).toBe("hi")
      expect(logged.map(({ message }) => message)).toEqual([
        ["The callback onStart failed"],
        ["The callback onStepStart failed"],
        ["The callback onStepEnd failed"],
        ["The callback onEnd failed"]
      ])
      expect(logged.every(({ level }) => level === "Warn")).toBe(true)
      expect(logged.map(({ cause }) => Cause.squash(cause))).toEqual([
        "dies",
        new Error("throws"),
        new Error("rejects"),
        "fails"
      ])
    }).pipe(Effect.provide(base)))

  it.effect("have a Scope each, and the References of the call's fiber", () =>
    Effect.gen(function*() {
      const { layer, logged } = keeping()
      yield* generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => add("start closed"))
            yield* Effect.log("hello")
            yield* add("start")
          }),
        onEnd: () => add("end")
      }).pipe(Effect.provide(layer), Effect.annotateLogs("call", "c-1"))
      expect(yield* lines).toEqual(["start", "start closed", "end"])
      expect(logged.map(({ annotations, message }) => [message, annotations["call"]])).toEqual([[["hello"], "c-1"]])
    }).pipe(Effect.provide(base)))

  it.effect("go on where the call is interrupted", () =>
    Effect.gen(function*() {
      const [begun, go, done] = yield* deferreds
      const call = yield* Effect.forkChild(generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () =>
          Deferred.succeed(begun, undefined).pipe(
            Effect.andThen(Deferred.await(go)),
            Effect.andThen(Deferred.succeed(done, undefined))
          )
      }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(call)
      yield* Deferred.succeed(go, undefined)
      yield* Deferred.await(done)
    }).pipe(Effect.provide(base)))

  for (const name of ["onStart", "onStepStart", "onToolExecutionEnd", "onStepEnd"] as const) {
    it.effect(`hold up no call whose abortSignal aborts (${name})`, () =>
      Effect.gen(function*() {
        const begun = yield* Deferred.make<void>()
        const stop = new AbortController()
        const call = yield* Effect.forkChild(Effect.flip(generateText({
          model: scripted(calls(["add", { a: 1, b: 2 }]), says("3")),
          prompt: "1 + 2?",
          tools: { add: yield* makeAdd },
          stopWhen: isStepCount(2),
          abortSignal: stop.signal,
          ...{ [name]: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never) } as object
        })))
        yield* Deferred.await(begun)
        stop.abort("enough")
        const { cause, reason } = yield* Fiber.join(call)
        expect([reason, cause]).toEqual(["Aborted", "enough"])
      }).pipe(Effect.provide([Logger.layer([]), base])))
  }

  it.effect("stop when their Ai closes, and the call goes on", () =>
    Effect.gen(function*() {
      const { layer, logged } = keeping()
      const [begun] = yield* deferreds
      const scope = yield* Scope.make()
      const ai = yield* Layer.buildWithScope(Ai.layer, scope)
      const call = yield* generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        onStart: () =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() => Effect.andThen(Effect.yieldNow, add("released")))
            return yield* Effect.onInterrupt(
              Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
              () => add("cleaned up")
            )
          }),
        onEnd: () => add("never")
      }).pipe(Effect.provideContext(ai), Effect.provide(layer), Effect.forkChild)
      yield* Deferred.await(begun)
      yield* Scope.close(scope, Exit.void)
      expect(yield* lines).toEqual(["cleaned up", "released"])
      expect((yield* Fiber.join(call)).text).toBe("hi")
      expect(yield* lines).toEqual(["cleaned up", "released"])
      expect(logged.map(({ level, message }) => [level, message])).toEqual([
        ["Warn", ["The callback onStart was stopped, or came after its Ai had closed"]],
        ["Warn", ["The callback onEnd was stopped, or came after its Ai had closed"]]
      ])
    }).pipe(Effect.provide(Log.layer)))

  it.effect("see the identical failure of a tool", () =>
    Effect.gen(function*() {
      const refused = new Refused({ why: "no" })
      const seen: Array<unknown> = []
      const fails = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail(refused) })
      yield* generateText({
        model: scripted(calls(["fails", {}])),
        prompt: "hi",
        tools: { fails },
        onToolExecutionEnd: ({ toolOutput }) =>
          Effect.sync(() => void seen.push(toolOutput.type === "tool-error" && toolOutput.error)),
        onStepEnd: ({ content }) =>
          Effect.sync(() => {
            for (const part of content) if (part.type === "tool-error") seen.push(part.error)
          })
      })
      expect(seen.length).toBe(2)
      for (const error of seen) expect(error).toBe(refused)
    }).pipe(Effect.provide(base)))
})

describe("decisions", () => {
  it.effect("use services of the call, and the call goes on with what they answer", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }]), calls(["add", { a: 10, b: 2 }]), says("12"))
      const result = yield* generateText({
        model,
        prompt: "1 + 2?",
        tools: { add: yield* makeAdd },
        stopWhen: [isStepCount(9), ({ steps }) => Effect.as(add("stop?"), steps.length === 2)],
        prepareStep: ({ stepNumber }) => Effect.as(add(`prepare ${stepNumber}`), { temperature: stepNumber }),
        toolApproval: {
          add: ({ a }) => Effect.succeed(a > 5 ? { type: "denied" as const, reason: "big" } : undefined)
        },
        experimental_refineToolInput: { add: ({ a, b }) => Effect.succeed({ a, b: b * 2 }) }
      })
      expect(yield* lines).toEqual(["prepare 0", "stop?", "prepare 1", "stop?"])
      expect(model.doGenerateCalls.map(({ temperature }) => temperature)).toEqual([0, 1])
      expect(result.toolResults.map(({ output }) => output)).toEqual([5])
      expect(readBy(model)).toEqual([5])
      expect(result.steps[1]!.content.map(({ type }) => type)).toContain("tool-approval-response")
    }).pipe(Effect.provide(base)))

  it.effect("repair calls of tools, and download files", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: "one" }]), says("3"))
      const repaired = yield* generateText({
        model,
        messages: [{
          role: "user",
          content: [{ type: "file", mediaType: "text/plain", data: new URL("https://example.com/a.txt") }]
        }],
        tools: { add: yield* makeAdd },
        stopWhen: isStepCount(2),
        experimental_download: (files) =>
          Effect.as(
            add(`download ${files[0]!.url.pathname}`),
            files.map(() => ({ data: new Uint8Array([104, 105]), mediaType: "text/plain" }))
          ),
        repairToolCall: ({ toolCall }) => Effect.as(add("repair"), { ...toolCall, input: `{"a":1,"b":2}` })
      })
      expect(repaired.toolResults.map(({ output }) => output)).toEqual([3])
      expect(yield* lines).toEqual(["download /a.txt", "repair", "download /a.txt"])
      const plain = yield* generateText({
        model: scripted(calls(["add", { a: "one" }])),
        prompt: "1 + 2?",
        tools: { add: yield* makeAdd },
        repairToolCall: ({ toolCall }) => ({ ...toolCall, input: `{"a":2,"b":2}` })
      })
      expect(plain.toolResults.map(({ output }) => output)).toEqual([4])
    }).pipe(Effect.provide(base)))

  it.effect("of every kind end the call with the identical failure of their Effect", () =>
    Effect.gen(function*() {
      const refused = new Refused({ why: "no" })
      const tools = { add: yield* makeAdd }
      const call = (turn: Turn, decision: object) =>
        Effect.map(
          Effect.flip(
            generateText({ model: scripted(turn), prompt: "hi", tools, stopWhen: isStepCount(2), ...decision })
          ),
          (error: unknown) => expect(error).toBe(refused)
        )
      const adds = calls(["add", { a: 1, b: 2 }])
      yield* call(says("hi"), { prepareStep: () => refused })
      yield* call(adds, { stopWhen: () => Effect.fail(refused) })
      yield* call(adds, { stopWhen: [isStepCount(1), () => Effect.fail(refused)] })
      yield* call(adds, { toolApproval: () => Effect.fail(refused) })
      yield* call(adds, { toolApproval: { add: () => Effect.fail(refused) } })
      // of these the AI SDK makes a part of the step, and the last step would end well
      yield* call(adds, { stopWhen: isStepCount(1), experimental_refineToolInput: { add: () => Effect.fail(refused) } })
      yield* call(calls(["add", {}]), { stopWhen: isStepCount(1), repairToolCall: () => Effect.fail(refused) })
      yield* call(calls(["add", {}]), { experimental_repairToolCall: () => Effect.fail(refused) })
      const cutOff = { ...adds, finishReason: { unified: "length" as const, raw: undefined } }
      yield* call(cutOff, {
        stopWhen: isStepCount(1),
        experimental_refineToolInput: { add: () => Effect.fail(refused) }
      })
    }).pipe(Effect.provide(base)))

  it.effect("whose Effect fails call no model any more", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }]))
      const error = yield* Effect.flip(generateText({
        model,
        prompt: "hi",
        tools: { add: yield* makeAdd },
        stopWhen: isStepCount(9),
        prepareStep: ({ stepNumber }) =>
          stepNumber === 0 ? Effect.succeed({}) : Effect.fail(new Refused({ why: "enough" }))
      }))
      expect(error).toBeInstanceOf(Refused)
      expect(model.doGenerateCalls.length).toBe(1)
    }).pipe(Effect.provide(base)))

  it.effect("that die make the call die with the identical defect", () =>
    Effect.gen(function*() {
      const defect = new Error("a bug")
      const exit = yield* Effect.exit(
        generateText({ model: scripted(says("hi")), prompt: "hi", prepareStep: () => Effect.die(defect) })
      )
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause) && Cause.squash(exit.cause)).toBe(defect)
    }).pipe(Effect.provide(base)))

  it.effect("are interrupted with the call, and their finalizers waited for", () =>
    Effect.gen(function*() {
      const [begun] = yield* deferreds
      const call = yield* Effect.forkChild(generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        prepareStep: () =>
          Effect.ensuring(
            Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
            Effect.andThen(Effect.yieldNow, add("cleaned up"))
          )
      }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(call)
      expect(yield* lines).toEqual(["cleaned up"])
    }).pipe(Effect.provide(base)))

  it.effect("are interrupted by the caller's abortSignal, which is what the call then fails with", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const error = yield* Effect.flip(generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        abortSignal: controller.signal,
        prepareStep: () =>
          Effect.ensuring(
            Effect.andThen(Effect.sync(() => controller.abort("enough")), Effect.never),
            add("cleaned up")
          )
      }))
      expect([error.reason, error.cause]).toEqual(["Aborted", "enough"])
      expect(yield* lines).toEqual(["cleaned up"])
    }).pipe(Effect.provide(base)))

  it.effect("that repair a tool call are interrupted by a timeout of the call", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(generateText({
        model: scripted(calls(["add", {}])),
        prompt: "hi",
        tools: { add: yield* makeAdd },
        timeout: 30,
        repairToolCall: () => Effect.ensuring(Effect.never, add("cleaned up"))
      }))
      expect(error.reason).toBe("Timeout")
      expect(yield* lines).toEqual(["cleaned up"])
    }).pipe(Effect.provide(base)))

  it.effect("that are plain functions mean what they mean in the AI SDK, throwing too", () =>
    Effect.gen(function*() {
      const thrown = new Error("not now")
      const error = yield* Effect.flip(generateText({
        model: scripted(says("hi")),
        prompt: "hi",
        prepareStep: () => {
          throw thrown
        }
      }))
      expect([error.reason, error.cause]).toEqual(["Unknown", thrown])
      const unrepaired = yield* generateText({
        model: scripted(calls(["add", {}])),
        prompt: "hi",
        tools: { add: yield* makeAdd },
        repairToolCall: () => Promise.reject(thrown)
      })
      expect(unrepaired.toolCalls[0]).toMatchObject({ invalid: true, error: { name: "AI_ToolCallRepairError" } })
    }).pipe(Effect.provide(base)))

  it.effect("that answer an Effect inside of a Promise make the call die, for nobody would run it", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(generateText({
        model: scripted(calls(["add", { a: 1, b: 2 }])),
        prompt: "hi",
        tools: { add: yield* makeAdd },
        toolApproval: (async () => Effect.succeed("denied")) as never
      }))
      expect(Exit.isFailure(exit) && Cause.hasDies(exit.cause) && String(Cause.squash(exit.cause)))
        .toMatch(/toolApproval answered an Effect inside of another Effect or Promise/)
    }).pipe(Effect.provide(base)))
})
