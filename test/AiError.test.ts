import { assert, describe, it } from "@effect/vitest"
import { APICallError, InvalidPromptError, RetryError, TypeValidationError } from "ai"
import { Cause, Effect, Exit } from "effect"
import { inspect } from "node:util"
import { AiError } from "../src/AiError.ts"

const call = (statusCode: number) =>
  new APICallError({
    message: "the provider's answer",
    url: "https://api.example.com",
    requestBodyValues: { prompt: "a secret prompt" },
    statusCode
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

  it("keeps requests out of its message, of logs and of JSON", () => {
    const error = AiError.from(call(500))
    for (
      const text of [
        error.message,
        String(error),
        inspect(error),
        JSON.stringify(error),
        Cause.pretty(Cause.fail(error))
      ]
    ) {
      assert.notInclude(text, "secret")
    }
  })

  it("has no value in its message that did not have the expected form", () => {
    const error = AiError.from(new TypeValidationError({ value: "a secret prompt", cause: undefined }))
    for (const text of [error.message, String(error), JSON.stringify(error)]) assert.notInclude(text, "secret")
  })

  it.effect("is caught by its tag", () =>
    Effect.gen(function*() {
      const caught = Effect.fail(AiError.from(call(401))).pipe(
        Effect.catchTag("AiError", (error) => Effect.succeed(error.reason))
      )
      assert.deepStrictEqual(yield* Effect.exit(caught), Exit.succeed("APICallError"))
    }))
})
