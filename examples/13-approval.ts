/**
 * An effect tool that a person has to approve. The page with the button sends the history and the answer; a double click, a
 * second tab or a retry after a crash sends it again, and the AI SDK then executes the call again.
 *
 * The secret keeps an approval to the call that it was given for: a history that was edited on its way is refused.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import type { ModelMessage } from "ai"
import { Ai, defineEffectTool, EffectEvent, generateText, ToolContext } from "chamvi-effect"
import { SqliteEffectStore } from "chamvi-effect/SqliteEffectStore"
import { Console, Context, Effect, Layer, Logger, Schema } from "effect"
import { ledgerFile } from "./support/ledgerFile.ts"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

class Bank extends Context.Service<Bank, {
  readonly charge: (euros: number) => Effect.Effect<string>
  readonly charges: Effect.Effect<ReadonlyArray<number>>
}>()("examples/Bank") {
  static readonly layer = Layer.sync(Bank, () => {
    const charges: Array<number> = []
    return Bank.of({
      charge: (euros) => Effect.sync(() => `charge ${charges.push(euros)}`),
      charges: Effect.succeed(charges)
    })
  })
}

const charge = defineEffectTool({
  description: "Charges the customer.",
  inputSchema: Schema.Struct({ euros: Schema.Int }),
  needsApproval: ({ euros }) => euros > 5,
  execute: ({ euros }) => Effect.flatMap(Bank, (bank) => bank.charge(euros))
})

const runId = "run-1"

/** One request to the server: all that it knows of an earlier one is the history that it gets, and the ledger. */
const request = (messages: Array<ModelMessage>, turn: ReturnType<typeof says>) =>
  Effect.gen(function*() {
    return yield* generateText({
      model: scriptedModel(turn),
      messages,
      tools: { charge: yield* charge },
      // a key of the server's, and the run: an approval of one run is none for another
      experimental_toolApprovalSecret: `a long random secret:${runId}`
    })
  })

const main = Effect.gen(function*() {
  const filename = yield* ledgerFile
  const server = Layer.merge(SqliteEffectStore.layer({ filename }), ToolContext.layer({ runId }))
  const send = (...args: Parameters<typeof request>) => Effect.provide(request(...args), server)

  const history: Array<ModelMessage> = [{ role: "user", content: "Charge 10 euros." }]
  const asked = yield* send(history, calls(["charge", { euros: 10 }]))
  history.push(...asked.responseMessages)
  const approvalId = asked.content.find((part) => part.type === "tool-approval-request")?.approvalId ?? ""
  history.push({ role: "tool", content: [{ type: "tool-approval-response", approvalId, approved: true }] })

  yield* send(history, says("Charged.")) // => executed
  yield* send(history, says("Charged.")) // => recorded

  const edited = JSON.parse(JSON.stringify(history).replace(`"euros":10`, `"euros":1000`)) as Array<ModelMessage>
  yield* send(edited, says("Charged.")).pipe(
    Effect.catchTag("AiError", (error) => Console.log(error.reason)) // => InvalidToolApprovalSignatureError
  )

  const bank = yield* Bank
  yield* Console.log((yield* bank.charges).join()) // => 10
})

main.pipe(
  Effect.scoped,
  Effect.provide([Ai.layer, Bank.layer, EffectEvent.layer((event) => Console.log(event.outcome))]),
  Effect.provideService(Logger.LogToStderr, true),
  NodeRuntime.runMain
)
