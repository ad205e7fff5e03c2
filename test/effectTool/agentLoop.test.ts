/**
 * The ways in which an agent's loop runs a tool again: none of them applies an effect twice.
 */
import { assert, describe, it } from "@effect/vitest"
import { generateText as sdkGenerateText, isStepCount, type ModelMessage, ToolLoopAgent, type ToolSet } from "ai"
import {
  Ai,
  defineEffectTool,
  EffectEvent,
  effectMarker,
  EffectStore,
  generateText,
  stepOf,
  ToolContext,
  wrapToolsForRun
} from "chamvi-effect"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { calls, readBy, says, scripted } from "../support/model.ts"
import { Remote } from "../support/remote.ts"

const comment = defineEffectTool({
  description: "Posts a comment on the issue.",
  inputSchema: Schema.Struct({ issue: Schema.Int, body: Schema.String }),
  effectKey: ({ issue }, ctx) => `${ctx.run.runId}:comment:${issue}`,
  alreadyApplied: (key) => Effect.flatMap(Remote, (remote) => remote.find(effectMarker(key))),
  execute: ({ body }, { effectKey }) =>
    Effect.flatMap(Remote, (remote) => remote.apply(`${body} ${effectMarker(effectKey)}`))
})

const label = defineEffectTool({
  description: "Adds a label.",
  inputSchema: Schema.Struct({ label: Schema.String }),
  execute: ({ label }) => Effect.flatMap(Remote, (remote) => remote.apply(label))
})

const run = (runId: string) =>
  Layer.mergeAll(
    Ai.layer,
    Layer.succeed(ToolContext, {
      run: { runId, agent: undefined, trigger: undefined, signal: new AbortController().signal },
      state: undefined as never,
      artifacts: undefined as never
    })
  )
const layers = Layer.mergeAll(run("run-1"), EffectStore.layerMemory, Remote.layer)

const answering = (model: ReturnType<typeof scripted>, steps = 4) =>
  Effect.gen(function*() {
    return yield* generateText({
      model,
      prompt: "Answer issue 7.",
      stopWhen: isStepCount(steps),
      tools: { comment: yield* comment, label: yield* label }
    })
  })

const applied = Effect.map(Remote, (remote) => remote.applied.length)

