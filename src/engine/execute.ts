/**
 * One execution of a run in this process: from the start, through what is stored, to its end or its suspension.
 */
import type { ModelMessage, OutputInterface } from "ai"
import { Cause, Clock, Context, Data, Effect, Exit, Option } from "effect"
import { KeyValueStore } from "effect/persistence"
import { Ai } from "../Ai.ts"
import { type CallPlace, Loop } from "../ai/journal.ts"
import { AiError } from "../AiError.ts"
import { EffectSettings, override } from "../EffectSettings.ts"
import { EffectStore, type IEffectStore } from "../EffectStore.ts"
import { hookAnswer } from "../internal/promiseBridge.ts"
import { ToolContext } from "../ToolContext.ts"
import type { RegisteredAgent } from "./agentTypes.ts"
import { allowing } from "./allowed.ts"
import * as Blobs from "./blobs.ts"
import type { RunFailure, RunTrouble } from "./errors.ts"
import type { Gate } from "./Gate.ts"
import { approvalSignal, inWords, make as makeJournal, retrySignal, type Trouble } from "./journal.ts"
import { type LoopResult, maxRetriesOf, runLoop } from "./loop.ts"
import type { Execution, Start, Timer } from "./port.ts"
import { readInput } from "./runInput.ts"
import { isOver, type RunIndex, type RunRow, type RunStatus } from "./RunIndex.ts"
import type { RunParts } from "./RunParts.ts"
import { make as makeWriter, takeOver } from "./StreamWriter.ts"
import { annotateEnd, measured, traced } from "./telemetry.ts"
import { toolsOfRun } from "./tools.ts"
import { make as makeValues, untilStored } from "./values.ts"

/** What the runs of an engine stand on. */
export interface Ground {
  readonly index: RunIndex
  readonly parts: RunParts
  readonly store: IEffectStore
  readonly keyValues: KeyValueStore.KeyValueStore
  readonly gate: Gate
  readonly maxRowSize: number
  /** Milliseconds for which a call bears trouble in this process before the run sleeps. */
  readonly patience: number
}

/** What is kept of a completed run. */
export interface Outcome {
  readonly text: string
  readonly finishReason: LoopResult["finishReason"]
  readonly usage: LoopResult["totalUsage"]
  readonly steps: number
  readonly responseMessages: ReadonlyArray<ModelMessage>
  /** What reading the output again takes. */
  readonly last: {
    readonly usage: LoopResult["totalUsage"]
    readonly response: { readonly id: string; readonly timestamp: Date; readonly modelId: string }
  }
}

/** How a pass through the loop has ended. */
type Passed =
  | { readonly _tag: "Over" }
  | { readonly _tag: "Failed"; readonly generation: number }
  | {
    readonly _tag: "Parked"
    readonly interruption: Cause.Cause<never> | undefined
    readonly awaited: Awaited
  }

/** What a parked run waits for. */
interface Awaited {
  readonly approvals: Set<string>
  readonly timers: Array<Timer>
}

