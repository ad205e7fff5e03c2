/**
 * The metrics of calls of the AI SDK.
 */
import { Metric } from "effect"

/** Seconds, doubling: from a cached answer to a long agent run. */
const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84]

export const metrics = {
  /** Counts calls that ended, by `function`, `model` and `outcome` (`success`, `failure`, `interrupted`). */
  calls: Metric.counter("chamvi_ai_calls", {
    description: "Calls of the AI SDK, by function, model and outcome",
    incremental: true
  }),
  /** How long calls took, in seconds, by the same attributes. */
  duration: Metric.histogram("chamvi_ai_call_duration_seconds", {
    description: "How long calls of the AI SDK took, in seconds",
    boundaries: seconds
  }),
  /** Counts executions of tools of every kind, by `tool` and `outcome` (`success`, `failure`). */
  toolExecutions: Metric.counter("chamvi_ai_tool_executions", {
    description: "Executions of tools, by tool and outcome",
    incremental: true
  }),
  /** How long executions of tools took, in seconds, by `tool`. */
  toolDuration: Metric.histogram("chamvi_ai_tool_duration_seconds", {
    description: "How long executions of tools took, in seconds",
    boundaries: seconds
  }),
  /** Counts tokens that providers reported, by `model` and `type` (`input`, `output`). */
  tokens: Metric.counter("chamvi_ai_tokens", {
    description: "Tokens, as providers reported them, by model and type",
    incremental: true
  })
} as const