describe("An effect tool in an agent's loop", () => {
  it.effect("applies once for parallel calls of one step with the same input, and both get the result", () =>
    Effect.gen(function*() {
      const model = scripted(calls(["label", { label: "bug" }, "a"], ["label", { label: "bug" }, "b"]), says("done"))
      const result = yield* answering(model)
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(result.steps[0]!.toolResults.map(({ output }) => output), [
        { id: 1, text: "bug" },
        { id: 1, text: "bug" }
      ])
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("applies once for one toolCallId that is delivered twice in a step", () =>
    Effect.gen(function*() {
      yield* answering(
        scripted(calls(["label", { label: "bug" }, "a"], ["label", { label: "bug" }, "a"]), says("done"))
      )
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("applies once for an approved history that is sent again and again", () =>
    Effect.gen(function*() {
      const input = { label: "bug" }
      const messages: Array<ModelMessage> = [
        { role: "user", content: "Label it." },
        {
          role: "assistant",
          content: [
            { type: "tool-call", toolCallId: "a", toolName: "label", input },
            { type: "tool-approval-request", approvalId: "1", toolCallId: "a" }
          ]
        },
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: "1", approved: true }] }
      ]
      const tools = { label: yield* label }
      const outputs: Array<unknown> = []
      for (let i = 0; i < 3; i++) {
        const model = scripted(says("done"))
        yield* generateText({ model, messages, tools, toolApproval: () => "user-approval" })
        outputs.push(readBy(model))
      }
      assert.strictEqual(yield* applied, 1)
      assert.deepStrictEqual(outputs, Array.from({ length: 3 }, () => [{ id: 1, text: "bug" }]))
    }).pipe(Effect.provide(layers)))

  it.effect("applies no further effect when a run is continued under its id", () =>
    Effect.gen(function*() {
      yield* answering(scripted(calls(["comment", { issue: 7, body: "Fixed." }]), says("done")))
      const again = yield* answering(
        scripted(calls(["comment", { issue: 7, body: "It is fixed." }, "other"]), says("done"))
      )
      assert.strictEqual(yield* applied, 1)
      assert.strictEqual((again.steps[0]!.toolResults[0]!.output as { readonly id: number }).id, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("keeps its key when the same call comes with a new toolCallId", () =>
    Effect.gen(function*() {
      for (const id of ["a", "b", "c"]) {
        yield* answering(scripted(calls(["label", { label: "bug" }, id]), says("done")))
      }
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(layers)))

  it.effect("joins the call in flight when another one comes", () =>
    Effect.gen(function*() {
      const { gate } = yield* Remote
      const turn = () => answering(scripted(calls(["label", { label: "bug" }]), says("done")))
      const first = yield* Effect.forkChild(turn(), { startImmediately: true })
      yield* Deferred.await(gate.reached)
      const second = yield* Effect.forkChild(turn(), { startImmediately: true })
      yield* Deferred.succeed(gate.open, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(second)
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(Layer.mergeAll(run("run-1"), EffectStore.layerMemory, Remote.layerGated))))

  it.effect("records an effect whose only caller was interrupted while it could not be stopped", () =>
    Effect.gen(function*() {
      const { gate } = yield* Remote
      const stubborn = yield* defineEffectTool({
        inputSchema: Schema.Struct({}),
        execute: () => Effect.uninterruptible(Effect.flatMap(Remote, (remote) => remote.apply("x")))
      })
      const turn = () =>
        generateText({ model: scripted(calls(["stubborn", {}]), says("done")), prompt: "go", tools: { stubborn } })
      const first = yield* Effect.forkChild(turn(), { startImmediately: true })
      yield* Deferred.await(gate.reached)
      const stopping = yield* Effect.forkChild(Fiber.interrupt(first), { startImmediately: true })
      yield* Deferred.succeed(gate.open, undefined)
      yield* Fiber.join(stopping)
      const result = yield* turn()
      assert.deepStrictEqual(result.toolResults[0]!.output, { id: 1, text: "x" })
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.provide(Layer.mergeAll(run("run-1"), EffectStore.layerMemory, Remote.layerGated))))

  it.effect("applies two inputs twice and one input once, over two wraps of the same tools", () =>
    Effect.gen(function*() {
      const tools = { label: yield* label }
      const ctx = yield* ToolContext
      const store = yield* EffectStore
      const first = yield* wrapToolsForRun(tools, ctx, store)
      const second = yield* wrapToolsForRun(first, ctx, store)
      for (const [wrapped, name] of [[first, "a"], [second, "a"], [second, "b"], [first, "b"]] as const) {
        yield* Effect.promise(() =>
          wrapped.label.execute({ label: name }, { toolCallId: "1", messages: [], context: {} })
        )
      }
      assert.strictEqual(yield* applied, 2)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("replays the first of two inputs that alternate, and an epoch in the key makes a third effect", () => {
    const outcomes: Array<string> = []
    return Effect.gen(function*() {
      const epoch = yield* defineEffectTool({
        inputSchema: Schema.Struct({ label: Schema.String }),
        effectKey: ({ label }, ctx, options) => `${ctx.run.runId}:epoch:${stepOf(options)}:${label}`,
        execute: ({ label }) => Effect.flatMap(Remote, (remote) => remote.apply(label))
      })
      yield* answering(
        scripted(
          calls(["label", { label: "A" }]),
          calls(["label", { label: "B" }]),
          calls(["label", { label: "A" }]),
          says("")
        )
      )
      assert.strictEqual(yield* applied, 2)
      assert.deepStrictEqual(outcomes, ["executed", "executed", "recorded"])
      yield* generateText({
        model: scripted(
          calls(["epoch", { label: "A" }]),
          calls(["epoch", { label: "B" }]),
          calls(["epoch", { label: "A" }]),
          says("")
        ),
        prompt: "go",
        stopWhen: isStepCount(4),
        tools: { epoch }
      })
      assert.strictEqual(yield* applied, 5)
    }).pipe(
      Effect.provide([layers, EffectEvent.layer((event) => Effect.sync(() => void outcomes.push(event.outcome)))])
    )
  })

  it.effect("never shows the key to the model, and takes none from it", () =>
    Effect.gen(function*() {
      const model = scripted(
        calls(["comment", { issue: 7, body: "Hi", effectKey: "forged", key: "forged" }]),
        says("done")
      )
      yield* answering(model)
      const { applied: all } = yield* Remote
      assert.include(all[0]!.text, effectMarker("run-1:comment:7"))
      const told = JSON.stringify([model.doGenerateCalls[0]!.tools, model.doGenerateCalls[0]!.prompt])
      assert.notInclude(told, "run-1")
      assert.notInclude(told, "effectKey")
    }).pipe(Effect.provide(layers)))

  it.effect("does not run the siblings of a call again that waited for approval", () =>
    Effect.gen(function*() {
      const tools = { comment: yield* comment, label: yield* label }
      const first = yield* generateText({
        model: scripted(calls(["label", { label: "bug" }, "a"], ["comment", { issue: 7, body: "Hi" }, "b"])),
        prompt: "go",
        tools,
        toolApproval: ({ toolCall }) => toolCall.toolName === "comment" ? "user-approval" : "not-applicable"
      })
      assert.strictEqual(yield* applied, 1)
      const request = first.content.find((part) => part.type === "tool-approval-request")!
      const history: Array<ModelMessage> = [
        { role: "user", content: "go" },
        ...first.responseMessages,
        { role: "tool", content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }] }
      ]
      for (let i = 0; i < 2; i++) {
        yield* generateText({
          model: scripted(says("done")),
          messages: history,
          tools,
          toolApproval: () => "user-approval"
        })
      }
      assert.deepStrictEqual((yield* Remote).applied.map(({ text }) => text), [
        "bug",
        `Hi ${effectMarker("run-1:comment:7")}`
      ])
    }).pipe(Effect.provide(layers)))

  it.effect("works in ToolLoopAgent and in plain generateText through wrapToolsForRun", () =>
    Effect.gen(function*() {
      const tools = yield* wrapToolsForRun({ label: yield* label }, yield* ToolContext, yield* EffectStore)
      const model = () => scripted(calls(["label", { label: "bug" }]), says("done"))
      const agent = new ToolLoopAgent({ model: model(), tools })
      yield* Effect.promise(() => agent.generate({ prompt: "go" }))
      yield* Effect.promise(() => sdkGenerateText({ model: model(), prompt: "go", tools }))
      assert.strictEqual(yield* applied, 1)
    }).pipe(Effect.scoped, Effect.provide(layers)))

  it.effect("refuses to run unwrapped in plain ai, and inside ToolLoopAgent", () =>
    Effect.gen(function*() {
      const tools = { label: yield* label } as ToolSet
      const model = () => scripted(calls(["label", { label: "bug" }]), says("done"))
      const plain = yield* Effect.promise(() => sdkGenerateText({ model: model(), prompt: "go", tools }))
      const agent = new ToolLoopAgent({ model: model(), tools })
      const looped = yield* Effect.promise(() => agent.generate({ prompt: "go" }))
      for (const content of [plain.content, looped.steps[0]!.content]) {
        const failed = content.find((part) => part.type === "tool-error")
        assert.match(String(failed?.error), /wrapToolsForRun/)
      }
      assert.strictEqual(yield* applied, 0)
    }).pipe(Effect.provide(layers)))
})
