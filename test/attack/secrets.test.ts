/**
 * A secret in every value that a call handles: whatever happens to the call, no log line, no span and no message of an error
 * of the library repeats it.
 */
import { assert, describe, it } from "@effect/vitest"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  EffectStore,
  EffectStoreError,
  generateText,
  type IEffectStore,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { ScriptedModel } from "chamvi-effect/testing"
import { isStepCount } from "ai"
import { Cause, Duration, Effect, Exit, Logger, Option, Schema, Tracer } from "effect"
import { inspect } from "node:util"
import { call, memory } from "../reconciliation/support.ts"
import { recordSpans } from "../support/spans.ts"

const secret = "hunter2-S3CRET"

/** Everything that a program's logs, traces and events would show of it. */
const watched = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const { text, tracer } = recordSpans()
    const lines: Array<string> = []
    const events: Array<EffectEvent> = []
    const logger = Logger.make((options) => {
      lines.push(
        inspect([options.message, options.cause, options.cause === undefined ? "" : Cause.pretty(options.cause)], {
          depth: 8
        })
      )
      lines.push(Logger.formatJson.log(options), Logger.formatLogFmt.log(options))
    })
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(EffectEvent.Listener, (event) => Effect.sync(() => void events.push(event))),
      Effect.provide(Logger.layer([logger]))
    )
    return { exit, seen: { logs: lines.join("\n"), spans: text(), events: inspect(events, { depth: 8 }) } }
  })

const assertHidden = (what: string, shown: Readonly<Record<string, string>>) => {
  for (const [where, text] of Object.entries(shown)) {
    if (text.includes(secret)) {
      const at = text.indexOf(secret)
      assert.fail(`${what}: the ${where} repeat the secret: ...${text.slice(Math.max(0, at - 300), at + 60)}`)
    }
  }
}

/** Errors of the library by what they say, with their causes as a logger prints them. */
const messageOf = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isSuccess(exit) ? "" : inspect(Cause.squash(exit.cause), { depth: 4 })

const Secret = Schema.Struct({ password: Schema.String })
const value = { password: secret }

const lossy = (store: IEffectStore, operation: "claim" | "complete" | "release", cause?: unknown): IEffectStore => ({
  ...store,
  [operation]: () =>
    Effect.fail(new EffectStoreError({ operation, problem: "it is down", ...cause === undefined ? {} : { cause } }))
})

