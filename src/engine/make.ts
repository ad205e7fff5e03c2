/**
 * The engine over its storage and its executions.
 */
import type { OutputInterface } from "ai"
import { Clock, Context, Duration, Effect, Layer, Result, type Scope, Stream } from "effect"
import { KeyValueStore } from "effect/persistence"
import { randomUUID } from "node:crypto"
import { Ai } from "../Ai.ts"
import { capture } from "../ai/callContext.ts"
import { AiError } from "../AiError.ts"
import { fingerprint } from "../EffectKey.ts"
import { EffectStore } from "../EffectStore.ts"
import * as StoredValue from "../internal/storedValue.ts"
import { runPrefix } from "../toolContext/runKeys.ts"
import { ToolContext } from "../ToolContext.ts"
import { type AgentDefinition, definitions, type RegisteredAgent, type RunInput, type RunResult } from "./agentTypes.ts"
import {
  AgentNotRegisteredError,
  EngineStoreError,
  RunCancelledError,
  RunConflictError,
  RunFailedError,
  RunInputError,
  RunNotFailedError,
  RunNotFoundError,
  RunOfAnotherAgentError,
  RunWaitingError
} from "./errors.ts"
import { execute, type Ground, type Outcome, retrySignal } from "./execute.ts"
import * as Gate from "./Gate.ts"
import type { AnyAgent, IEngine, RunInfo } from "./IEngine.ts"
import { approvalSignal } from "./journal.ts"
import { type ExecutionId, Executions } from "./port.ts"
import { toStored } from "./runInput.ts"
import type { RunFilter, RunIndex, RunRow } from "./RunIndex.ts"
import { madeTools } from "./tools.ts"
import { defaultMaxRowSize, make as makeValues } from "./values.ts"
import { watched } from "./watched.ts"

/**
 * The settings of an engine.
 *
 * @category models
 * @since 0.1.0
 */
export interface EngineOptions {
  /** How many runs this process executes at once; others wait in order of arrival, agents in turn. Default: 50. */
  readonly concurrency?: number | undefined
  /** The largest row that the engine keeps of a run, in bytes. Default: 1 MiB. */
  readonly maxRowSize?: number | undefined
}

export interface MakeOptions extends EngineOptions {
  readonly index: RunIndex
  /** How often to look for changes that other processes made to a run that somebody waits for. */
  readonly pollInterval: Duration.Input | undefined
  /** Whether other processes run agents too, so that one that is not registered here may be registered there. */
  readonly elsewhere?: boolean | undefined
}

/** What an agent's layer does with an engine. */
export interface Internals {
  readonly register: (definition: AgentDefinition) => Effect.Effect<void, never, Scope.Scope>
}

const internals = new WeakMap<IEngine, Internals>()

/** Registers an agent with an engine of this project's making. */
export const register = (engine: IEngine, definition: AgentDefinition): Effect.Effect<void, never, Scope.Scope> =>
  internals.get(engine)?.register(definition)
    ?? Effect.die(
      new TypeError("This Engine was not made by a layer of the library, and no agent can be registered with it.")
    )

