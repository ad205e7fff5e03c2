import { assert, describe, it } from "@effect/vitest"
import * as provider from "@ai-sdk/provider"
import * as utils from "@ai-sdk/provider-utils"
import * as ai from "ai"
import {
  APICallError,
  DownloadError,
  generateText,
  InvalidPromptError,
  JSONParseError,
  NoObjectGeneratedError,
  Output,
  RetryError,
  TypeValidationError
} from "ai"
import { Cause, Console, Duration, Effect, Exit, Logger } from "effect"
import { inspect } from "node:util"
import { z } from "zod"
import { AiError, type AiErrorReason } from "../src/AiError.ts"
import { says, scripted } from "./support/model.ts"

const call = (statusCode: number) =>
  new APICallError({
    message: "the provider's answer",
    url: "https://api.example.com",
    requestBodyValues: { prompt: "a secret prompt" },
    statusCode
  })

const secret = "a secret thing"

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(() => "resolved", (error: unknown) => error)

/** All the ways in which programs and loggers show an error. */
const showing = (error: AiError) =>
  Effect.gen(function*() {
    const shown = [error.message, String(error), inspect(error), JSON.stringify(error), String(error.stack)]
    const failure = Cause.fail(error)
    shown.push(inspect(error, { depth: 9, getters: true }), Cause.pretty(failure), inspect(failure, { depth: 9 }))
    shown.push(JSON.stringify(failure))
    const keep = (...texts: ReadonlyArray<unknown>) => {
      shown.push(...texts.map((text) => typeof text === "string" ? text : inspect(text, { depth: 9 })))
    }
    const methods = Object.fromEntries(Object.keys(console).map((name) => [name, keep]))
    const loggers = [
      Logger.consolePretty({ colors: false }),
      Logger.consoleJson,
      Logger.consoleLogFmt,
      Logger.consoleStructured,
      Logger.withConsoleLog(Logger.formatSimple)
    ]
    for (const logger of loggers) {
      yield* Effect.all([
        Effect.logError(error),
        Effect.logError("failed", failure),
        Effect.annotateLogs(Effect.log("failed"), { error })
      ]).pipe(
        Effect.provide(Logger.layer([logger])),
        Effect.provideService(Console.Console, methods as unknown as Console.Console)
      )
    }
    return shown
  })

