import { assert, describe, it } from "@effect/vitest"
import { tool as sdkTool } from "ai"
import {
  defineEffectTool,
  EffectEvent,
  EffectStore,
  type IEffectStore,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { z } from "zod"
import { Remote } from "../support/remote.ts"
import { call, settle, wrap } from "../support/wrapped.ts"

const layers = Layer.mergeAll(EffectStore.layerMemory, Remote.layer, ToolContext.layer({ runId: "run-1" }))

const post = defineEffectTool({
  inputSchema: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.flatMap(Remote, (remote) => remote.apply(text))
})

describe("wrapToolsForRun", () => {
  it.effect("gives tools that are not effect tools back as the identical object", () =>
    Effect.gen(function*() {
      const plain = sdkTool({ inputSchema: z.object({}), execute: async () => 1 })
      const tools = yield* wrap({ plain, post: yield* post })
      assert.strictEqual(tools.plain, plain)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("keeps every other property of an effect tool, hidden ones and symbols too", () =>
    Effect.gen(function*() {
      const hidden = Symbol("hidden")
      const original = Object.defineProperty(
        Object.assign(
          yield* defineEffectTool({
            description: "Posts.",
            inputSchema: Schema.Struct({ text: Schema.String }),
            contextSchema: Schema.Struct({ token: Schema.String }),
            providerOptions: { mock: { a: 1 } },
            metadata: { team: "a" },
            strict: true,
            execute: () => Effect.succeed(1)
          }),
          { [hidden]: 1 }
        ),
        "experimental_toolCaller",
        { value: { b: 1 }, enumerable: false }
      )
      const { post } = yield* wrap({ post: original })
      const without = (tool: object) => ({ ...Object.getOwnPropertyDescriptors(tool), execute: undefined })
      assert.deepStrictEqual(without(post), without(original))
      assert.notStrictEqual(post.execute, original.execute)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("keeps tools whose names are not ordinary", () =>
    Effect.gen(function*() {
      const one = yield* post
      const tools = yield* wrap(
        Object.fromEntries(["__proto__", "constructor", "toString", ""].map((name) => [name, one]))
      )
      assert.deepStrictEqual(Object.keys(tools), ["__proto__", "constructor", "toString", ""])
      for (const tool of Object.values(tools)) yield* settle(() => tool.execute({ text: "x" }, call))
      assert.lengthOf((yield* Remote).applied, 4)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("passes the call options on, with the key and the run's context in them", () =>
    Effect.gen(function*() {
      const seen: Array<Record<string, unknown>> = []
      const tools = yield* wrap({
        look: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          effectKey: (_, ctx, options) => {
            seen.push({ ...options, ctx })
            return "the key"
          },
          execute: (_, options) =>
            Effect.sync(() => {
              seen.push({ ...options })
            })
        })
      })
      const messages = [{ role: "user" as const, content: "hi" }]
      const extra = { experimental_sandbox: { description: "box" } as never }
      yield* settle(() => tools.look.execute({}, { toolCallId: "a", messages, context: {}, ...extra }))
      const ctx = yield* ToolContext
      for (const options of seen) {
        assert.strictEqual(options["toolCallId"], "a")
        assert.strictEqual(options["messages"], messages)
        assert.strictEqual(options["experimental_sandbox"], extra.experimental_sandbox)
        assert.strictEqual((options["context"] as ToolContext["Service"]).run, ctx.run)
        assert.strictEqual((options["context"] as ToolContext["Service"]).state, ctx.state)
      }
      assert.strictEqual(seen[1]!["effectKey"], "the key")
      assert.instanceOf(seen[1]!["abortSignal"], AbortSignal)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("puts the run above the tool's own context, and above what a caller passes as context", () =>
    Effect.gen(function*() {
      const contexts: Array<unknown> = []
      const tools = yield* wrap({
        own: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          contextSchema: Schema.Struct({ token: Schema.String, agent: Schema.String }),
          execute: (_, { context }) =>
            Effect.sync(() => {
              contexts.push([context.token, context.agent, context.run.runId])
            })
        }),
        none: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          execute: (_, { context }) =>
            Effect.sync(() => {
              contexts.push([Object.keys(context), context.run.runId])
            })
        })
      })
      const forged = { run: { runId: "forged" }, token: "t", agent: "mine" }
      yield* settle(() => tools.own.execute({}, { ...call, context: forged }))
      yield* settle(() => tools.none.execute({}, { ...call, context: forged }))
      assert.deepStrictEqual(contexts, [["t", "mine", "run-1"], [["run", "state", "artifacts"], "run-1"]])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("fails a call whose own context is not valid, and runs nothing", () =>
    Effect.gen(function*() {
      let ran = false
      const tools = yield* wrap({
        own: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          contextSchema: Schema.Struct({ token: Schema.String }),
          execute: () => Effect.sync(() => void (ran = true))
        })
      })
      const error = yield* Effect.flip(settle(() => tools.own.execute({}, { ...call, context: { token: 1 } as never })))
      assert.match(String(error), /token/)
      assert.isFalse(ran)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  for (const name of ["runId", "agent", "trigger", "signal"] as const) {
    it.effect(`says where ctx.${name} is now, so that no key can hold undefined`, () =>
      Effect.gen(function*() {
        const tools = yield* wrap({
          old: yield* defineEffectTool({
            inputSchema: Schema.Struct({}),
            effectKey: (_, ctx) => `${(ctx as unknown as Record<string, string>)[name]}`,
            execute: () => Effect.succeed(1)
          })
        })
        const error = yield* Effect.flip(settle(() => tools.old.execute({}, call)))
        assert.match(String(error), new RegExp(`ctx.run.${name}`))
      }).pipe(Effect.scoped, Effect.provide(layers)))
  }

  it.effect("gives ToolContext as a service to every hook, and a Scope that closes with the call", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const note = (hook: string) =>
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Effect.sync(() => log.push(`${hook} closed`)))
          log.push(`${hook} in ${(yield* ToolContext).run.runId}`)
        })
      const tools = yield* wrap({
        noting: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          effectKey: () => Effect.as(note("effectKey"), "k"),
          alreadyApplied: () => Effect.as(note("alreadyApplied"), undefined),
          execute: () => Effect.as(note("execute"), 1)
        })
      })
      yield* settle(() => tools.noting.execute({}, call))
      assert.sameMembers(log, [
        "effectKey in run-1",
        "alreadyApplied in run-1",
        "alreadyApplied closed",
        "execute in run-1",
        "execute closed",
        "effectKey closed"
      ])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  describe("allow", () => {
    const answers = [
      ["false", () => false],
      ["a truthy value that is not true", () => "yes" as never],
      ["undefined", () => undefined as never],
      ["a Promise of false", () => Promise.resolve(false)],
      ["an Effect of false", () => Effect.succeed(false)],
      ["a rejected Promise", () => Promise.reject(new Error("down"))],
      ["a failing Effect", () => Effect.fail("down")],
      ["an exception", () => assert.fail("down")]
    ] as const
    for (const [name, allow] of answers) {
      it.effect(`refuses the call on ${name}, and no hook runs`, () => {
        const events: Array<string> = []
        return Effect.gen(function*() {
          let ran = false
          const hook = <A>(value: A) => () => {
            ran = true
            return Effect.succeed(value)
          }
          const tools = yield* wrap({
            guarded: yield* defineEffectTool({
              inputSchema: Schema.Struct({}),
              effectKey: hook("k"),
              alreadyApplied: hook(undefined),
              execute: hook(1)
            })
          }, allow)
          const error = yield* Effect.flip(settle(() => tools.guarded.execute({}, call)))
          assert.strictEqual((error as { readonly _tag: string })._tag, "ToolNotAllowedError")
          assert.match(String(error), /guarded/)
          assert.isFalse(ran)
          assert.deepStrictEqual(events, ["refused"])
        }).pipe(
          Effect.scoped,
          Effect.provide([layers, EffectEvent.layer((event) => Effect.sync(() => void events.push(event.outcome)))])
        )
      })
    }

    it.effect("lets the call through on true, however it is said, and gets the tool's name", () =>
      Effect.gen(function*() {
        const asked: Array<string> = []
        for (const answer of [true, Promise.resolve(true), Effect.succeed(true)]) {
          const tools = yield* wrap({ post: yield* post }, (name) => {
            asked.push(name)
            return answer
          })
          yield* settle(() => tools.post.execute({ text: "x" }, call))
        }
        assert.deepStrictEqual(asked, ["post", "post", "post"])
      }).pipe(Effect.scoped, Effect.provide(layers)))
  })

  it.effect("asks a policy that is a service", () =>
    Effect.gen(function*() {
      class Policy extends Context.Service<Policy, { readonly allows: (name: string) => boolean }>()("test/Policy") {}
      const tools = yield* Effect.gen(function*() {
        return yield* wrapToolsForRun(
          { post: yield* post },
          yield* ToolContext,
          yield* EffectStore,
          (name) => Effect.map(Policy, (policy) => policy.allows(name))
        )
      }).pipe(Effect.provideService(Policy, { allows: (name) => name !== "post" }))
      const error = yield* Effect.flip(settle(() => tools.post.execute({ text: "x" }, call)))
      assert.strictEqual((error as { readonly _tag: string })._tag, "ToolNotAllowedError")
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("refuses an Effect that makes a tool where a tool is wanted, and says what to write", () =>
    Effect.gen(function*() {
      // @ts-expect-error a tool that was not made yet
      const unmade = wrapToolsForRun({ post }, yield* ToolContext, yield* EffectStore)
      const exit = yield* Effect.exit(Effect.provide(unmade, Remote.layer))
      assert.match(String(Exit.isFailure(exit) ? exit.cause : exit), /yield\* post/)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("runs nothing for a signal that is aborted already, and rejects with its reason", () =>
    Effect.gen(function*() {
      const tools = yield* wrap({ post: yield* post })
      const reason = new Error("stopped")
      const error = yield* Effect.flip(
        settle(() => tools.post.execute({ text: "x" }, { ...call, abortSignal: AbortSignal.abort(reason) }))
      )
      assert.strictEqual(error, reason)
      assert.lengthOf((yield* Remote).applied, 0)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("interrupts the only caller's effect on abort, and settles after its finalizers", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const tools = yield* wrap({
        slow: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          execute: () =>
            Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Effect.sync(() => void log.push("cleaned up"))),
              Effect.as(1)
            )
        })
      })
      const controller = new AbortController()
      const reason = new Error("enough")
      const running = yield* Effect.forkChild(
        Effect.flip(settle(() => tools.slow.execute({}, { ...call, abortSignal: controller.signal }))),
        { startImmediately: true }
      )
      yield* Deferred.await(started)
      controller.abort(reason)
      assert.strictEqual(yield* Fiber.join(running), reason)
      assert.deepStrictEqual(log, ["cleaned up"])
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("lets one caller's abort leave another caller's effect alone", () =>
    Effect.gen(function*() {
      const { applied, gate } = yield* Remote
      const tools = yield* wrap({ post: yield* post })
      const controller = new AbortController()
      const first = yield* Effect.forkChild(
        Effect.exit(settle(() => tools.post.execute({ text: "x" }, { ...call, abortSignal: controller.signal }))),
        { startImmediately: true }
      )
      const second = yield* Effect.forkChild(settle(() => tools.post.execute({ text: "x" }, call)), {
        startImmediately: true
      })
      yield* Deferred.await(gate.reached)
      controller.abort()
      assert.isTrue(Exit.isFailure(yield* Fiber.join(first)))
      yield* Deferred.succeed(gate.open, undefined)
      assert.deepStrictEqual(yield* Fiber.join(second), { id: 1, text: "x" })
      assert.lengthOf(applied, 1)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(EffectStore.layerMemory, Remote.layerGated, ToolContext.layer({ runId: "run-1" }))
      )
    ))

  it.effect("takes calls off their effect when its scope closes, and waits for finalizers", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const started = yield* Deferred.make<void>()
      const scope = yield* Scope.make()
      const slow = yield* defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () =>
          Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
            Effect.onInterrupt(() => Effect.sync(() => void log.push("cleaned up"))),
            Effect.as(1)
          )
      })
      const tools = yield* Scope.provide(wrap({ slow }), scope)
      const running = yield* Effect.forkChild(Effect.exit(settle(() => tools.slow.execute({}, call))), {
        startImmediately: true
      })
      yield* Deferred.await(started)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(log, ["cleaned up"])
      assert.isTrue(Exit.isFailure(yield* Fiber.join(running)))
      const late = yield* Effect.flip(settle(() => tools.slow.execute({}, call)))
      assert.match(String(late), /scope/)
    }).pipe(Effect.provide(layers)))

  it.effect("stops with the run's signal, and runs nothing after it", () => {
    const controller = new AbortController()
    return Effect.gen(function*() {
      const started = yield* Deferred.make<void>()
      const tools = yield* wrap({
        slow: yield* defineEffectTool({
          inputSchema: Schema.Struct({}),
          execute: () => Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Effect.never), 1)
        })
      })
      const running = yield* Effect.forkChild(Effect.flip(settle(() => tools.slow.execute({}, call))), {
        startImmediately: true
      })
      yield* Deferred.await(started)
      const reason = new Error("run cancelled")
      controller.abort(reason)
      assert.strictEqual(yield* Fiber.join(running), reason)
      assert.strictEqual(yield* Effect.flip(settle(() => tools.slow.execute({}, call))), reason)
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Layer.mergeAll(
          EffectStore.layerMemory,
          Remote.layer,
          ToolContext.layer({ runId: "run-1", signal: controller.signal })
        )
      )
    )
  })

  it.effect("settles with what one of its runs returned, over a store that is any record of functions", () =>
    Effect.gen(function*() {
      const store = yield* EffectStore
      const counted: Array<string> = []
      const counting: IEffectStore = {
        ...store,
        claim: (requests) => {
          counted.push("claim")
          return store.claim(requests)
        },
        complete: (items) => {
          counted.push("complete")
          return store.complete(items)
        }
      }
      const ctx = Context.get(yield* Layer.build(ToolContext.layer({ runId: "run-2" })), ToolContext)
      const { post: wrapped } = yield* wrapToolsForRun({ post: yield* post }, ctx, counting)
      yield* settle(() => wrapped.execute({ text: "x" }, call))
      yield* settle(() => wrapped.execute({ text: "x" }, call))
      assert.deepStrictEqual(counted, ["claim", "complete", "claim"])
    }).pipe(Effect.scoped, Effect.provide(layers)))
})
