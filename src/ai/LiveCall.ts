/**
 * A call of the AI SDK's `streamText` that is under way: its readers, how it is ended, and what it has come to.
 */
import { NoOutputGeneratedError, type StreamTextEndEvent } from "ai"
import { Cause } from "effect"
import type { Ai } from "../Ai.ts"
import { AiError } from "../AiError.ts"
import type { Executions } from "./bindCall.ts"
import { type Part, PartLog, type Reader } from "./PartLog.ts"

/** What a call has come to, as the SDK says it at the end. */
export type End = StreamTextEndEvent

/** A reader that counts: with the last one that leaves, the call ends. */
export interface CallReader extends Reader {
  /** Settles when the reader's leaving, and all that it ends, is done. */
  readonly leave: () => Promise<void>
}

export class LiveCall {
  /** Owns the fibers of the call's callbacks. */
  readonly ai: Ai["Service"]
  readonly executions: Executions
  readonly log = new PartLog(() => this.#read())
  /** What all readers fail with, once they have read what came before. */
  failure: Cause.Cause<unknown> | undefined
  end: End | undefined
  /** The reason of an abort, as the SDK told it. */
  abortReason: unknown
  /** Told once nothing comes any more: `failure` is then what the call has failed with, if it has. */
  onOver: () => void = () => undefined
  /** Told of the failure that the SDK takes for an end. */
  onCutOff: (error: unknown) => void = () => undefined
  /** The signal of the caller's own. */
  readonly #foreign: AbortSignal | undefined
  readonly #controller = new AbortController()
  readonly signal: AbortSignal
  readonly #mayStall: boolean
  readonly #restarts = new WeakSet<Part>()
  #parts: ReadableStreamDefaultReader<Part> | undefined
  #readers = 0
  #finishing = false
  #over = false
  #stopping: AiError | undefined
  #stopped: Promise<void> | undefined

  /** `mayStall`: whether code of the user's stands between the SDK's stream and this, which an abort does not move. */
  constructor(ai: Ai["Service"], executions: Executions, foreign: AbortSignal | undefined, mayStall: boolean) {
    this.#mayStall = mayStall
    this.ai = ai
    this.executions = executions
    this.#foreign = foreign
    this.signal = foreign === undefined
      ? this.#controller.signal
      : AbortSignal.any([foreign, this.#controller.signal])
  }

  start(parts: ReadableStream<Part>): void {
    this.#parts = parts.getReader()
  }

  /** Ends the call as failed, with the first cause that comes here. */
  fail(cause: Cause.Cause<unknown>): void {
    this.failure ??= cause
    this.#controller.abort()
  }

  /** A provider's stream was begun anew: what came of the output before this part does not count. */
  markRestart(part: Part): void {
    this.#restarts.add(part)
  }

  isRestart(part: Part): boolean {
    return this.#restarts.has(part)
  }

  join(): CallReader {
    this.#readers++
    let left: Promise<void> | undefined
    return { ...this.log.reader(), leave: () => left ??= this.#leave() }
  }

  async #leave(): Promise<void> {
    if (--this.#readers > 0 || this.log.ended) return
    // all is said, and callbacks are being told: that is not cut off
    if (this.#finishing) return void this.log.drain()
    await this.stop(AiError.aborted(undefined, "The call was aborted: its last reader left before the end."))
  }

  /** Ends the call, if it has not ended. Settles when its tools have come to their end. */
  stop(because: AiError): Promise<void> {
    return this.#stopped ??= this.#stop(because)
  }

  async #stop(because: AiError): Promise<void> {
    if (!this.log.ended) {
      this.#stopping = because
      this.#controller.abort()
      const drained = this.log.drain()
      if (!this.#mayStall) await drained
    }
    await this.executions.ended()
  }

  async #read(): Promise<Part | undefined> {
    if (this.#over || this.#parts === undefined) return undefined
    try {
      const { done, value } = await this.#parts.read()
      return done ? await this.#ended() : await this.#seen(value)
    } catch (error) {
      // the SDK's stream broke: nothing comes after that
      this.#over = true
      await this.#quiet()
      const failed = this.#failed(error)
      this.onOver()
      return failed
    }
  }

  async #seen(part: Part): Promise<Part> {
    switch (part.type) {
      case "finish":
        this.#finishing = true
        return part
      case "finish-step":
        return hasEnd(part) ? part : this.#cutOff()
      case "error":
        return this.#failed(part.error)
      case "abort":
        await this.#quiet()
        // the SDK knows of an abort only; it had a failure for its reason
        if (this.failure !== undefined) return this.#failed(undefined)
        this.failure = Cause.fail(this.#aborted())
        return part
      // the SDK changes its own part later
      case "tool-error":
        return { ...part }
      default:
        return part
    }
  }

  async #ended(): Promise<Part | undefined> {
    this.#over = true
    await this.#quiet()
    const last = this.end === undefined && this.failure === undefined
      ? this.#failed(new NoOutputGeneratedError({ message: "The stream ended without a step." }))
      : undefined
    this.onOver()
    return last
  }

  // Half a text is not the text. The SDK would go on, and tell of an end.
  async #cutOff(): Promise<Part> {
    this.#over = true
    const error = new NoOutputGeneratedError({ message: "The model's stream ended without a finish chunk." })
    const failed = this.#failed(error)
    this.onCutOff(error)
    this.#controller.abort()
    await this.executions.ended()
    this.#parts?.cancel().catch(() => undefined)
    this.onOver()
    return failed
  }

  /** The first failure is the call's. */
  #failed(error: unknown): Part {
    if (this.failure !== undefined) return { type: "error", error: Cause.squash(this.failure) }
    this.failure = Cause.fail(AiError.from(error))
    return { type: "error", error }
  }

  #aborted(): AiError {
    const { abortReason } = this
    const foreign = this.#foreign
    if (foreign?.aborted === true && foreign.reason === abortReason) return AiError.aborted(abortReason)
    return this.#stopping ?? AiError.from(abortReason)
  }

  // The SDK does not wait for tools once it was aborted. They are stopped, and waited for.
  async #quiet(): Promise<void> {
    if (this.executions.running === 0) return
    this.#controller.abort()
    await this.executions.ended()
  }
}

/**
 * Whether a provider has said that it is done. Where its stream just ends, the SDK makes up a reason, and has measured
 * nothing. (Where nothing came at all, it makes an error of that by itself.)
 */
const hasEnd = (part: Extract<Part, { readonly type: "finish-step" }>): boolean =>
  part.finishReason !== "other" || part.rawFinishReason !== undefined || part.performance === undefined
  || part.performance.responseTimeMs > 0 || part.performance.timeToFirstOutputMs !== undefined