describe("AiError", () => {
  it("takes reason, status and retryability from the SDK's error", () => {
    const refused = AiError.from(call(401))
    assert.deepStrictEqual([refused.reason, refused.statusCode, refused.isRetryable], ["APICallError", 401, false])
    const busy = AiError.from(call(503))
    assert.deepStrictEqual([busy.reason, busy.statusCode, busy.isRetryable], ["APICallError", 503, true])
    const prompt = AiError.from(new InvalidPromptError({ prompt: {}, message: "no messages" }))
    assert.deepStrictEqual([prompt.reason, prompt.statusCode], ["InvalidPromptError", undefined])
  })

  it("looks through the retries to the last attempt", () => {
    const cause = new RetryError({ message: "twice", reason: "maxRetriesExceeded", errors: [call(503), call(429)] })
    const error = AiError.from(cause)
    assert.deepStrictEqual([error.reason, error.statusCode, error.attempts], ["APICallError", 429, 2])
    assert.strictEqual(error.cause, cause)
  })

  it("knows timeouts, the gateway, aborts and everything else", () => {
    assert.deepStrictEqual(
      [
        AiError.from(new DOMException("slow", "TimeoutError")).reason,
        AiError.from(Object.assign(new Error("no key"), { name: "GatewayAuthenticationError" })).reason,
        AiError.aborted("why").reason,
        AiError.from(new Error("hm")).reason,
        AiError.from(undefined).reason
      ],
      ["Timeout", "Gateway", "Aborted", "Unknown", "Unknown"]
    )
    assert.isTrue(AiError.from(new DOMException("slow", "TimeoutError")).isRetryable)
    assert.strictEqual(AiError.aborted("why").cause, "why")
  })

  it("has a reason for every error class of the AI SDK", () => {
    const classes = [ai, provider, utils]
      .flatMap((module): ReadonlyArray<unknown> => Object.values(module))
      .filter((value): value is ErrorConstructor => typeof value === "function" && value.prototype instanceof Error)
      .map(({ name }) => name)
    assert.isAbove(classes.length, 40)
    // the base class says what it is in its name; of a RetryError the last attempt counts
    const without = classes
      .filter((name) => name !== "AISDKError" && name !== "RetryError")
      .filter((name) =>
        AiError.from(Object.assign(new Error(), { name: `AI_${name}` })).reason !== name as AiErrorReason
      )
    assert.deepStrictEqual(without, [])
  })

  it("says how long the provider asked to wait", () => {
    const wait = (responseHeaders: Record<string, string>) => {
      const error = new APICallError({
        message: "busy",
        url: "https://api.example.com",
        requestBodyValues: {},
        statusCode: 429,
        responseHeaders
      })
      const retries = new RetryError({ message: "once", reason: "maxRetriesExceeded", errors: [error] })
      return AiError.from(retries).retryAfter
    }
    assert.deepStrictEqual(wait({ "retry-after": "20" }), Duration.seconds(20))
    assert.deepStrictEqual(wait({ "retry-after": "20", "retry-after-ms": "1500" }), Duration.millis(1500))
    assert.deepStrictEqual(
      wait({ "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", date: "Wed, 21 Oct 2015 07:28:00 GMT" }),
      Duration.seconds(30)
    )
    assert.isUndefined(wait({ "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT" }))
    assert.isUndefined(wait({ "retry-after": "soon" }))
    assert.isUndefined(wait({}))
    assert.isUndefined(AiError.from(new Error("hm")).retryAfter)
  })

  describe("keeps to itself", () => {
    for (
      const [what, make] of [
        ["the request of a refused call", async () => call(500)],
        ["a context that is not valid", async () => new TypeValidationError({ value: { q: secret }, cause: secret })],
        [
          "a prompt that is not valid",
          () =>
            rejection(
              generateText({ model: scripted(says("")), messages: [{ role: "user", content: { secret } as never }] })
            )
        ],
        ["text that is no JSON", () =>
          rejection(
            generateText({ model: scripted(says(`{${secret}`)), prompt: "", output: Output.json() })
          )],
        ["JSON of another form", () =>
          rejection(
            generateText({
              model: scripted(says(JSON.stringify({ [secret]: secret }))),
              prompt: "",
              output: Output.object({ schema: z.strictObject({ n: z.number() }) })
            })
          )],
        ["an answer that cannot be read, after retries", async () =>
          new RetryError({
            message: `Failed after 2 attempts. Last error: ${secret}`,
            reason: "maxRetriesExceeded",
            errors: [call(500), new JSONParseError({ text: secret, cause: new SyntaxError(secret) })]
          })],
        [
          "a signed address",
          async () => new DownloadError({ url: `https://example.com/?token=${secret}`, statusCode: 403 })
        ]
      ] satisfies ReadonlyArray<readonly [string, () => Promise<unknown>]>
    ) {
      it.effect(`${what}, in messages, logs, JSON and when it is inspected`, () =>
        Effect.gen(function*() {
          const error = AiError.from(yield* Effect.promise(make))
          const shown = yield* showing(error)
          assert.isAbove(shown.length, 15)
          for (const text of shown) assert.notInclude(text, secret)
        }))
    }
  })

  it("has a cause of the same class with all fields, in other words where its own would tell the value", () => {
    const written = `{"title":"${secret}"}`
    const original = new NoObjectGeneratedError({
      message: "response did not match schema",
      text: written,
      cause: new TypeValidationError({ value: { title: secret }, cause: new SyntaxError(secret) }),
      response: { id: "1", timestamp: new Date(0), modelId: "model" },
      usage: says("").usage as never,
      finishReason: "stop"
    })
    const { cause } = AiError.from(original)
    assert.isTrue(NoObjectGeneratedError.isInstance(cause) && cause instanceof NoObjectGeneratedError)
    assert.strictEqual((cause as NoObjectGeneratedError).text, written)
    assert.strictEqual((cause as NoObjectGeneratedError).message, "response did not match schema")
    const below = (cause as NoObjectGeneratedError).cause
    assert.isTrue(TypeValidationError.isInstance(below))
    assert.deepStrictEqual((below as TypeValidationError).value, { title: secret })
    assert.match(String((below as Error).stack), /^TypeValidationError: the value did not .*\n +at /)
    // one object each, so that a circle of causes ends
    assert.strictEqual((cause as Error).cause, below)
  })

  it("says which context was not valid", () => {
    const error = AiError.from(
      new TypeValidationError({ value: 1, cause: "x", context: { field: "tool context", entityName: "weather" } })
    )
    assert.strictEqual(
      error.message,
      "TypeValidationError: the value of tool context (weather) did not have the expected form (see cause)."
    )
  })

  it.effect("is caught by its tag", () =>
    Effect.gen(function*() {
      const caught = Effect.fail(AiError.from(call(401))).pipe(
        Effect.catchTag("AiError", (error) => Effect.succeed(error.reason))
      )
      assert.deepStrictEqual(yield* Effect.exit(caught), Exit.succeed("APICallError"))
    }))
})
