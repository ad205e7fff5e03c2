/**
 * An agent that pays a bill once a person has agreed. Its run sleeps meanwhile: nothing of it is in a process, and with an engine
 * on a file or a database the answer may come days later, from another process.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { defineAgent, defineEffectTool, Engine } from "chamvi-effect"
import { Console, Context, Effect, Layer, Schema } from "effect"
import { calls, says, scriptedModel } from "./support/scriptedModel.ts"

class Bank extends Context.Service<Bank, {
  readonly pay: (to: string, amount: number) => Effect.Effect<number>
}>()("examples/Bank") {
  static readonly layer = Layer.sync(Bank, () => {
    let payments = 0
    return Bank.of({ pay: () => Effect.sync(() => ++payments) })
  })
}

const pay = defineEffectTool({
  description: "Pays an amount.",
  inputSchema: Schema.Struct({ to: Schema.String, amount: Schema.Int }),
  execute: ({ amount, to }) => Effect.flatMap(Bank, (bank) => bank.pay(to, amount))
})

const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel(calls(["pay", { to: "Ada", amount: 900 }]), says("Ada has her money.")),
  trigger: Schema.Struct({ invoice: Schema.Int }),
  instructions: (ctx) => `You settle invoice ${ctx.run.trigger.invoice}.`,
  tools: { pay },
  toolApproval: { pay: ({ amount }) => amount > 500 ? "user-approval" : "approved" }
})

const main = Effect.gen(function*() {
  const run = Engine.run(clerk, { runId: "invoice-7", trigger: { invoice: 7 }, prompt: "Settle it." })

  const waiting = yield* Effect.flip(run)
  yield* Console.log(waiting._tag) // => RunWaitingError

  const { approvals } = yield* Engine.get("invoice-7")
  for (const { id, input, toolName } of approvals) {
    yield* Console.log(`${toolName} ${input}`) // => pay {"to":"Ada","amount":900}
    yield* Engine.approve("invoice-7", id)
  }
  const result = yield* Engine.resume(clerk, "invoice-7")
  yield* Console.log(result.text) // => Ada has her money.

  // the same id again: what is recorded, and no second payment
  yield* Console.log((yield* run).steps) // => 2
  const bank = yield* Bank
  yield* Console.log(`payment ${yield* bank.pay("nobody", 0)}`) // => payment 2
})

const Live = clerk.layer.pipe(Layer.provideMerge(Engine.layerMemory()), Layer.provideMerge(Bank.layer))

main.pipe(Effect.provide(Live), NodeRuntime.runMain)
