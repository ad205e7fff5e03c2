/** Approved calls of effect tools that are resumed from elsewhere: by a process after a crash, and from a UI's messages. */
import { assert, describe, it } from "@effect/vitest"
import * as ai from "ai"
import { Ai, defineEffectTool, EffectStore, streamText, ToolContext } from "chamvi-effect"
import { Effect, Layer, Schema, Stream } from "effect"
import { readFileSync } from "node:fs"
import { start } from "./fixtures/child.ts"
import { temporaryDirectory } from "./fixtures/temporaryDirectory.ts"
import { calls, readBy, says, streaming } from "./support/streamModel.ts"

describe("a process that is killed while it resumes an approved call", () => {
  const files = Effect.map(
    temporaryDirectory,
    (directory) => ({ ledger: `${directory}/ledger.sqlite`, log: `${directory}/log` })
  )
  const resumeAfter = (hang: "model" | "execute", found: string) =>
    Effect.gen(function*() {
      const { ledger, log } = yield* files
      const first = yield* start("approvalWorker.ts", ledger, log, hang)
      assert.strictEqual(yield* first.line, "charged")
      if (hang === "model") assert.strictEqual(yield* first.line, "asking the model")
      yield* first.kill("SIGKILL")
      yield* first.ended
      const second = yield* start("approvalWorker.ts", ledger, log, "nowhere")
      assert.deepStrictEqual([yield* second.line, yield* second.line], ["asking the model", [found]])
      assert.strictEqual(readFileSync(log, "utf8"), "10\n")
    }).pipe(Effect.scoped)

  it.live("has applied once when the model's next call was cut off", () => resumeAfter("model", "paid"), 60_000)
  it.live("has applied once when execute was cut off", () => resumeAfter("execute", "found"), 60_000)
})

describe("an approval in a UI", () => {
  it.effect("resumes the call once, with its decoded input, however often the messages are sent", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const tools = {
        remind: yield* defineEffectTool({
          inputSchema: Schema.Struct({ at: Schema.Date }),
          needsApproval: true,
          execute: ({ at }) =>
            Effect.sync(() => {
              seen.push(at)
              return "reminded"
            })
        })
      }
      const options = { tools, experimental_toolApprovalSecret: "secret" }
      const asked = yield* streamText({
        ...options,
        model: streaming(calls(["remind", { at: "2030-01-01T00:00:00.000Z" }])),
        prompt: "Remind me."
      })
      const read = ai.readUIMessageStream({ stream: Stream.toReadableStream(asked.toUIMessageStream()) })
      let shown: ai.UIMessage | undefined
      yield* Effect.promise(async () => {
        for await (const message of read) shown = message
      })
      const answered = JSON.parse(
        JSON.stringify(shown),
        (_, value: unknown) =>
          value !== null && typeof value === "object" && "state" in value && value.state === "approval-requested"
            ? {
              ...value,
              state: "approval-responded",
              approval: { ...(value as unknown as { readonly approval: object }).approval, approved: true }
            }
            : value
      ) as ai.UIMessage
      assert.include(JSON.stringify(answered), "approval-responded")
      const sent = [
        { id: "1", role: "user" as const, parts: [{ type: "text" as const, text: "Remind me." }] },
        answered
      ]
      for (let i = 0; i < 2; i++) {
        const messages = yield* Effect.promise(async () =>
          ai.convertToModelMessages(await ai.validateUIMessages({ messages: sent, tools: tools as never }), {
            tools: tools as never
          })
        )
        const model = streaming(says("Done."))
        const result = yield* streamText({ ...options, model, messages })
        assert.strictEqual(yield* result.text, "Done.")
        assert.deepStrictEqual(readBy(model), ["reminded"])
      }
      assert.deepStrictEqual(seen, [new Date("2030-01-01T00:00:00.000Z")])
    }).pipe(
      Effect.scoped,
      Effect.provide(Layer.mergeAll(Ai.layer, ToolContext.layer({ runId: "run-1" }), EffectStore.layerMemory))
    ))
})
