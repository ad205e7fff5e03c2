/**
 * Updates the metrics of calls, each series made once.
 */
import type { Context } from "effect"
import { series } from "./metrics.ts"

/** Makes each thing once. Names come from a program's code, and a few from models; whoever makes them up on the way shall not fill the memory. */
const most = 10_000

export const remembered = <K extends string, V>(make: (name: K) => V) => {
  const known = new Map<K, V>()
  return (name: K): V => {
    let made = known.get(name)
    if (made === undefined) {
      made = make(name)
      if (known.size < most) known.set(name, made)
    }
    return made
  }
}

type CallOutcome = "success" | "failure" | "interrupted"

const callsOf = remembered((name: string) =>
  remembered((model: string) =>
    remembered((outcome: CallOutcome) => {
      const attributes = { function: name, model, outcome }
      return {
        calls: series.calls(attributes),
        duration: series.duration(attributes)
      }
    })
  )
)

const toolOf = remembered((tool: string) => ({
  success: series.toolExecutions({ tool, outcome: "success" }),
  failure: series.toolExecutions({ tool, outcome: "failure" }),
  duration: series.toolDuration({ tool })
}))

const tokensOf = remembered((model: string) => ({
  input: series.tokens({ model, type: "input" }),
  output: series.tokens({ model, type: "output" })
}))

export const countCall = (
  context: Context.Context<never>,
  name: string,
  model: string,
  outcome: CallOutcome,
  seconds: number
): void => {
  const { calls, duration } = callsOf(name)(model)(outcome)
  calls.updateUnsafe(1, context)
  duration.updateUnsafe(seconds, context)
}

export const countTool = (context: Context.Context<never>, tool: string, succeeded: boolean, millis: number): void => {
  const { duration, failure, success } = toolOf(tool)
  const executions = succeeded ? success : failure
  executions.updateUnsafe(1, context)
  duration.updateUnsafe(millis / 1000, context)
}

export const countTokens = (
  context: Context.Context<never>,
  model: string,
  input: number | undefined,
  output: number | undefined
): void => {
  const tokens = tokensOf(model)
  if (input !== undefined) tokens.input.updateUnsafe(input, context)
  if (output !== undefined) tokens.output.updateUnsafe(output, context)
}
