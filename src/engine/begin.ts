/**
 * Starts a run, or finds it started.
 */
import { Clock, Effect, Result } from "effect"
import { randomUUID } from "node:crypto"
import { fingerprint } from "../EffectKey.ts"
import { sha256 } from "../internal/sha256.ts"
import * as StoredValue from "../internal/storedValue.ts"
import { definitionOf, type RunInput } from "./agentTypes.ts"
import { RunConflictError, RunInputError } from "./errors.ts"
import type { AnyAgent, StartError } from "./IEngine.ts"
import { toStored } from "./runInput.ts"
import { isLive, type RunIndex, type RunRow } from "./RunIndex.ts"
import type { Runs } from "./runs.ts"
import { currentTrace } from "./telemetry.ts"

export const make = (runs: Runs, index: RunIndex) => {
  const add = Effect.fnUntraced(function*(
    agent: AnyAgent,
    runId: string,
    stored: unknown,
    fingerprint: string,
    problem: (text: string) => RunInputError
  ) {
    const values = runs.valuesOf(runId)
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
      troubles: [],
      attempts: {},
      failure: undefined,
      outcome: undefined,
      trace: yield* currentTrace,
      createdAt: now,
      updatedAt: now,
      endedAt: undefined
    }
    return (yield* index.insert(row)) ?? row
  })

  return Effect.fnUntraced(function*(
    agent: AnyAgent,
    input: RunInput<unknown>
  ): Effect.fn.Return<void, StartError> {
    const { runId } = input
    const problem = (text: string) => new RunInputError({ runId, agent: agent.name, problem: text })
    if (typeof runId !== "string" || runId.trim() === "" || !runId.isWellFormed()) {
      return yield* problem("its runId is no text that stays the same when the run is tried again")
    }
    const stored = yield* Effect.suspend(() => toStored(definitionOf(agent), input)).pipe(
      Effect.mapError((error) => problem(`its trigger does not fit the agent's schema: ${error.message}`)),
      // getters and proxies throw whatever they like
      Effect.catchDefect((defect) => Effect.fail(problem(`its trigger cannot be read: ${String(defect)}`)))
    )
    const encoded = yield* Effect.try({
      try: () => StoredValue.encode(stored),
      catch: (error) => problem(`its trigger or prompt cannot be stored: ${String(error)}`)
    })
    // what has no canonical JSON, such as half a character, is told apart by the text itself
    const print = Result.getOrElse(fingerprint(agent.name, JSON.parse(encoded.text)), () => sha256(encoded.text))
    const added = Effect.suspend(() => add(agent, runId, stored, print, problem))
    let row = (yield* index.get(runId)) ?? (yield* added)
    while (!isLive(row)) {
      // what is left of a pruned run would be taken for this one's, and what this one writes for that run's
      yield* runs.remove(row)
      row = yield* added
    }
    yield* runs.checkOwner(agent, row)
    if (row.fingerprint !== print) return yield* new RunConflictError({ runId, agent: agent.name })
    if (row.status === "queued" || row.status === "running" || row.status === "waiting" && row.cancelling) {
      yield* runs.goOn(row)
    }
  })
}
