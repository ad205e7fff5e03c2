import { assert, describe, it } from "@effect/vitest"
import { isStepCount, tool as sdkTool } from "ai"
import type { ProviderV4 } from "@ai-sdk/provider"
import { MockProviderV4 } from "ai/test"
import { Cause, Context, Deferred, Effect, Exit, Fiber, Layer, Option, References, Schema, type Tracer } from "effect"
import { z } from "zod"
import { Ai } from "../src/Ai.ts"
import { AiError } from "../src/AiError.ts"
import { generateText } from "../src/GenerateText.ts"
import { tool } from "../src/Tool.ts"
import { calls, readBy, says, scripted } from "./support/model.ts"

class Weather extends Context.Service<Weather>()("app/Weather", {
  make: Effect.succeed({ getTemperature: (city: string) => Effect.succeed(city.length + 10) })
}) {
  static readonly layer = Layer.effect(Weather, Weather.make)
}

const withProvider = <A, E, R>(model: ReturnType<typeof scripted>, effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      globalThis.AI_SDK_DEFAULT_PROVIDER = new MockProviderV4({
        languageModels: { "openai/gpt-5": model }
      }) as ProviderV4
    }),
    () => effect,
    () =>
      Effect.sync(() => {
        globalThis.AI_SDK_DEFAULT_PROVIDER = undefined
      })
  )

