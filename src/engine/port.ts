/**
 * What the engine needs of durable execution, and the only place that knows of `effect/workflow`, whose modules are marked
 * unstable. (`engineSql/executions.ts` is its counterpart for `effect/cluster`.)
 */
import { Context, Duration, Effect, Exit, Layer, Option, Predicate, Schema, type Scope } from "effect"
import { Activity, DurableClock, DurableDeferred, Workflow, WorkflowEngine } from "effect/workflow"
import * as Bodies from "./bodies.ts"
import { EngineStoreError } from "./errors.ts"
import { untilStored } from "./values.ts"

/** What an execution starts with. Everything else of a run hangs on its id. */
export interface Start {
  readonly agent: string
  readonly runId: string
  /** Sets the run apart from one of the same id that was pruned. */
  readonly incarnation: string
  /** Trigger and prompt, as `StoredValue` writes them. */
  readonly input: string
}

/** It goes off once, and survives the process. */
export interface Timer {
  readonly name: string
  /** Milliseconds. */
  readonly delay: number
}

/** One execution, seen from inside. */
export interface Execution {
  /**
   * The stored answer of the activity, or that of `body`, which is then stored. `body` must answer: what it dies of is stored
   * as well. An activity that was cut off runs again.
   */
  readonly activity: (name: string, attempt: number, body: Effect.Effect<string>) => Effect.Effect<string>
  /** What was sent to the signal first, if anything was. */
  readonly received: (signal: string) => Effect.Effect<Option.Option<string>>
  /** Whether the timer was set, and has gone off. */
  readonly wentOff: (timer: string) => Effect.Effect<boolean>
  /**
   * Goes on where one of the signals has come, or one of the timers has gone off; else the execution is suspended, and replayed
   * when one does. A timer that was set before is not set again.
   */
  readonly wait: (signals: ReadonlyArray<string>, timers?: ReadonlyArray<Timer>) => Effect.Effect<void>
  /** Ends as the activities do once the execution is to go on in another process; until then it stays pending. */
  readonly lost: Effect.Effect<never>
}

/** The executions of this process's runs, seen from outside. */
export class Executions extends Context.Service<Executions, {
  /** Runs the executions of an agent in this process, for as long as the scope is open. */
  readonly register: (
    agent: string,
    run: (start: Start, execution: Execution) => Effect.Effect<void>
  ) => Effect.Effect<void, never, Scope.Scope>
  /** Starts an execution, unless it has been started. It does not wait for it. */
  readonly start: (start: Start) => Effect.Effect<void, EngineStoreError>
  /** Replays a suspended execution. */
  readonly resume: (execution: ExecutionId) => Effect.Effect<void, EngineStoreError>
  /** Sends to a signal, whether the execution waits for it yet or not. The first answer counts. */
  readonly send: (execution: ExecutionId, signal: string, value: string) => Effect.Effect<void, EngineStoreError>
  /** Interrupts what the execution does, and replays it. */
  readonly interrupt: (execution: ExecutionId) => Effect.Effect<void, EngineStoreError>
  /** Forgets an execution that does nothing any more. */
  readonly forget: (execution: ExecutionId) => Effect.Effect<void, EngineStoreError>
}>()("chamvi-effect/engine/port/Executions") {}

export type ExecutionId = Pick<Start, "agent" | "runId" | "incarnation">

const tagOf = (agent: string): string => `chamvi/agent/${agent}`

const makeWorkflow = (agent: string) =>
  Workflow.make(tagOf(agent), {
    payload: { agent: Schema.String, runId: Schema.String, incarnation: Schema.String, input: Schema.String },
    idempotencyKey: ({ incarnation, runId }) => `${incarnation}/${runId}`
  })

type RunWorkflow = ReturnType<typeof makeWorkflow>

const signalOf = (name: string) => DurableDeferred.make(name, { success: Schema.String })

const clockOf = ({ delay, name }: Timer) => DurableClock.make({ name, duration: Duration.millis(delay) })

/** Where the storage of executions cannot be reached, its modules die of an error of theirs. */
const storeFailure = <A, R>(
  operation: string,
  effect: Effect.Effect<A, never, R>
): Effect.Effect<A, EngineStoreError, R> =>
  Effect.catchDefect(effect, (defect) =>
    Predicate.isTagged(defect, "PersistenceError")
      ? Effect.fail(
        new EngineStoreError({
          operation,
          problem: Predicate.hasProperty(defect, "cause") && defect.cause instanceof Error
            ? defect.cause.message
            : "its storage cannot be reached",
          cause: defect
        })
      )
      : Effect.die(defect))

/** What an execution says to its storage can be said again: it is done once. */
const untilReached = <A, R>(effect: Effect.Effect<A, never, R>): Effect.Effect<A, never, R> =>
  untilStored(storeFailure("go on with a run", effect))

/** Where an execution is kept, for those who have to remove it. */
export interface Kept {
  readonly workflow: Workflow.Any
  readonly executionId: string
}

/** Where executions are kept. */
export interface Storage {
  /** Removes what is kept of one. */
  readonly forget: (kept: Kept) => Effect.Effect<void>
  /** Succeeds where the execution belongs to this process; else ends it without an answer, for its owner to go on with. */
  readonly owned: (kept: Kept) => Effect.Effect<void>
}