export const make = Effect.fnUntraced(function*(options: MakeOptions) {
  const executions = yield* Executions
  const store = yield* EffectStore
  const keyValues = yield* KeyValueStore.KeyValueStore
  const { changed, index } = watched(options.index)
  const ground: Ground = {
    index,
    store,
    keyValues,
    gate: Gate.make(options.concurrency ?? 50),
    maxRowSize: options.maxRowSize ?? defaultMaxRowSize
  }
  /** The agents of this process, and how many layers have registered each. */
  const agents = new Map<string, { readonly definition: AgentDefinition; layers: number }>()

  const startOf = ({ agent, incarnation, input, runId }: RunRow) => ({ agent, incarnation, input, runId })
  const idOf = ({ agent, incarnation, runId }: RunRow): ExecutionId => ({ agent, incarnation, runId })
  const valuesOf = (runId: string) =>
    Effect.map(
      Effect.provideService(ToolContext.make({ runId }), KeyValueStore.KeyValueStore, keyValues),
      ({ artifacts }) => makeValues(artifacts, ground.maxRowSize)
    )

  const rowOf = (runId: string) =>
    Effect.flatMap(
      index.get(runId),
      (row) => row === undefined ? Effect.fail(new RunNotFoundError({ runId })) : Effect.succeed(row)
    )
  const update = (runId: string, change: (row: RunRow, now: number) => Partial<RunRow> | undefined) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.flatMap(
        index.update(runId, (row) => {
          const changed = change(row, now)
          return changed === undefined ? undefined : { ...row, updatedAt: now, ...changed }
        }),
        (row) => row === undefined ? Effect.fail(new RunNotFoundError({ runId })) : Effect.succeed(row)
      ))

  const checkRegistered = ({ name }: AnyAgent) =>
    Effect.suspend(() =>
      options.elsewhere === true || agents.has(name)
        ? Effect.void
        : Effect.fail(new AgentNotRegisteredError({ agent: name }))
    )
  const checkOwner = (agent: AnyAgent, row: RunRow) =>
    row.agent === agent.name
      ? Effect.void
      : Effect.fail(new RunOfAnotherAgentError({ runId: row.runId, agent: agent.name, startedBy: row.agent }))

  /** Makes sure that a row that shall go on does: its process may have died between two writes. */
  const push = (row: RunRow) =>
    Effect.andThen(
      executions.start(startOf(row)),
      row.retries > 0 ? executions.send(idOf(row), retrySignal(row.retries - 1), "") : Effect.void
    )

  const begin = Effect.fnUntraced(function*(agent: AnyAgent, input: RunInput<unknown>) {
    yield* checkRegistered(agent)
    const { runId } = input
    const problem = (text: string) => new RunInputError({ runId, agent: agent.name, problem: text })
    if (typeof runId !== "string" || runId.trim() === "" || !runId.isWellFormed()) {
      return yield* problem("its runId is no text that stays the same when the run is tried again")
    }
    const stored = yield* Effect.mapError(
      toStored(definitionOf(agent), input),
      (error) => problem(`its trigger does not fit the agent's schema: ${error.message}`)
    )
    const encoded = yield* Effect.try({
      try: () => StoredValue.encode(stored),
      catch: (error) => problem(`its trigger or prompt cannot be stored: ${String(error)}`)
    })
    const print = Result.getOrElse(fingerprint(agent.name, JSON.parse(encoded.text)), () => "")
    const known = yield* index.get(runId)
    const row = known ?? (yield* add(agent, runId, stored, print, problem))
    yield* checkOwner(agent, row)
    if (row.fingerprint !== print) return yield* new RunConflictError({ runId, agent: agent.name })
    if (row.status === "queued" || row.status === "running") yield* push(row)
  })

  const add = Effect.fnUntraced(function*(
    agent: AnyAgent,
    runId: string,
    stored: unknown,
    fingerprint: string,
    problem: (text: string) => RunInputError
  ) {
    const values = yield* valuesOf(runId)
    const input = yield* Effect.mapError(values.write("input", stored), (error) => problem(error.message))
    const now = yield* Clock.currentTimeMillis
    const row: RunRow = {
      runId,
      agent: agent.name,
      incarnation: randomUUID(),
      status: "queued",
      fingerprint,
      input,
      retries: 0,
      redo: [],
      again: null,
      cancelling: false,
      approvals: [],
      failure: undefined,
      outcome: undefined,
      createdAt: now,
      updatedAt: now,
      endedAt: undefined
    }
    return (yield* index.insert(row)) ?? row
  })

  const resultOf = Effect.fnUntraced(function*(agent: AnyAgent, runId: string) {
    while (true) {
      const change = yield* changed(runId)
      const row = yield* rowOf(runId)
      yield* checkOwner(agent, row)
      switch (row.status) {
        case "completed":
          return yield* recorded(agent, row)
        case "failed":
          return yield* new RunFailedError({ runId, agent: row.agent, failure: row.failure! })
        case "cancelled":
          return yield* new RunCancelledError({ runId, agent: row.agent })
        case "waiting":
          return yield* new RunWaitingError({ runId, agent: row.agent, approvals: row.approvals })
      }
      yield* options.pollInterval === undefined ? change : Effect.raceFirst(change, Effect.sleep(options.pollInterval))
    }
  }, (effect) => Effect.scoped(effect))

  const recorded = Effect.fnUntraced(function*(agent: AnyAgent, row: RunRow) {
    const values = yield* valuesOf(row.runId)
    const { last, ...outcome } = (yield* values.read(row.outcome!)) as Outcome
    const output = yield* outputOf(definitionOf(agent).output, outcome, last)
    return { runId: row.runId, ...outcome, output } satisfies RunResult<unknown>
  })

  const respond = (type: "approved" | "denied") =>
    Effect.fnUntraced(function*(runId: string, id: string, { reason }: { readonly reason?: string | undefined } = {}) {
      const row = yield* rowOf(runId)
      if (isOver(row)) return
      yield* executions.send(idOf(row), approvalSignal(id), JSON.stringify({ type, reason }))
      yield* update(runId, (row) => {
        const approvals = row.approvals.filter((approval) => approval.id !== id)
        return approvals.length === row.approvals.length ? undefined : {
          approvals,
          status: row.status === "waiting" && approvals.length === 0 ? "queued" : row.status
        }
      })
    })

  const remove = Effect.fnUntraced(function*(row: RunRow) {
    yield* executions.forget(idOf(row))
    yield* Effect.mapError(
      keyValues.clearPrefix(runPrefix(row.runId)),
      (cause) => new EngineStoreError({ operation: `forget run ${row.runId}`, problem: cause.message, cause })
    )
    yield* index.remove(row.runId)
  })

  const engine: IEngine = {
    run: (agent, input) =>
      Effect.andThen(begin(agent, input as RunInput<unknown>), resultOf(agent, input.runId)) as never,
    start: (agent, input) => begin(agent, input as RunInput<unknown>),
    resume: (agent, runId) =>
      Effect.gen(function*() {
        const row = yield* rowOf(runId)
        yield* checkOwner(agent, row)
        if (!isOver(row) && row.status !== "failed") {
          yield* checkRegistered(agent)
          yield* push(row)
          yield* executions.resume(idOf(row))
        }
        return yield* resultOf(agent, runId)
      }) as never,
    retry: Effect.fnUntraced(function*(runId: string) {
      const before = yield* rowOf(runId)
      const row = before.status !== "failed"
        ? before
        : yield* update(runId, (row) =>
          row.status !== "failed" ? undefined : {
            status: "queued",
            failure: undefined,
            endedAt: undefined,
            retries: row.retries + 1,
            redo: [...row.redo, row.again],
            again: null
          })
      // one that is queued may be a retry that was cut off between its two writes
      if (row.status !== "queued" || row.retries === 0) {
        return yield* new RunNotFailedError({ runId, status: row.status })
      }
      yield* push(row)
    }),
    approve: respond("approved"),
    deny: respond("denied"),
    cancel: Effect.fnUntraced(function*(runId: string) {
      const row = yield* update(runId, (row, now) =>
        isOver(row)
          ? undefined
          : row.status === "failed"
          ? { status: "cancelled", endedAt: now }
          : { cancelling: true })
      if (isOver(row)) return
      yield* executions.start(startOf(row))
      yield* executions.interrupt(idOf(row))
      if (agents.has(row.agent)) yield* Effect.ignore(ended(runId))
    }),
    get: Effect.fnUntraced(function*(runId: string) {
      const info = infoOf(yield* rowOf(runId))
      const keysInDoubt = yield* Effect.mapError(
        Stream.runCollect(store.list({ runId, doubt: "inDoubt" })),
        (cause) => new EngineStoreError({ operation: `list the keys of run ${runId}`, problem: cause.message, cause })
      )
      return { ...info, keysInDoubt }
    }),
    list: (filter: RunFilter = {}) => Effect.map(index.list(filter), (rows) => rows.map(infoOf)),
    prune: Effect.fnUntraced(function*({ olderThan }: { readonly olderThan: Duration.Input }) {
      const endedBefore = (yield* Clock.currentTimeMillis) - Duration.toMillis(olderThan)
      let count = 0
      while (true) {
        const rows = yield* index.list({ status: ["completed", "failed", "cancelled"], endedBefore, limit: 100 })
        if (rows.length === 0) return count
        yield* Effect.forEach(rows, remove, { discard: true })
        count += rows.length
      }
    })
  }

  const ended = (runId: string): Effect.Effect<void, RunNotFoundError | EngineStoreError> =>
    Effect.scoped(Effect.gen(function*() {
      while (true) {
        const change = yield* changed(runId)
        if (isOver(yield* rowOf(runId))) return
        yield* options.pollInterval === undefined
          ? change
          : Effect.raceFirst(change, Effect.sleep(options.pollInterval))
      }
    }))

  internals.set(engine, {
    register: Effect.fnUntraced(function*(definition: AgentDefinition) {
      const { name } = definition
      const context = yield* Effect.context<Scope.Scope>()
      const ai = Context.getOrUndefined(context as Context.Context<never>, Ai as Context.Key<Ai, Ai["Service"]>)
        ?? Context.get(yield* Layer.build(Ai.layer), Ai)
      const agent: RegisteredAgent = {
        definition,
        // what belongs to the moment (a span, a clock) is that of each run
        context: Context.add(capture(context as Context.Context<never>).services, Ai, ai),
        tools: typeof definition.tools === "function" ? undefined : yield* Effect.orDie(madeTools(definition.tools))
      }
      const known = agents.get(name) ?? { definition, layers: 0 }
      if (known.definition !== definition) {
        return yield* Effect.die(
          new TypeError(`Two agents are called "${name}": runs are kept by the name of their agent.`)
        )
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          agents.set(name, known)
          known.layers++
        }),
        () => Effect.sync(() => --known.layers === 0 && agents.delete(name))
      )
      yield* executions.register(name, execute(ground, agent))
      // what was to go on when the process died, and has no message of its own that says so
      const queued = yield* Effect.orDie(index.list({ agent: name, status: "queued", limit: Number.MAX_SAFE_INTEGER }))
      yield* Effect.forEach(queued, push, { discard: true })
    })
  })
  return engine
})

const isOver = ({ status }: RunRow): boolean => status === "completed" || status === "cancelled"

const infoOf = (
  { agent, approvals, cancelling, createdAt, endedAt, failure, retries, runId, status, updatedAt }: RunRow
): RunInfo => ({
  runId,
  agent,
  status,
  cancelling: cancelling && status !== "cancelled",
  retries,
  approvals,
  failure,
  createdAt,
  updatedAt,
  endedAt
})

const definitionOf = (agent: AnyAgent): AgentDefinition => {
  const definition = definitions.get(agent)
  if (definition === undefined) throw new TypeError(`"${agent.name}" is no agent that defineAgent made`)
  return definition
}

/** The output of a completed run, read again from the text: so it is the same value each time. */
const outputOf = (
  output: OutputInterface | undefined,
  { finishReason, text }: Pick<Outcome, "finishReason" | "text">,
  { response, usage }: Outcome["last"]
): Effect.Effect<unknown, AiError> =>
  output === undefined ? Effect.succeed(text) : Effect.tryPromise({
    try: () => output.parseCompleteOutput({ text }, { response, usage, finishReason }),
    catch: (error) => AiError.from(error)
  })
