/** What bounds a model call, a tool call and a run. */
import { APICallError } from "ai"
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, defineEffectTool, tool } from "chamvi-effect"
import { Clock, Deferred, Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { engines, withAgents } from "./support.ts"

const limited = (responseHeaders: Record<string, string> = {}) =>
  new APICallError({
    message: "too many requests",
    url: "https://example.com",
    requestBodyValues: {},
    statusCode: 429,
    isRetryable: true,
    responseHeaders
  })

/** A model that refuses, and notes when it was asked. */
const refusing = Effect.map(Clock.Clock, (clock) => {
  const asked: Array<number> = []
  const model = (...refusals: ReadonlyArray<Error>) =>
    scripted(
      ...refusals.map((refusal) => () => {
        asked.push(clock.currentTimeMillisUnsafe())
        return Promise.reject(refusal)
      }),
      () => {
        asked.push(clock.currentTimeMillisUnsafe())
        return Promise.resolve(says("Hello."))
      }
    )
  return { asked, model }
})

/** Lets time pass until the fiber has ended. */
const passing = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.andThen(
    Effect.whileLoop({
      while: () => fiber.pollUnsafe() === undefined,
      body: () => Effect.andThen(TestClock.adjust("100 millis"), Effect.promise(() => new Promise(setImmediate))),
      step: () => {}
    }),
    Fiber.join(fiber)
  )

describe("a model call of a run", () => {
  it.effect("that fails for the moment is made again, as often as maxRetries says, further and further apart", () =>
    Effect.gen(function*() {
      const { asked, model } = yield* refusing
      const agent = defineAgent({ name: "patient", model: model(limited(), limited()) })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const run = yield* Effect.forkChild(engine.run(agent, { runId: "1", prompt: "Hello?" }))
          expect((yield* passing(run)).text).toBe("Hello.")
          expect([asked[1]! - asked[0]!, asked[2]! - asked[1]!]).toEqual([2000, 4000])
        })
      )
    }))

  it.effect("is made again no earlier than the provider says", () =>
    Effect.gen(function*() {
      const { asked, model } = yield* refusing
      const agent = defineAgent({ name: "patient", model: model(limited({ "retry-after": "17" })) })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const run = yield* Effect.forkChild(engine.run(agent, { runId: "1", prompt: "Hello?" }))
          expect((yield* passing(run)).text).toBe("Hello.")
          expect(asked[1]! - asked[0]!).toBe(17_000)
        })
      )
    }))

  it.effect("fails the run where its retries do not help, and is made anew by Engine.retry", () =>
    Effect.gen(function*() {
      const { asked, model } = yield* refusing
      const agent = defineAgent({ name: "patient", model: model(limited(), limited()), maxRetries: 1 })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          const run = yield* Effect.forkChild(Effect.flip(engine.run(agent, { runId: "1", prompt: "Hello?" })))
          const error = yield* passing(run)
          expect(error).toMatchObject({ _tag: "RunFailedError", failure: { name: "AiError", step: 0 } })
          expect(error.message).toContain("too many requests")
          expect(asked.length).toBe(2)
          yield* engine.retry("1")
          expect((yield* engine.resume(agent, "1")).text).toBe("Hello.")
        })
      )
    }))

  it.effect("is not made again where maxRetries is 0", () =>
    Effect.gen(function*() {
      const { asked, model } = yield* refusing
      const agent = defineAgent({ name: "hasty", model: model(limited()), maxRetries: 0 })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Hello?" }))
          expect(asked.length).toBe(1)
        })
      )
    }))
})

describe.concurrent.each(engines)("timeout, $where", ({ withAgents }) => {
  // long enough for a slow machine to come so far
  for (const kind of ["totalMs", "stepMs"]) {
    const timeout = { [kind]: 2000 }
    it.live(`${kind} aborts the model call and fails the run, and a retry goes on`, () =>
      Effect.gen(function*() {
        let slow = true
        let aborted = 0
        let added = 0
        const add = tool({ inputSchema: Schema.Struct({}), execute: () => Effect.sync(() => ++added) })
        const model = scripted(
          calls(["add", {}]),
          ({ abortSignal }) =>
            !slow
              ? Promise.resolve(says("Done."))
              : new Promise((_, reject) =>
                abortSignal?.addEventListener("abort", () => {
                  aborted++
                  reject(abortSignal.reason)
                })
              )
        )
        const agent = defineAgent({ name: "slow", model, tools: { add }, timeout })
        yield* withAgents([agent])((engine) =>
          Effect.gen(function*() {
            expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Add." }))).toMatchObject({
              _tag: "RunFailedError",
              failure: { name: "AiError" }
            })
            expect(aborted).toBe(1)
            slow = false
            yield* engine.retry("1")
            expect((yield* engine.resume(agent, "1")).text).toBe("Done.")
            expect(added).toBe(1)
          })
        )
      }))

    it.live(`${kind} that cuts a tool off is nothing that the model reads: a retry calls it again`, () =>
      Effect.gen(function*() {
        let slow = true
        const events: Array<string> = []
        const charge = defineEffectTool({
          inputSchema: Schema.Struct({}),
          alreadyApplied: () => Effect.sync(() => void events.push("asked")),
          execute: () =>
            Effect.suspend(() => {
              events.push("called")
              return slow ? Effect.never : Effect.succeed("charged")
            }).pipe(Effect.onInterrupt(() => Effect.sync(() => events.push("finalized"))))
        })
        const model = scripted(calls(["charge", {}]), says("Done."))
        const agent = defineAgent({ name: "slow", model, tools: { charge }, timeout })
        yield* withAgents([agent])((engine) =>
          Effect.gen(function*() {
            expect(yield* Effect.flip(engine.run(agent, { runId: "1", prompt: "Charge." }))).toMatchObject({
              _tag: "RunFailedError"
            })
            expect(events).toEqual(["asked", "called", "finalized"])
            expect((yield* engine.get("1")).keysInDoubt.length).toBe(1)
            slow = false
            yield* engine.retry("1")
            expect((yield* engine.resume(agent, "1")).text).toBe("Done.")
            expect(events).toEqual(["asked", "called", "finalized", "asked", "called"])
            expect(readBy(model)).toEqual(["charged"])
          })
        )
      }))
  }

  it.live("toolMs is a failure that the model reads, and the key is in doubt", () =>
    Effect.gen(function*() {
      const finalized = yield* Deferred.make<void>()
      const charge = defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.onInterrupt(Effect.never, () => Deferred.succeed(finalized, undefined))
      })
      const model = scripted(calls(["charge", {}]), says("It took too long."))
      const agent = defineAgent({ name: "slow", model, tools: { charge }, timeout: { toolMs: 2000 } })
      yield* withAgents([agent])((engine) =>
        Effect.gen(function*() {
          expect((yield* engine.run(agent, { runId: "1", prompt: "Charge." })).text).toBe("It took too long.")
          yield* Deferred.await(finalized)
          expect(readBy(model)).toHaveLength(1)
          expect((yield* engine.get("1")).keysInDoubt.length).toBe(1)
        })
      )
    }))
})
