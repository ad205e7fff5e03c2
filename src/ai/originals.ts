/**
 * The carriers of tool failures (`ToolFailure`), taken off before a callback sees them.
 *
 * The SDK makes the model's messages of a step before it announces the step's end, so at that moment the carriers have done
 * their work: the parts get the identical values back, before anyone else sees them.
 */
import type { generateText } from "ai"
import { originalOf, restoreParts } from "./ToolFailure.ts"

type Callbacks = Pick<
  Parameters<typeof generateText>[0],
  "onToolExecutionEnd" | "experimental_onToolCallFinish" | "onStepEnd" | "onStepFinish"
>

/** The callbacks among `options` that see failures of tools; to be spread behind them. */
export const withOriginals = (options: object): Callbacks => {
  const callbacks: Callbacks = options
  const onToolExecutionEnd = callbacks.onToolExecutionEnd ?? callbacks.experimental_onToolCallFinish
  const onStepEnd = callbacks.onStepEnd ?? callbacks.onStepFinish
  return {
    ...onToolExecutionEnd === undefined ? {} : {
      onToolExecutionEnd: (event) => {
        const { toolOutput } = event
        return onToolExecutionEnd(
          toolOutput.type === "tool-error"
            ? { ...event, toolOutput: { ...toolOutput, error: originalOf(toolOutput.error) } }
            : event
        )
      }
    },
    onStepEnd: (step) => {
      restoreParts(step.content)
      return onStepEnd?.(step)
    }
  }
}
