/**
 * What a call of an effect tool that streams shows of the effect that is being applied.
 */
import { Effect } from "effect"
import type { OnValue } from "../internal/lastValue.ts"
import * as RecordedResult from "../RecordedResult.ts"
import type { Call } from "../reconciliation/Call.ts"
import type { ToolOutput } from "./streamToolOutput.ts"

/**
 * How many values wait for a reader that is slow. An application holds a claim and others wait for it, so it never waits
 * for a reader: values are previews, and the oldest make room for the newest.
 */
const mostWaiting = 64

/**
 * The values of the application that this call has started, if it has started one: a joiner and a replay show the recorded
 * result, and nothing else.
 */
export class Preview {
  readonly #output: ToolOutput
  readonly #tool: string
  readonly #encode: Call["encode"]
  #shown = RecordedResult.fromJson(undefined)
  #complained = false

  constructor(output: ToolOutput, tool: string, encode: Call["encode"]) {
    this.#output = output
    this.#tool = tool
    this.#encode = encode
  }

  /** Shows a value, as far as somebody looks. It cannot fail: what is wrong with a preview must not stop the effect. */
  readonly show: OnValue = (value) =>
    Effect.suspend(() =>
      this.#output.left ? Effect.void : Effect.matchCauseEffect(Effect.suspend(() => this.#encode(value)), {
        onSuccess: (json) => {
          this.#shown = RecordedResult.fromJson(json)
          this.#output.offer(json === undefined ? undefined : JSON.parse(json))
          return this.#output.waiting < mostWaiting ? Effect.void : this.#makeRoom
        },
        onFailure: (cause) => {
          if (this.#complained) return Effect.void
          this.#complained = true
          return Effect.logWarning(
            `A preliminary result of tool "${this.#tool}" cannot be encoded, and is not shown`,
            cause
          )
        }
      })
    )

  /** Shows the recorded result, where it is not what the reader has seen last, and ends. */
  end(text: string, result: Effect.Effect<unknown, unknown>): Effect.Effect<void, unknown> {
    return text === this.#shown ? Effect.void : Effect.map(result, (value) => this.#output.offer(value))
  }

  // a reader that is only behind, since many values came at once, gets them all
  readonly #makeRoom = Effect.andThen(
    Effect.yieldNow,
    Effect.sync(() => {
      if (this.#output.waiting > mostWaiting) this.#output.dropOldest()
    })
  )
}
