/**
 * `execute` of a `tool` that streams, as the AI SDK calls it: JSON in, an async iterable of JSON out.
 */
import type { ToolExecutionOptions } from "@ai-sdk/provider-utils"
import { Effect } from "effect"
import type { OnValue } from "../internal/lastValue.ts"
import { hookAnswer } from "../internal/promiseBridge.ts"
import type { Caller, Captured } from "./callContext.ts"
import { decoding, encoder, rejecter, runnerOf } from "./execute.ts"
import type { AnyToolOptions, ToolCodecs } from "./sdkTool.ts"
import { ToolOutput } from "./streamToolOutput.ts"

/** The function for a tool that streams, bound to `caller` or to nobody. */
export const streamingExecutor = (
  { execute: hook }: AnyToolOptions,
  captured: Captured,
  codecs: ToolCodecs,
  caller: Caller | undefined
) => {
  const runner = runnerOf(captured, caller)
  const reject = rejecter(caller)
  const encode = encoder(codecs.output)
  // The Stream waits for the reader after each value: it is pulled as fast as its values are read, and no faster.
  const showIn = (output: ToolOutput): OnValue => (value) =>
    Effect.flatMap(encode(value), (held) => {
      output.offer(held)
      return Effect.interruptible(output.asked)
    })
  return (input: unknown, call: ToolExecutionOptions<unknown>): ToolOutput => {
    // the call belongs to the fiber that makes it, not to the one that first reads
    const run = runner()
    return new ToolOutput((output, signal) => {
      const execute = decoding(
        codecs,
        (decoded, call) =>
          hookAnswer("execute", () => hook?.(decoded as never, call as never), undefined, showIn(output))
      )
      const start = () => run(execute(input, call), signal).catch(reject)
      return caller === undefined ? start() : caller.track(start)
    }, call.abortSignal)
  }
}
