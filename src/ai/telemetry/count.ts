/**
 * Updates the metrics of calls. A metric with attributes costs three times as much to make as to update, so it is made
 * once.
 */
import { type Context, Metric } from "effect"
import { metrics } from "./metrics.ts"

/** Names come from a program's code, and a few from models; whoever makes them up on the way shall not fill the memory. */
const most = 10_000

const prepared = <Input, State>(metric: Metric.Metric<Input, State>, ...names: ReadonlyArray<string>) => {
  const known = new Map<string, Metric.Metric<Input, State>>()
  return (...values: ReadonlyArray<string>): Metric.Metric<Input, State> => {
    const id = values.join("\0")
    let made = known.get(id)
    if (made === undefined) {
      made = Metric.withAttributes(metric, Object.fromEntries(names.map((name, index) => [name, values[index]!])))
      if (known.size < most) known.set(id, made)
    }
    return made
  }
}

const calls = prepared(metrics.calls, "function", "model", "outcome")
const duration = prepared(metrics.duration, "function", "model", "outcome")
const toolExecutions = prepared(metrics.toolExecutions, "tool", "outcome")
const toolDuration = prepared(metrics.toolDuration, "tool")
const tokens = prepared(metrics.tokens, "model", "type")

export const countCall = (
  context: Context.Context<never>,
  name: string,
  model: string,
  outcome: "success" | "failure" | "interrupted",
  seconds: number
): void => {
  calls(name, model, outcome).updateUnsafe(1, context)
  duration(name, model, outcome).updateUnsafe(seconds, context)
}

export const countTool = (context: Context.Context<never>, tool: string, succeeded: boolean, millis: number): void => {
  toolExecutions(tool, succeeded ? "success" : "failure").updateUnsafe(1, context)
  toolDuration(tool).updateUnsafe(millis / 1000, context)
}

export const countTokens = (
  context: Context.Context<never>,
  model: string,
  input: number | undefined,
  output: number | undefined
): void => {
  if (input !== undefined) tokens(model, "input").updateUnsafe(input, context)
  if (output !== undefined) tokens(model, "output").updateUnsafe(output, context)
}