/** The run of one agent, as the port wants it. */
export const execute =
  (ground: Ground, agent: RegisteredAgent) => (start: Start, execution: Execution): Effect.Effect<void> => {
    const { gate, index, parts } = ground
    const update = (change: (row: RunRow, now: number) => Partial<RunRow>) =>
      Effect.flatMap(
        Clock.currentTimeMillis,
        (now) =>
          untilStored(index.update(start.runId, (row) =>
            // what is over stays so, whatever a process still says that has lost the run to another one
            row.incarnation === start.incarnation && !isOver(row)
              ? { ...row, updatedAt: now, ...change(row, now) }
              : undefined))
      )
    /** Answers the row: a run that was told to be cancelled before it ended is cancelled, whatever it came to meanwhile. */
    const ends = (status: RunStatus, change: Partial<RunRow> = {}) =>
      update((row, now) => ({
        approvals: [],
        troubles: [],
        ...row.cancelling ? {} : change,
        status: row.cancelling ? "cancelled" : status,
        endedAt: now
      }))
    const current = Effect.map(
      untilStored(index.get(start.runId)),
      (row) => row?.incarnation === start.incarnation ? row : undefined
    )

    /** Whether there is anything to do. To be cancelled, a run needs no turn. */
    const goesOn = Effect.flatMap(current, (row) =>
      row === undefined || isOver(row)
        ? Effect.succeed(false)
        : !row.cancelling
        ? Effect.succeed(true)
        : untilStored(takeOver(parts, start)).pipe(
          // whoever thaws now adds nothing to the stream of a run that is over
          Effect.andThen(ends("cancelled")),
          Effect.as(false)
        ))

    const pass = Effect.gen(function*(): Effect.fn.Return<Passed> {
      const row = yield* update((row) =>
        row.cancelling || row.status === "failed" ? {} : { status: "running", failure: undefined }
      )
      if (row === undefined || !(yield* goesOn)) return over
      // what was sent to it has woken it, such as an answer for later: a failed run goes on with a retry only
      if (row.status === "failed") return { _tag: "Failed", generation: row.retries }
      return yield* traced(row, Effect.annotateLogs(passOf(row), { run: row.runId, agent: row.agent }))
    })

    const passOf = Effect.fnUntraced(function*(row: RunRow): Effect.fn.Return<Passed> {
      const context = yield* Effect.context()
      const loop = new Loop(context)
      const awaited: Awaited = { approvals: new Set(), timers: [] }
      const exit = yield* Effect.exit(
        Effect.scoped(attempt(ground, agent, start, execution, row, loop, update, current, awaited))
      )
      if (Exit.isSuccess(exit)) {
        if (Option.isNone(exit.value)) {
          yield* annotateEnd("parked")
          return { _tag: "Parked", interruption: loop.interruption, awaited }
        }
        const outcome = exit.value.value
        yield* annotateEnd("completed")
        const ended = yield* ends("completed", { outcome })
        if (ended?.status === "cancelled") yield* annotateEnd("cancelled")
        return over
      }
      const failure = failureOf(exit.cause, loop.step)
      const again = isOutputMissing(Cause.squash(exit.cause)) ? loop.step : null
      yield* annotateEnd("failed", failure.name)
      // what it says may hold what nobody wants in a log
      yield* Effect.logWarning(
        `Run ${start.runId} of agent ${start.agent} failed in step ${failure.step} (${failure.name}). Engine.get tells with `
          + `what, and Engine.retry goes on from its last good step.`
      )
      const ended = yield* ends("failed", { failure, again })
      if (ended?.status === "failed") return { _tag: "Failed", generation: row.retries }
      if (ended?.status === "cancelled") yield* annotateEnd("cancelled")
      return over
    })

    const wait = (passed: Exclude<Passed, { readonly _tag: "Over" }>): Effect.Effect<void> =>
      passed._tag === "Failed"
        ? execution.wait([retrySignal(passed.generation)])
        : Effect.flatMap(
          update((row) => row.approvals.length > 0 && row.status === "running" ? { status: "waiting" } : {}),
          (row) =>
            row?.cancelling === true
              ? Effect.void
              : passed.interruption !== undefined
              // as it came: one that is to go on in another process must not be stored as suspended, for nobody would wake it
              ? Effect.failCause(passed.interruption)
              : execution.wait([...passed.awaited.approvals].map(approvalSignal), passed.awaited.timers)
        )

    const whole: Effect.Effect<void> = Effect.flatMap(goesOn, (goesOn) =>
      goesOn
        ? Effect.flatMap(
          measured(
            start.agent,
            impatient(ground.patience, pass),
            (pass) => gate.within(start.agent, pass, execution.lost)
          ),
          (passed) => passed._tag === "Over" ? Effect.void : Effect.andThen(wait(passed), whole)
        )
        : Effect.void)
    return whole
  }

