import { expect, it } from "@effect/vitest"
import { applyOnce, EffectStore } from "chamvi-effect"
import { FaultyStore } from "chamvi-effect/testing"
import { Context, Effect, Layer } from "effect"

/** The mail server as a test double. */
class Outbox extends Context.Service<Outbox, Array<string>>()("app/Outbox") {
  static readonly layer = Layer.sync(Outbox, () => [])
}

const sendInvoice = (order: number) =>
  applyOnce({
    key: `invoice:${order}`,
    alreadyApplied: (key) => Effect.map(Outbox, (outbox) => outbox.includes(key) ? "sent" : undefined),
    execute: Effect.fnUntraced(function*(key) {
      const outbox = yield* Outbox
      outbox.push(key)
      return "sent"
    })
  })

const program = Effect.gen(function*() {
  const send = Effect.retry(sendInvoice(42), { times: 20 })
  const answers = [yield* send, yield* send]
  const { report } = yield* FaultyStore
  return { answers, sent: yield* Outbox, faults: yield* report }
})

const withFaults = (seed: number) =>
  FaultyStore.layer({ seed, rate: 0.5, faults: ["fail", "loseReply"] }).pipe(
    Layer.provide(EffectStore.layerMemory),
    Layer.merge(Outbox.layer)
  )

it.effect("sends an invoice once, whatever the store does", () =>
  Effect.gen(function*() {
    const seeds = Array.from({ length: 20 }, (_, seed) => seed)
    const runs = yield* Effect.forEach(seeds, (seed) => Effect.provide(program, withFaults(seed)))
    for (const { answers, sent } of runs) expect([answers, sent]).toEqual([["sent", "sent"], ["invoice:42"]])
    expect(runs.flatMap(({ faults }) => faults).length).toBeGreaterThan(20)
  }))
