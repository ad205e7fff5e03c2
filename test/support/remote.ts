/** A remote that counts: what was applied to it, and a gate that an application can be made to wait at. */
import { Context, Deferred, Effect, Layer } from "effect"

export interface Applied {
  readonly id: number
  readonly text: string
}

export class Remote extends Context.Service<Remote, {
  readonly applied: Array<Applied>
  readonly apply: (text: string) => Effect.Effect<Applied>
  /** The application that holds the text. */
  readonly find: (text: string) => Effect.Effect<Applied | undefined>
  /** Resolves when `apply` has been reached; it goes on when `open` is called. */
  readonly gate: { readonly reached: Deferred.Deferred<void>; readonly open: Deferred.Deferred<void> }
}>()("test/Remote") {
  /** Applies at once. */
  static readonly layer = Layer.effect(Remote, Effect.suspend(() => make(true)))
  /** Waits at the gate before it applies. */
  static readonly layerGated = Layer.effect(Remote, Effect.suspend(() => make(false)))
}

const make = Effect.fnUntraced(function*(open: boolean) {
  const gate = { reached: yield* Deferred.make<void>(), open: yield* Deferred.make<void>() }
  if (open) yield* Deferred.succeed(gate.open, undefined)
  const applied: Array<Applied> = []
  return Remote.of({
    applied,
    gate,
    apply: (text) =>
      Effect.andThen(
        Deferred.succeed(gate.reached, undefined),
        Effect.andThen(
          Deferred.await(gate.open),
          Effect.sync(() => {
            const one = { id: applied.length + 1, text }
            applied.push(one)
            return one
          })
        )
      ),
    find: (text) => Effect.sync(() => applied.find((one) => one.text.includes(text)))
  })
})
