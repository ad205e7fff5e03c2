/**
 * What is held against a chaos run, from what the remote, the workers and the engine tell of it.
 */
import type { EffectRecord, RunStatus } from "chamvi-effect"
import type { Heard } from "./Fleet.ts"
import { type Run, type ToolName, toolNames } from "./protocol.ts"
import type { Application, Generation } from "./Remote.ts"

/** A run as the engine tells of it in the end. */
export interface EndedRun extends Run {
  readonly status: RunStatus | "unknown"
  /** What it answered: the receipts by tool, as JSON. */
  readonly text: string | undefined
  readonly failure?: string | undefined
}

export interface Observed {
  readonly runs: ReadonlyArray<EndedRun>
  readonly ledger: ReadonlyArray<EffectRecord>
  readonly applications: ReadonlyArray<Application>
  readonly generations: ReadonlyArray<Generation>
  readonly heard: ReadonlyArray<Heard>
  readonly crashes: ReadonlyArray<string>
  /** Workers that were frozen: they may finish what has been taken from them. */
  readonly everFrozen: ReadonlySet<number>
  /** Whether an effect may be applied once more where its event says so: a frozen holder, and a remote that honours no key. */
  readonly duplicatesWithEvent: boolean
}

/** What went wrong with what. */
export interface Violation {
  readonly runId: string
  readonly problem: string
}

export interface Figures {
  readonly runs: number
  readonly effects: number
  /** Applications beyond the first of an effect. */
  readonly duplicates: number
  readonly modelCalls: number
  /** Model calls that were made again. */
  readonly regenerated: number
  readonly takenOver: number
  readonly claimLost: number
  readonly reconciled: number
}

export interface Verdict {
  readonly violations: ReadonlyArray<Violation>
  readonly figures: Figures
}

const grouped = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => string): ReadonlyMap<string, ReadonlyArray<A>> =>
  Map.groupBy(all, keyOf)

const effectOf = ({ runId, tool }: { readonly runId: string; readonly tool: string }): string => `${runId} ${tool}`

const readText = (text: string | undefined): Readonly<Record<string, unknown>> => {
  try {
    const read: unknown = JSON.parse(text ?? "")
    return typeof read === "object" && read !== null ? { ...read } : {}
  } catch {
    return {}
  }
}

export const judge = (observed: Observed): Verdict => {
  const { applications, crashes, duplicatesWithEvent, everFrozen, generations, heard, ledger, runs } = observed
  const violations: Array<Violation> = []
  const convict = (runId: string, problem: string): void => void violations.push({ runId, problem })

  const applied = grouped(applications, effectOf)
  const events = grouped(heard.filter(({ claimLost, takenOver }) => claimLost || takenOver), effectOf)
  const records = grouped(ledger, effectOf)
  let duplicates = 0

  const judgeEffect = (runId: string, tool: ToolName, answered: unknown): void => {
    const of = effectOf({ runId, tool })
    const receipts = (applied.get(of) ?? []).map(({ receipt }) => receipt)
    const told = events.get(of)?.length ?? 0
    const extra = Math.max(0, receipts.length - 1)
    duplicates += extra
    if (receipts.length === 0) convict(runId, `${tool} was lost: it was never applied`)
    if (extra > 0 && !duplicatesWithEvent) convict(runId, `${tool} was applied ${receipts.length} times`)
    if (extra > told && duplicatesWithEvent) {
      convict(runId, `${tool} was applied ${receipts.length} times, and ${told} events tell of it`)
    }
    if (!receipts.includes(String(answered))) {
      convict(runId, `${tool} answered ${JSON.stringify(answered)}, and the remote gave ${receipts.join(", ")}`)
    }
    const [record, ...others] = records.get(of) ?? []
    if (record === undefined) return convict(runId, `${tool} is not in the ledger`)
    if (others.length > 0) convict(runId, `${tool} has ${1 + others.length} keys in the ledger`)
    if (record.status !== "recorded") return convict(runId, `${tool} is left ${record.status} in the ledger`)
    if (record.doubt !== "none") convict(runId, `${tool} is recorded and still in doubt`)
    if (record.result !== JSON.stringify({ value: answered })) {
      convict(runId, `${tool} answered ${JSON.stringify(answered)}, and the ledger has ${record.result}`)
    }
  }

  for (const { failure, runId, status, text } of runs) {
    if (status !== "completed") {
      convict(runId, `the run is left ${status}${failure === undefined ? "" : `: ${failure}`}`)
      continue
    }
    const answers = readText(text)
    for (const tool of toolNames) judgeEffect(runId, tool, answers[tool])
  }

  const known = new Set(runs.flatMap(({ runId }) => toolNames.map((tool) => effectOf({ runId, tool }))))
  for (const application of applications) {
    if (!known.has(effectOf(application))) convict(application.runId, `${application.tool} was never asked for`)
  }
  for (const { again, runId, step, worker } of generations) {
    if (again && !everFrozen.has(worker)) convict(runId, `the model call of step ${step} was finished, and made again`)
  }
  for (const crash of crashes) convict("-", crash)

  const calls = new Set(generations.map(({ runId, step }) => `${runId} ${step}`)).size
  const count = (matches: (event: Heard) => boolean) => heard.filter(matches).length
  return {
    violations,
    figures: {
      runs: runs.filter(({ status }) => status === "completed").length,
      effects: applied.size,
      duplicates,
      modelCalls: calls,
      regenerated: generations.length - calls,
      takenOver: count(({ takenOver }) => takenOver),
      claimLost: count(({ claimLost }) => claimLost),
      reconciled: count(({ outcome }) => outcome === "reconciled")
    }
  }
}