describe("generateText", () => {
  it("runs the program of the introduction as it stands", async () => {
    const model = scripted(calls(["weather", { city: "Paris" }]))
    const program = Effect.gen(function*() {
      const weather = yield* tool({
        description: "Get the current temperature for a city",
        inputSchema: Schema.Struct({ city: Schema.String.annotate({ description: "City name" }) }),
        execute: ({ city }) =>
          Effect.gen(function*() {
            const service = yield* Weather
            const temperature = yield* service.getTemperature(city)
            return { city, temperature }
          })
      })
      const result = yield* generateText({
        model: "openai/gpt-5",
        prompt: "What is the temperature in Paris?",
        tools: { weather }
      })
      assert.deepStrictEqual(result.toolResults[0]?.output, { city: "Paris", temperature: 15 })
      return result.text
    })
    const text = await Effect.runPromise(
      withProvider(model, program.pipe(Effect.provide(Layer.mergeAll(Ai.layer, Weather.layer))))
    )
    assert.strictEqual(text, "")
    const [described] = model.doGenerateCalls[0]?.tools ?? []
    assert.deepStrictEqual(described?.type === "function" ? described.inputSchema : undefined, {
      type: "object",
      properties: { city: { type: "string", description: "City name" } },
      required: ["city"],
      additionalProperties: false
    })
  })

  it.effect("calls tools until stopWhen, with results in the model's messages", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["add", { a: 1, b: 2 }]), calls(["add", { a: 3, b: 4 }]), says("3 and 7"))
      const add = yield* tool({
        inputSchema: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        execute: ({ a, b }) => Effect.succeed({ sum: a + b })
      })
      const result = yield* generateText({ model, prompt: "add", tools: { add }, stopWhen: isStepCount(5) })
      assert.strictEqual(result.text, "3 and 7")
      assert.deepStrictEqual(readBy(model), [{ sum: 3 }, { sum: 7 }])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("leaves tools of other makers as they are", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["plain", { a: 1 }]))
      const plain = sdkTool({ inputSchema: z.object({ a: z.number() }), execute: async ({ a }) => a + 1 })
      const result = yield* generateText({ model, prompt: "go", tools: { plain } })
      assert.strictEqual(result.toolResults[0]?.output, 2)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("aborts the call when it is interrupted, and waits for the finalizers of its tools", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.gen(function*() {
            yield* Effect.addFinalizer(() =>
              Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("scope closed")))
            )
            yield* Deferred.succeed(started, undefined)
            return yield* Effect.never
          }).pipe(Effect.onInterrupt(() => Effect.andThen(Effect.yieldNow, Effect.sync(() => log.push("interrupted")))))
      })
      const fiber = yield* Effect.forkChild(
        generateText({ model: scripted(calls(["slow", {}])), prompt: "go", tools: { slow } })
      )
      yield* Deferred.await(started)
      const exit = yield* Fiber.interrupt(fiber).pipe(Effect.andThen(Fiber.await(fiber)))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.deepStrictEqual(log, ["interrupted", "scope closed"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("passes its abort to the model, and does not wait for a model that ignores it", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<AbortSignal | undefined>()
      const model = scripted((options) => {
        Deferred.doneUnsafe(asked, Exit.succeed(options.abortSignal))
        return new Promise(() => undefined)
      })
      const fiber = yield* Effect.forkChild(generateText({ model, prompt: "go" }))
      const signal = yield* Deferred.await(asked)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal?.aborted)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails as Aborted when a signal of the caller's own aborts", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const reason = new Error("enough")
      const model = scripted((options) =>
        new Promise((_, reject) => {
          options.abortSignal?.addEventListener("abort", () => reject(options.abortSignal?.reason))
          controller.abort(reason)
        })
      )
      const error = yield* Effect.flip(generateText({ model, prompt: "go", abortSignal: controller.signal }))
      assert.strictEqual(error.reason, "Aborted")
      assert.strictEqual(error.cause, reason)
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("interrupts the tools that run when a signal of the caller's own aborts", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const log: Array<string> = []
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Effect.sync(() => queueMicrotask(() => controller.abort("enough"))), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted")))
          )
      })
      const model = scripted(calls(["slow", {}]), says("never"))
      const error = yield* Effect.flip(
        generateText({ model, prompt: "go", tools: { slow }, stopWhen: isStepCount(2), abortSignal: controller.signal })
      )
      assert.deepStrictEqual([error.reason, error.cause], ["Aborted", "enough"])
      assert.deepStrictEqual(log, ["interrupted"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails as Aborted where the abort interrupts a tool of the last step, and not where it comes after all", () =>
    Effect.gen(function*() {
      const controller = new AbortController()
      const abort = Effect.sync(() => controller.abort("enough"))
      const slow = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.andThen(abort, Effect.never) })
      const call = generateText({
        model: scripted(calls(["slow", {}])),
        prompt: "go",
        tools: { slow },
        abortSignal: controller.signal
      })
      const error = yield* Effect.flip(call)
      assert.deepStrictEqual([error.reason, error.cause], ["Aborted", "enough"])

      const late = new AbortController()
      const failing = yield* tool({ inputSchema: Schema.Struct({}), execute: () => Effect.fail("no") })
      const result = yield* generateText({
        model: scripted(calls(["failing", {}])),
        prompt: "go",
        tools: { failing },
        abortSignal: late.signal,
        onEnd: () => Effect.sync(() => late.abort("enough"))
      })
      assert.deepStrictEqual(result.content.map(({ type }) => type), ["tool-call", "tool-error"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("stops the siblings of a tool whose context is refused, and waits for them", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const slow = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.never.pipe(Effect.onInterrupt(() => Effect.sync(() => log.push("interrupted"))))
      })
      const strict = yield* tool({
        inputSchema: Schema.Struct({}),
        contextSchema: Schema.Struct({ user: Schema.String }),
        execute: (_, { context }) => Effect.succeed(context.user)
      })
      const model = scripted(calls(["slow", {}], ["strict", {}]))
      const error = yield* Effect.flip(
        generateText({
          model,
          prompt: "go",
          tools: { slow, strict },
          toolsContext: { strict: { user: 1 as never } }
        })
      )
      assert.strictEqual(error.reason, "TypeValidationError")
      assert.match(error.message, /\(strict\)/)
      assert.deepStrictEqual(log, ["interrupted"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("gives tools the References and the parent span of its own fiber, and the services of where they were made", () =>
    Effect.gen(function*() {
      class Store extends Context.Service<Store, string>()("test/Store") {}
      const who = yield* tool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.gen(function*() {
            const annotations = yield* References.CurrentLogAnnotations
            const spans: Array<string> = []
            let span: Tracer.AnySpan | undefined = yield* Effect.currentParentSpan
            while (span?._tag === "Span") {
              spans.push(span.name)
              span = Option.getOrUndefined(span.parent)
            }
            return { store: yield* Store, log: annotations["call"] as string, spans }
          }).pipe(Effect.orDie)
      }).pipe(
        Effect.provideService(Store, "captured"),
        Effect.withSpan("making"),
        Effect.annotateLogs("call", "making")
      )
      const result = yield* generateText({ model: scripted(calls(["who", {}])), prompt: "go", tools: { who } }).pipe(
        Effect.provideService(Store, "calling"),
        Effect.withSpan("calling"),
        Effect.annotateLogs("call", "calling")
      )
      assert.deepStrictEqual(result.toolResults[0]?.output, {
        store: "captured",
        log: "calling",
        spans: ["calling"]
      })
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("runs an approved call after the history was stored as JSON, with decoded input", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const remind = yield* tool({
        inputSchema: Schema.Struct({ at: Schema.Date, note: Schema.Option(Schema.String) }),
        needsApproval: true,
        execute: (input) =>
          Effect.sync(() => {
            seen.push(input)
            return "reminded"
          })
      })
      const input = { at: "2026-01-01T00:00:00.000Z", note: { _tag: "Some", value: "x" } }
      const asked = yield* generateText({
        model: scripted(calls(["remind", input])),
        prompt: "remind me",
        tools: { remind }
      })
      const request = asked.content.find((part) => part.type === "tool-approval-request")
      assert.isDefined(request)
      assert.deepStrictEqual(seen, [])
      const stored = JSON.parse(JSON.stringify(asked.responseMessages)) as typeof asked.responseMessages
      const model = scripted(says("done"))
      yield* generateText({
        model,
        messages: [
          { role: "user", content: "remind me" },
          ...stored,
          {
            role: "tool",
            content: [{ type: "tool-approval-response", approvalId: request?.approvalId ?? "", approved: true }]
          }
        ],
        tools: { remind }
      })
      assert.deepStrictEqual(seen, [{ at: new Date("2026-01-01T00:00:00.000Z"), note: Option.some("x") }])
      assert.deepStrictEqual(readBy(model), ["reminded"])
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("fails with an AiError that has the provider's answer and not the prompt", () =>
    Effect.gen(function*() {
      const { APICallError } = yield* Effect.promise(() => import("ai"))
      const refused = new APICallError({
        message: "invalid key",
        url: "https://api.example.com",
        requestBodyValues: { prompt: "a secret prompt" },
        statusCode: 401
      })
      const model = scripted(() => Promise.reject(refused))
      const error = yield* Effect.flip(generateText({ model, prompt: "a secret prompt" }))
      assert.instanceOf(error, AiError)
      assert.deepStrictEqual(
        [error._tag, error.reason, error.statusCode, error.isRetryable, error.attempts],
        ["AiError", "APICallError", 401, false, 1]
      )
      assert.strictEqual(error.cause, refused)
      assert.notInclude(JSON.stringify(error) + String(error) + Cause.pretty(Cause.fail(error)), "secret prompt")
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("retries as the AI SDK does, and reports the last attempt", () =>
    Effect.gen(function*() {
      const { APICallError, RetryError } = yield* Effect.promise(() => import("ai"))
      const model = scripted(() =>
        Promise.reject(
          new APICallError({
            message: "busy",
            url: "",
            requestBodyValues: {},
            statusCode: 503,
            responseHeaders: { "retry-after-ms": "1" }
          })
        )
      )
      const error = yield* Effect.flip(generateText({ model, prompt: "go", maxRetries: 1 }))
      assert.deepStrictEqual([error.reason, error.isRetryable, error.attempts], ["APICallError", true, 2])
      assert.isTrue(RetryError.isInstance(error.cause))
    }).pipe(Effect.provide(Ai.layer)))

  it.effect("uses the defaults of its Ai, and what the call says above them", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* generateText({ prompt: "go" })).text, "default")
      assert.strictEqual((yield* generateText({ model: scripted(says("own")), prompt: "go" })).text, "own")
    }).pipe(Effect.provide(Ai.layerDefaults({ model: scripted(says("default")) }))))

  it.effect("fails where neither the call nor its Ai names a model", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(generateText({ prompt: "go" }))
      assert.strictEqual(error.reason, "InvalidArgumentError")
    }).pipe(Effect.provide(Ai.layer)))
})
