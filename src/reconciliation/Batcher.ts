/**
 * One round trip for the requests of one microtask turn, for stores that are worth it.
 *
 * A request that comes alone is sent alone and waits for no timer. (`RequestResolver` waits for a turn of the event loop,
 * and runs a batch in the context of its first caller: a span, a transaction, an interruption of one request would become
 * that of all.)
 */
import { Cause, Effect, Exit, Option } from "effect"
import type { EffectStoreError } from "../errors.ts"

interface Request<Item, Reply> {
  readonly item: Item
  readonly resume: (reply: Effect.Effect<ReadonlyArray<Reply>, EffectStoreError>) => void
}

/** More requests than this are several batches. */
const largest = 500

/** The key that a store's failure speaks of, where it speaks of one. */
const refusedKey = (exit: Exit.Exit<unknown, EffectStoreError>): string | undefined =>
  Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.key : undefined

export class Batcher<Item extends { readonly key: string }, Reply> {
  private readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Reply>, EffectStoreError>
  private waiting: Array<Request<Item, Reply>> = []

  constructor(send: (items: ReadonlyArray<Item>) => Effect.Effect<ReadonlyArray<Reply>, EffectStoreError>) {
    this.send = send
  }

  /** The reply to one item, as a batch of one. A request that is on its way cannot be taken back. */
  ask(item: Item): Effect.Effect<ReadonlyArray<Reply>, EffectStoreError> {
    return Effect.callback((resume) => {
      if (this.waiting.push({ item, resume }) === 1) queueMicrotask(() => this.flush())
    })
  }

  private flush(): void {
    const { waiting } = this
    this.waiting = []
    for (let from = 0; from < waiting.length; from += largest) this.sendBatch(waiting.slice(from, from + largest))
  }

  private sendBatch(batch: ReadonlyArray<Request<Item, Reply>>): void {
    const items = batch.map(({ item }) => item)
    Effect.runFork(Effect.suspend(() => this.send(items))).addObserver((exit) => {
      // One item that a store cannot take fails alone. What may have been done for the others is done again: a claim is
      // answered by its id, the rest by its token.
      const refused = refusedKey(exit)
      const alone = batch.filter(({ item }) => item.key === refused)
      if (alone.length > 0 && alone.length < batch.length) {
        alone.forEach(({ resume }) => resume(exit as Exit.Exit<never, EffectStoreError>))
        return this.sendBatch(batch.filter(({ item }) => item.key !== refused))
      }
      batch.forEach(({ resume }, i) =>
        // a reply that is missing is an empty answer, and one that is no list stays as it is: the asker refuses both
        resume(Exit.map(exit, (replies) => Array.isArray(replies) ? replies.slice(i, i + 1) : replies))
      )
    })
  }
}