describe("secrets", () => {
  const cases: Readonly<Record<string, (store: IEffectStore) => Effect.Effect<unknown, unknown>>> = {
    "a call that succeeds, and its replay": (store) => {
      const once = call(store, { input: value, execute: () => Effect.succeed(value) })
      return Effect.andThen(once, once)
    },
    "a result that its schema does not take": (store) =>
      call(store, { schema: Schema.Struct({ password: Schema.Int }) as never, execute: () => Effect.succeed(value) }),
    "a result that is no JSON": (store) =>
      call(store, { execute: () => Effect.succeed({ map: new Map([[secret, 1n]]), value }) }),
    "a result with a key of it": (store) =>
      call(store, { execute: () => Effect.succeed({ safe: { deep: 1n }, value }) }),
    "a result that is too large": (store) => call(store, { execute: () => Effect.succeed(secret.repeat(200_000)) }),
    "an input that is no JSON": (store) => call(store, { input: { value, n: 1n }, execute: () => Effect.succeed(1) }),
    "another input under the key": (store) =>
      Effect.andThen(
        call(store, { input: { a: 1 }, execute: () => Effect.succeed(1) }),
        call(store, { input: value, onInputChange: "fail", execute: () => Effect.succeed(2) })
      ),
    "a check that answers an Option": (store) =>
      call(store, { alreadyApplied: () => Effect.succeed(Option.some(value)), execute: () => Effect.succeed(1) }),
    "a check whose answer does not encode": (store) =>
      call(store, {
        schema: Schema.Struct({ password: Schema.Int }) as never,
        alreadyApplied: () => Effect.succeed(value),
        execute: () => Effect.succeed(1)
      }),
    "a hook that answers an Effect in an Effect": (store) =>
      call(store, { execute: () => Effect.succeed(Effect.succeed(value)) }),
    "a claim that is refused": (store) =>
      call(lossy(store, "claim"), { input: value, execute: () => Effect.succeed(value) }),
    "a record that cannot be written": (store) =>
      call(lossy(store, "complete"), { input: value, execute: () => Effect.succeed(value) }),
    "a record that does not decode": (store) =>
      Effect.andThen(
        call(store, { execute: () => Effect.succeed(value) }),
        call(store, { schema: Schema.Struct({ password: Schema.Int }) as never, execute: () => Effect.succeed(value) })
      ),
    "a record that is no JSON": (store) =>
      call({
        ...store,
        claim: (requests) =>
          Effect.succeed(requests.map(({ tool }) => ({
            _tag: "Recorded" as const,
            tool,
            result: `{"value":"${secret}`,
            outcome: "executed" as const,
            fingerprint: ""
          })))
      }, { execute: () => Effect.succeed(1) }),
    "a verdict that is no JSON": (store) =>
      Effect.andThen(
        call(store, { execute: () => Effect.succeed(1) }),
        store.resolve("k", { _tag: "Applied", result: { value: { value, n: 1n } } } as never)
      )
  }

  it.live("are seen by this test wherever they are told", () =>
    Effect.gen(function*() {
      const telling = [
        Effect.logInfo(value),
        Effect.logInfo("x", Cause.fail(secret)),
        Effect.annotateCurrentSpan(value)
      ]
      for (const effect of telling) {
        const { seen } = yield* watched(Effect.withSpan(effect, "telling"))
        assert.throws(() => assertHidden("a program that tells", seen), "repeat the secret")
      }
    }))

  for (const [title, attack] of Object.entries(cases)) {
    it.live(`in ${title}: no log, span, event or error repeats them`, () =>
      Effect.gen(function*() {
        const store = yield* memory
        const { exit, seen } = yield* watched(attack(store))
        assertHidden(title, { ...seen, errors: messageOf(exit) })
      }))
  }

  it.live("in a conversation: no log, span or event repeats them", () =>
    Effect.gen(function*() {
      const model = ScriptedModel.make([
        ScriptedModel.together(
          ScriptedModel.text(secret),
          ScriptedModel.call("login", value),
          ScriptedModel.call("login", { password: 1, [secret]: secret }),
          ScriptedModel.call(secret, value),
          ScriptedModel.content({
            type: "tool-call",
            toolCallId: "broken",
            toolName: "login",
            input: `{"password":"${secret}`
          })
        ),
        ScriptedModel.text(secret)
      ])
      const ordinary = yield* defineEffectTool({
        inputSchema: Secret,
        execute: ({ password }) => Effect.succeed({ password })
      })
      // its result is one that the schema cannot encode
      const broken = yield* defineEffectTool({
        inputSchema: Secret,
        outputSchema: Schema.Struct({ password: Schema.String.check(Schema.isMaxLength(3)) }),
        execute: ({ password }) => Effect.succeed({ password })
      })
      for (const login of [ordinary, broken]) {
        const program = generateText({
          model,
          prompt: secret,
          instructions: secret,
          headers: { authorization: secret },
          providerOptions: { house: { apiKey: secret } },
          tools: { login },
          stopWhen: isStepCount(3)
        })
        const { exit, seen } = yield* watched(
          program.pipe(
            Effect.provide([Ai.layer, ToolContext.layer({ runId: "run-1", trigger: value }), EffectStore.layerMemory])
          )
        )
        assert.isTrue(Exit.isSuccess(exit), messageOf(exit))
        assertHidden("a conversation", seen)
      }
    }))

  it.live("in the calls of a wrapped tool: no log, span, event or error repeats them", () =>
    Effect.gen(function*() {
      const store = yield* memory
      const tool = yield* defineEffectTool({ inputSchema: Secret, execute: () => Effect.succeed(value) })
      const options = { toolCallId: "1", messages: [{ role: "user" as const, content: secret }], context: {} }
      const { exit, seen } = yield* watched(
        Effect.scoped(Effect.gen(function*() {
          const { context } = yield* Effect.provide(
            Effect.map(ToolContext, (context) => ({ context })),
            ToolContext.layer({ runId: "run-1", trigger: value })
          )
          const { login } = yield* wrapToolsForRun({ login: tool }, context, store)
          yield* Effect.promise(async () => login.execute(value, options as never))
          return yield* Effect.tryPromise(async () =>
            login.execute({ password: { [secret]: secret } } as never, options as never)
          )
        })).pipe(Effect.timeout(Duration.seconds(30)))
      )
      assertHidden("a wrapped tool", { ...seen, errors: messageOf(exit) })
    }))
})