const executionOf = (storage: Storage, bodies: Bodies.Bodies) =>
  Effect.map(
    Effect.context<WorkflowEngine.WorkflowEngine | WorkflowEngine.WorkflowInstance>(),
    (context): Execution => {
      const engine = Context.get(context, WorkflowEngine.WorkflowEngine)
      const instance = Context.get(context, WorkflowEngine.WorkflowInstance)
      // the fiber that asks may belong to a Promise's world, and know nothing of the workflow
      const inside = <A, E>(
        effect: Effect.Effect<A, E, WorkflowEngine.WorkflowEngine | WorkflowEngine.WorkflowInstance>
      ): Effect.Effect<A, E> =>
        effect.pipe(
          Effect.provideService(WorkflowEngine.WorkflowEngine, engine),
          Effect.provideService(WorkflowEngine.WorkflowInstance, instance)
        )
      const owned = storage.owned({ workflow: instance.workflow, executionId: instance.executionId })
      const hasCome = (deferred: DurableDeferred.DurableDeferred<typeof Schema.String | typeof Schema.Void>) =>
        Effect.map(inside(untilReached(engine.deferredResult(deferred))), Option.isSome)
      return {
        activity: (name, attempt, body) =>
          bodies.asked(
            `${instance.executionId}/${name}/${attempt}`,
            body,
            (execute) =>
              inside(untilReached(Effect.provideService(
                Activity.make({ name, success: Schema.String, execute }),
                Activity.CurrentAttempt,
                attempt
              ))),
            owned
          ),
        received: (signal) =>
          Effect.map(
            inside(untilReached(engine.deferredResult(signalOf(signal)))),
            Option.flatMap((exit) => Exit.isSuccess(exit) ? Option.some(exit.value) : Option.none())
          ),
        wentOff: (timer) => hasCome(clockOf({ name: timer, delay: 0 }).deferred),
        wait: (signals, timers = []) => {
          const clocks = timers.map(clockOf)
          const deferreds = [...signals.map(signalOf), ...clocks.map(({ deferred }) => deferred)]
          const set = Effect.forEach(
            clocks,
            (clock) =>
              untilReached(engine.scheduleClock(instance.workflow, { executionId: instance.executionId, clock })),
            { discard: true }
          )
          const awaited = instance.awaitedDeferreds
          // who is registered before it looks misses nothing: what comes later wakes the execution once it has been suspended
          const register = Effect.sync(() =>
            deferreds.forEach(({ name }) => awaited.set(name, (awaited.get(name) ?? 0) + 1))
          )
          // and who goes on must not be cut off by it
          const forget = Effect.sync(() => deferreds.forEach(({ name }) => awaited.delete(name)))
          return Effect.andThen(set, register).pipe(
            Effect.andThen(Effect.forEach(deferreds, hasCome)),
            Effect.flatMap((come) => come.includes(true) ? forget : Workflow.suspend(instance))
          )
        },
        lost: Effect.forever(Effect.andThen(Effect.sleep("1 second"), owned))
      }
    }
  )

/** Executions over any workflow engine. */
export const make = (storage: Storage) =>
  Effect.gen(function*() {
    const engine = yield* WorkflowEngine.WorkflowEngine
    const workflows = new Map<string, RunWorkflow>()
    const bodies = Bodies.make()
    const workflowOf = (agent: string): RunWorkflow => {
      const known = workflows.get(agent) ?? makeWorkflow(agent)
      workflows.set(agent, known)
      return known
    }
    const idOf = (execution: ExecutionId) => workflowOf(execution.agent).executionId({ ...execution, input: "" })
    const withId = (
      execution: ExecutionId,
      use: (workflow: RunWorkflow, executionId: string) => Effect.Effect<void>
    ) =>
      storeFailure(
        `reach the execution of run ${execution.runId}`,
        Effect.flatMap(idOf(execution), (executionId) => use(workflowOf(execution.agent), executionId))
      )
    return Executions.of({
      // what registers is what the executions find in their context
      register: (agent, run) =>
        Effect.provideService(
          engine.register(
            workflowOf(agent),
            (start) => Effect.flatMap(executionOf(storage, bodies), (execution) => run(start, execution))
          ),
          WorkflowEngine.WorkflowEngine,
          engine
        ),
      start: (start) =>
        withId(start, (workflow, executionId) =>
          Effect.asVoid(Effect.scoped(engine.execute(workflow, { executionId, payload: start, discard: true })))),
      resume: (execution) =>
        withId(execution, engine.resume),
      send: (execution, signal, value) =>
        withId(execution, (workflow, executionId) =>
          engine.deferredDone(signalOf(signal), {
            workflowName: workflow._tag,
            executionId,
            deferredName: signal,
            exit: Exit.succeed(value)
          })),
      interrupt: (execution) =>
        withId(execution, engine.interruptUnsafe),
      forget: (execution) => withId(execution, (workflow, executionId) => storage.forget({ workflow, executionId }))
    })
  })

/** Executions in this process's memory. */
export const layerMemory: Layer.Layer<Executions> = Layer.effect(
  Executions,
  make({ forget: () => Effect.void, owned: () => Effect.void })
).pipe(Layer.provide(WorkflowEngine.layerMemory))
