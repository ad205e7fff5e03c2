/**
 * What can be seen of runs from outside.
 */
import { Clock, Context, Effect, Metric, Tracer } from "effect"
import { remembered } from "../ai/telemetry/count.ts"
import { isTraced } from "../ai/telemetry/observe.ts"
import type { RunRow, RunStatus } from "./RunIndex.ts"

/** Seconds, four times as much each: from a place that is free to one that takes hours. */
const seconds = [0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84, 655.36, 2621.44, 10_485.76]

type Attributes = Readonly<Record<string, string>>

const counter = (id: string, description: string) => (attributes?: Attributes) =>
  Metric.counter(id, { description, incremental: true, attributes })

// a metric remembers one set of attributes: each series that is updated is one of its own, under the same name
const series = {
  started: counter("chamvi_runs_started", "Runs that were started, by agent"),
  ended: counter("chamvi_runs_ended", "Runs that came to an end, by agent and status"),
  executing: (attributes?: Attributes) =>
    Metric.gauge("chamvi_runs_executing", { description: "Runs that execute now, by agent", attributes }),
  waiting: (attributes?: Attributes) =>
    Metric.histogram("chamvi_run_waiting_seconds", {
      description: "How long runs waited for a place among those that execute, in seconds, by agent",
      boundaries: seconds,
      attributes
    }),
  steps: counter("chamvi_run_steps", "Steps whose model call was made, by agent"),
  retries: counter("chamvi_run_retries", "What was tried again, by agent and what it is"),
  activities: counter("chamvi_run_activities", "Calls that runs came by, by agent, kind, and where the answer is from")
} as const

export const metrics = {
  /** Counts runs that were started, by `agent`. */
  started: series.started(),
  /** Counts ends of runs, by `agent` and `status` (`completed`, `failed`, `cancelled`); one that is retried may end again. */
  ended: series.ended(),
  /** How many runs execute in this process now, by `agent`. Those that wait or sleep do not. */
  executing: series.executing(),
  /** How long runs waited for a place among those that execute, in seconds, by `agent`. */
  waiting: series.waiting(),
  /** Counts steps whose model call was made, by `agent`; a replay makes none. */
  steps: series.steps(),
  /** Counts what was tried again, by `agent` and `of` (`run`, `model`, and `tool`: after a sleep). */
  retries: series.retries(),
  /** Counts calls, by `agent`, `kind` (`model`, `tool`, `rules`) and `from` (`execution`, or `storage`: a replay). */
  activities: series.activities()
} as const

export type ActivityKind = "model" | "tool" | "rules"

const ofAgent = remembered((agent: string) => ({
  started: series.started({ agent }),
  executing: series.executing({ agent }),
  waiting: series.waiting({ agent }),
  steps: series.steps({ agent }),
  ended: remembered((status: RunStatus) => series.ended({ agent, status })),
  retries: remembered((of: "run" | "model" | "tool") => series.retries({ agent, of })),
  activities: remembered((kind: ActivityKind) => ({
    execution: series.activities({ agent, kind, from: "execution" }),
    storage: series.activities({ agent, kind, from: "storage" })
  }))
}))

export const countStarted = (agent: string): Effect.Effect<void> => Metric.update(ofAgent(agent).started, 1)

export const countEnded = (agent: string, status: RunStatus): Effect.Effect<void> =>
  Metric.update(ofAgent(agent).ended(status), 1)

export const countRetry = (agent: string, of: "run" | "model" | "tool"): Effect.Effect<void> =>
  Metric.update(ofAgent(agent).retries(of), 1)

export const countActivity = (
  agent: string,
  kind: ActivityKind,
  from: "execution" | "storage"
): Effect.Effect<void> => {
  const { activities, steps } = ofAgent(agent)
  const counted = Metric.update(activities(kind)[from], 1)
  return kind === "model" && from === "execution" ? Effect.andThen(counted, Metric.update(steps, 1)) : counted
}

/** Measures how long `enter` keeps `effect` waiting, and counts it while it executes. */
export const measured = <A, E, R>(
  agent: string,
  effect: Effect.Effect<A, E, R>,
  enter: (effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (since) => {
    const { executing, waiting } = ofAgent(agent)
    return enter(Effect.acquireUseRelease(
      Effect.andThen(
        Metric.modify(executing, 1),
        Effect.flatMap(Clock.currentTimeMillis, (now) => Metric.update(waiting, (now - since) / 1000))
      ),
      () => effect,
      () => Metric.modify(executing, -1)
    ))
  })

/** The span that a run was started in, as its row keeps it. */
export interface RunTrace {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

export const currentTrace: Effect.Effect<RunTrace | undefined> = Effect.withFiber((fiber) => {
  const span = isTraced(fiber) ? Context.getOrUndefined(fiber.context, Tracer.ParentSpan) : undefined
  return Effect.succeed(span && { traceId: span.traceId, spanId: span.spanId, sampled: span.sampled })
})

/** Makes `pass` a span below the one that its run was started in, whichever process that was. */
export const traced = <A, E, R>({ agent, retries, runId, trace }: RunRow, pass: Effect.Effect<A, E, R>) =>
  Effect.withFiber<A, E, R>((fiber) =>
    isTraced(fiber)
      ? Effect.withSpan(pass, `run ${agent}`, {
        kind: "consumer",
        ...trace === undefined ? { root: true } : { parent: Tracer.externalSpan(trace) },
        attributes: { "chamvi.run.id": runId, "gen_ai.agent.name": agent, "chamvi.run.retries": retries }
      }) as Effect.Effect<A, E, R>
      : pass
  )

/** Says in the span of a pass how it ended. */
export const annotateEnd = (status: RunStatus | "parked", errorType?: string): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    isTraced(fiber)
      ? Effect.annotateCurrentSpan({
        "chamvi.run.status": status,
        ...errorType === undefined ? {} : { "error.type": errorType }
      })
      : Effect.void
  )