/** Who has to wait for somebody else's key for longer sleeps, and holds no place meanwhile. */
const impatient = <A>(patience: number, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.flatMap(EffectSettings.Current, (settings) =>
    Effect.provideService(
      effect,
      EffectSettings.Current,
      override(settings, { waitFor: Math.min(settings.waitFor, patience) })
    ))

const over = { _tag: "Over" } as const

type Update = (change: (row: RunRow, now: number) => Partial<RunRow>) => Effect.Effect<RunRow | undefined>

/** The loop with all that belongs to the run: its context, its tools, its journal. Answers the outcome as text. */
const attempt = Effect.fnUntraced(function*(
  ground: Ground,
  agent: RegisteredAgent,
  start: Start,
  execution: Execution,
  row: RunRow,
  loop: Loop,
  update: Update,
  current: Effect.Effect<RunRow | undefined>,
  awaited: Awaited
) {
  const { definition } = agent
  const stop = new AbortController()
  yield* Effect.addFinalizer((exit) =>
    Effect.sync(() => Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? stop.abort() : undefined)
  )
  const values = makeValues(Blobs.make(ground.keyValues, start.runId), ground.maxRowSize)
  const { prompt, trigger } = yield* readInput(definition, yield* values.read(start.input))
  const ctx = yield* contextOf(ground, { runId: start.runId, agent: start.agent, trigger, signal: stop.signal })
  const context = Context.mergeAll(
    yield* Effect.context(),
    agent.context,
    Context.make(ToolContext, ctx),
    Context.make(EffectStore, ground.store)
  )
  const instructions = yield* Effect.provideContext(answer("instructions", definition.instructions, ctx), context)
  const tools = yield* Effect.provideContext(toolsOfRun(agent, ctx), context)
  const settled = (id: string) =>
    update((row) => ({ approvals: row.approvals.filter((approval) => approval.id !== id) }))
  const journal = makeJournal({
    cancelling: Effect.map(current, (row) => row?.cancelling === true),
    agent: start.agent,
    execution,
    values,
    generation: row.retries,
    redo: row.redo,
    maxRetries: maxRetriesOf(definition.options, Context.get(agent.context, Ai).defaults),
    requested: (id, place, input) => {
      awaited.approvals.add(id)
      return update((row) => ({ approvals: added(row, id, place, input) }))
    },
    answered: (id) => row.approvals.some((approval) => approval.id === id) ? settled(id) : Effect.void,
    attempts: row.attempts,
    patience: ground.patience,
    troubled: (trouble) => {
      awaited.timers.push(trouble.timer)
      return row.attempts[trouble.activity] === trouble.attempt
        ? Effect.void
        : update((row, now) => ({
          attempts: { ...row.attempts, [trouble.activity]: trouble.attempt },
          troubles: [...row.troubles.filter(isNot(trouble.place)), seen(trouble, now)]
        }))
    },
    recovered: (place) =>
      row.troubles.every(isNot(place))
        ? Effect.void
        : update((row) => ({ troubles: row.troubles.filter(isNot(place)) }))
  })
  const publisher = yield* makeWriter({ parts: ground.parts, log: start, values })
  const result = yield* Effect.provideContext(
    runLoop({
      name: definition.name,
      options: {
        ...definition.options,
        ...prompt,
        ...instructions === undefined ? {} : { instructions }
      },
      tools,
      allow: definition.allow && allowing(definition.allow, context),
      output: definition.output,
      journal,
      publisher,
      stream: definition.stream,
      loop,
      context
    }),
    context
  ).pipe(Effect.tapCause((cause) => Cause.hasInterrupts(cause) ? Effect.void : publisher.flush))
  // who reads that the run rests finds all of its parts
  yield* publisher.flush
  if (Option.isNone(result)) return Option.none<string>()
  return Option.some(yield* values.write("outcome", yield* outcomeOf(result.value, definition.output)))
})

const contextOf = (ground: Ground, run: Parameters<typeof ToolContext.make>[0]) =>
  Effect.provideService(ToolContext.make(run), KeyValueStore.KeyValueStore, ground.keyValues)

/** An option that may be a function of the run's context. */
const answer = (name: string, option: unknown, ctx: ToolContext["Service"]): Effect.Effect<unknown, unknown> =>
  typeof option === "function"
    ? hookAnswer(name, () => (option as (ctx: ToolContext["Service"]) => unknown)(ctx))
    : Effect.succeed(option)

const added = (row: RunRow, id: string, { step, toolCallId, toolName }: CallPlace, input: unknown) =>
  row.approvals.some((approval) => approval.id === id)
    ? row.approvals
    : [...row.approvals, { id, step, toolCallId, toolName, input: JSON.stringify(input) ?? "null" }]

const isNot = (place: CallPlace) => ({ step, toolCallId }: RunTrouble): boolean =>
  step !== place.step || toolCallId !== place.toolCallId

const seen = (
  { attempt, message, name, place: { step, toolCallId, toolName }, timer }: Trouble,
  now: number
): RunTrouble => ({ step, toolCallId, toolName, name, message, attempts: attempt, nextAt: now + timer.delay })

/** The loop has ended with calls of tools. Their step is good: to make it again would make its calls anew. */
class OutputNotReached extends Data.TaggedError("NoOutputGeneratedError")<{ readonly message: string }> {
  constructor(steps: number) {
    super({
      message:
        `stopWhen ended the loop after ${steps} ${steps === 1 ? "step" : "steps"}, with calls of tools and before an `
        + `output. Let it go on for longer, and retry the run`
    })
  }
}

/** Reading the output throws where the model ended without one; an agent that names none has none to read. */
const checkOutput = (result: LoopResult): Effect.Effect<unknown, AiError | OutputNotReached> =>
  // what a provider executes is done within its answer, and an output may stand beside it
  result.finalStep.toolCalls.some(({ providerExecuted }) => providerExecuted !== true)
    ? Effect.fail(new OutputNotReached(result.steps.length))
    : Effect.try({ try: () => result.output, catch: (error) => AiError.from(error) })

const outcomeOf = (result: LoopResult, output: OutputInterface | undefined): Effect.Effect<Outcome, unknown> =>
  (output === undefined ? Effect.void : checkOutput(result)).pipe(Effect.as({
    text: result.text,
    finishReason: result.finishReason,
    usage: result.totalUsage,
    steps: result.steps.length,
    responseMessages: result.responseMessages,
    last: {
      usage: result.finalStep.usage,
      response: {
        id: result.finalStep.response.id,
        timestamp: result.finalStep.response.timestamp,
        modelId: result.finalStep.response.modelId
      }
    }
  }))

/** The model has answered, and its answer is no output: to ask for it again is all that a retry can do. */
const isOutputMissing = (failure: unknown): boolean =>
  failure instanceof AiError
  && (failure.reason === "NoObjectGeneratedError" || failure.reason === "NoOutputGeneratedError")

const failureOf = (cause: Cause.Cause<unknown>, step: number): RunFailure => ({
  ...inWords(Cause.squash(cause)),
  step: Math.max(step, 0)
})
