/**
 * What a call of a tool that streams gives the AI SDK: an async iterable that runs the call when it is first read.
 */
import { Effect } from "effect"

/** Runs the call, and settles when all of it has ended. `signal` aborts it; it also aborts when the reader leaves. */
export type Run = (output: ToolOutput, signal: AbortSignal) => Promise<unknown>

interface Asked {
  readonly resolve: (result: IteratorResult<unknown, undefined>) => void
  readonly reject: (error: unknown) => void
}

const done: IteratorResult<unknown, undefined> = { done: true, value: undefined }

/**
 * The values of one call, in order.
 *
 * - Nothing happens before the first `next`.
 * - An abort ends the call, whether anybody reads or not: the SDK's `generateText` never calls `return`, and its
 *   `streamText` only after one more value. The reader gets the abort's reason when the call's finalizers are done.
 * - `return` ends the call too, and waits for its finalizers.
 */
export class ToolOutput implements AsyncIterableIterator<unknown> {
  /** Whether the reader left: nobody sees further values. */
  left = false
  readonly #run: Run
  readonly #aborts: ReadonlyArray<AbortSignal>
  readonly #leaving = new AbortController()
  readonly #values: Array<unknown> = []
  readonly #asked: Array<Asked> = []
  #started = false
  #running: Promise<void> | undefined
  #ended = false
  #failure: { readonly error: unknown } | undefined
  #wake: (() => void) | undefined

  constructor(run: Run, ...aborts: ReadonlyArray<AbortSignal | undefined>) {
    this.#run = run
    this.#aborts = aborts.filter((signal) => signal !== undefined)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<unknown, undefined>> {
    if (this.#values.length > 0) return Promise.resolve({ done: false, value: this.#values.shift() })
    if (this.#ended) {
      const failure = this.#failure
      this.#failure = undefined
      return failure === undefined ? Promise.resolve(done) : Promise.reject(failure.error)
    }
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject })
      if (!this.#started) this.#start()
      else this.#wake?.()
    })
  }

  async return(): Promise<IteratorResult<unknown, undefined>> {
    this.left = true
    this.#values.length = 0
    if (this.#started) {
      this.#leaving.abort()
      await this.#running
    } else {
      this.#started = true
      this.#ended = true
    }
    return done
  }

  /** How many values wait for the reader. */
  get waiting(): number {
    return this.#values.length
  }

  /** Gives the reader a value, now or when it asks. */
  offer(value: unknown): void {
    const asked = this.#asked.shift()
    if (asked !== undefined) asked.resolve({ done: false, value })
    else if (!this.left) this.#values.push(value)
  }

  dropOldest(): void {
    this.#values.shift()
  }

  /** Waits until the reader asks for a value that is not there yet. */
  readonly asked: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#asked.length > 0) return resume(Effect.void)
    this.#wake = () => resume(Effect.void)
  })

  #start(): void {
    this.#started = true
    const { signal } = this.#leaving
    const run = this.#run(this, this.#aborts.length === 0 ? signal : AbortSignal.any([signal, ...this.#aborts]))
    this.#running = run.then(() => this.#end(undefined), (error: unknown) => this.#end({ error }))
  }

  #end(failure: { readonly error: unknown } | undefined): void {
    this.#ended = true
    // who aborts wants no more values
    if (failure !== undefined && this.#aborts.some((signal) => signal.aborted)) this.#values.length = 0
    const waiting = this.#asked.splice(0)
    const told = this.left ? undefined : failure
    if (waiting.length === 0 || told === undefined) this.#failure = told
    else waiting.shift()!.reject(told.error)
    waiting.forEach(({ resolve }) => resolve(done))
  }
}

/** The iterable of a call that is refused: the error comes with the first `next`. */
export const refusedOutput = (error: unknown): ToolOutput => new ToolOutput(() => Promise.reject(error))
