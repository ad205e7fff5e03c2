import type { EffectRecord } from "chamvi-effect"
import { describe, expect, it } from "vitest"
import type { Heard } from "./Fleet.ts"
import { toolNames } from "./protocol.ts"
import type { Application, Generation } from "./Remote.ts"
import { judge, type Observed } from "./verdict.ts"

const receiptOf = (tool: string) => `receipt of ${tool}`

const application = (tool: typeof toolNames[number], receipt = receiptOf(tool)): Application => ({
  runId: "run",
  step: 0,
  worker: 1,
  tool,
  key: `run:${tool}`,
  idempotent: false,
  receipt
})

const record = (tool: string, changes: Partial<EffectRecord> = {}): EffectRecord => ({
  key: `run:${tool}`,
  tool,
  runId: "run",
  status: "recorded",
  doubt: "none",
  token: 1,
  claimId: "claim",
  attempt: 1,
  takenOver: false,
  owner: "owner",
  leaseEnd: 0,
  fingerprint: "fingerprint",
  earlier: undefined,
  result: JSON.stringify({ value: receiptOf(tool) }),
  outcome: "executed",
  createdAt: 0,
  updatedAt: 0,
  seenAt: 0,
  ...changes
})

const generation = (changes: Partial<Generation> = {}): Generation => ({
  runId: "run",
  step: 0,
  worker: 1,
  again: false,
  ...changes
})

const heard = (changes: Partial<Heard>): Heard => ({
  key: "run:charge",
  tool: "charge",
  runId: "run",
  outcome: "executed",
  error: undefined,
  recordFailed: false,
  claimLost: false,
  inputChanged: false,
  takenOver: false,
  executedInDoubt: false,
  worker: 1,
  ...changes
})

const answers = Object.fromEntries(toolNames.map((tool) => [tool, receiptOf(tool)]))
const run = { kind: "clerk", runId: "run", status: "completed", text: JSON.stringify(answers) } as const

const right: Observed = {
  runs: [run],
  ledger: toolNames.map((tool) => record(tool)),
  applications: toolNames.map((tool) => application(tool)),
  generations: [generation()],
  heard: [],
  crashes: [],
  everFrozen: new Set(),
  duplicatesWithEvent: false
}

const twice = [...right.applications, application("charge", "another receipt")]

/** What is wrong, and what the verdict says of it. */
const wrong: { readonly [name: string]: readonly [Partial<Observed>, problem: string] } = {
  "a run that did not complete": [
    { runs: [{ ...run, status: "running", text: undefined }] },
    "the run is left running"
  ],
  "an effect that was applied twice": [{ applications: twice }, "charge was applied 2 times"],
  "an effect that was lost": [
    { applications: right.applications.filter(({ tool }) => tool !== "charge") },
    "charge was lost: it was never applied"
  ],
  "a run that answers what the remote never gave": [
    { runs: [{ ...run, text: JSON.stringify({ ...answers, charge: "made up" }) }] },
    `charge answered "made up", and the remote gave receipt of charge`
  ],
  "a run that answers something else than the ledger": [
    {
      ledger: right.ledger.map((row) => row.tool === "charge" ? record("charge", { result: `{"value":"other"}` }) : row)
    },
    `charge answered "receipt of charge", and the ledger has {"value":"other"}`
  ],
  "an effect that the ledger does not know": [
    { ledger: right.ledger.filter(({ tool }) => tool !== "charge") },
    "charge is not in the ledger"
  ],
  "a key that is left held": [
    { ledger: right.ledger.map((row) => row.tool === "charge" ? record("charge", { status: "held" }) : row) },
    "charge is left held in the ledger"
  ],
  "two keys of one effect": [
    { ledger: [...right.ledger, record("charge", { key: "another" })] },
    "charge has 2 keys in the ledger"
  ],
  "an effect of no run": [
    { applications: [...right.applications, { ...application("charge"), runId: "other" }] },
    "charge was never asked for"
  ],
  "a finished model call that was made again": [
    { generations: [generation(), generation({ again: true })] },
    "the model call of step 0 was finished, and made again"
  ],
  "a worker that ended by itself": [{ crashes: ["worker 1 ended by itself"] }, "worker 1 ended by itself"],
  "a duplicate without its event": [
    { applications: twice, duplicatesWithEvent: true, heard: [heard({ tool: "notify", takenOver: true })] },
    "charge was applied 2 times, and 0 events tell of it"
  ]
}

describe("the verdict on a chaos run", () => {
  it("finds nothing where all is right", () => {
    expect(judge(right).violations).toEqual([])
  })

  for (const [name, [changes, problem]] of Object.entries(wrong)) {
    it(`convicts ${name}`, () => {
      expect(judge({ ...right, ...changes }).violations.map(({ problem }) => problem)).toContain(problem)
    })
  }

  it("counts a duplicate whose event tells of it, where a remote may have one", () => {
    for (const flag of ["takenOver", "claimLost"] as const) {
      const { figures, violations } = judge({
        ...right,
        applications: twice,
        duplicatesWithEvent: true,
        heard: [heard({ [flag]: true })]
      })
      expect(violations).toEqual([])
      expect(figures.duplicates).toBe(1)
    }
  })

  it("lets a worker that was frozen finish a model call that was taken from it", () => {
    const stale = { ...right, generations: [generation(), generation({ again: true, worker: 2 })] }
    expect(judge({ ...stale, everFrozen: new Set([2]) }).violations).toEqual([])
    expect(judge(stale).violations.length).toBe(1)
  })
})
