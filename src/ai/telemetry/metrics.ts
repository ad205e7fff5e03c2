/**
 * The metrics of calls of the AI SDK, and how to make one of their series.
 *
 * A metric remembers one set of attributes: those of the update before. `Metric.withAttributes` with another set makes it
 * merge and write them again, which costs ten times as much as the update itself. So a series that is updated often is a
 * metric of its own, under the same name.
 */
import { Metric } from "effect"

type Attributes = Readonly<Record<string, string>>

/** Seconds, doubling: from a cached answer to a long agent run. */
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84]

const counter = (id: string, description: string) => (attributes?: Attributes) =>
  Metric.counter(id, { description, incremental: true, attributes })

const durations = (id: string, description: string) => (attributes?: Attributes) =>
  Metric.histogram(id, { description, boundaries: seconds, attributes })

export const series = {
  calls: counter("chamvi_ai_calls", "Calls of the AI SDK, by function, model and outcome"),
  duration: durations("chamvi_ai_call_duration_seconds", "How long calls of the AI SDK took, in seconds"),
  toolExecutions: counter("chamvi_ai_tool_executions", "Executions of tools, by tool and outcome"),
  toolDuration: durations("chamvi_ai_tool_duration_seconds", "How long executions of tools took, in seconds"),
  tokens: counter("chamvi_ai_tokens", "Tokens, as providers reported them, by model and type")
} as const

export const metrics = {
  /** Counts calls that ended, by `function`, `model` and `outcome` (`success`, `failure`, `interrupted`). */
  calls: series.calls(),
  /** How long calls took, in seconds, by the same attributes. */
  duration: series.duration(),
  /** Counts executions of tools of every kind, by `tool` and `outcome` (`success`, `failure`). */
  toolExecutions: series.toolExecutions(),
  /** How long executions of tools took, in seconds, by `tool`. */
  toolDuration: series.toolDuration(),
  /** Counts tokens that providers reported, by `model` and `type` (`input`, `output`). */
  tokens: series.tokens()
} as const
