/**
 * `applyOnce` without the AI SDK: one effect of a larger program is kept single, and the program is repeated as a whole.
 *
 * The carrier has no room at first, so the order is fulfilled again from its start. The customer gets one invoice.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { applyOnce, EffectEvent, EffectStore } from "chamvi-effect"
import { Console, Context, DateTime, Effect, Layer, Schema } from "effect"

class Invoice extends Schema.Class<Invoice>("Invoice")({
  number: Schema.Int,
  order: Schema.Int,
  issuedAt: Schema.DateTimeUtcFromString
}) {}

class Books extends Context.Service<Books, {
  readonly issue: (order: number) => Effect.Effect<Invoice>
  readonly find: (order: number) => Effect.Effect<Invoice | undefined>
}>()("examples/Books") {
  static readonly layer = Layer.sync(Books, () => {
    const invoices: Array<Invoice> = []
    return Books.of({
      issue: Effect.fn("Books.issue")(function*(order) {
        const invoice = new Invoice({ number: invoices.length + 1, order, issuedAt: yield* DateTime.now })
        invoices.push(invoice)
        return invoice
      }),
      find: (order) => Effect.sync(() => invoices.find((invoice) => invoice.order === order))
    })
  })
}

class NoRoom extends Schema.TaggedError<NoRoom>()("NoRoom", {}) {}

class Carrier extends Context.Service<Carrier, {
  readonly ship: (invoice: Invoice) => Effect.Effect<string, NoRoom>
}>()("examples/Carrier") {
  static readonly layer = Layer.sync(Carrier, () => {
    let calls = 0
    return Carrier.of({
      ship: Effect.fn("Carrier.ship")(function*(invoice) {
        if (++calls === 1) return yield* new NoRoom()
        return `order ${invoice.order} is on its way, with invoice ${invoice.number}`
      })
    })
  })
}

const fulfil = Effect.fn("fulfil")(function*(order: number) {
  const books = yield* Books
  const carrier = yield* Carrier
  const invoice = yield* applyOnce({
    key: `order:${order}:invoice`,
    tool: "invoice",
    // a result that JSON cannot carry needs a schema: every repeat gets an Invoice, with its DateTime
    schema: Invoice,
    alreadyApplied: () => books.find(order),
    execute: () => books.issue(order)
  })
  return yield* carrier.ship(invoice)
})

const main = Effect.gen(function*() {
  // => executed
  // => recorded
  const shipped = yield* Effect.retry(fulfil(42), { times: 3, while: (error) => error._tag === "NoRoom" })
  yield* Console.log(shipped) // => order 42 is on its way, with invoice 1
})

const events = EffectEvent.layer((event) => Console.log(event.outcome))
main.pipe(
  Effect.provide([EffectStore.layerMemory, Books.layer, Carrier.layer, events]),
  NodeRuntime.runMain
)
