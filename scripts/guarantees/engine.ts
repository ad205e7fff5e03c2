/**
 * What is promised of runs: the phases in which tests kill their processes, and rules in the words of docs/rules.md, each
 * found by a test of its own.
 */
import { readFileSync } from "node:fs"

/** The tests that kill a process at each phase of a run: on SQLite, and in a cluster. */
const files = ["test/engine/sqlite.test.ts", "test/engine/cluster.test.ts"]

/** What the next process does with a run, by the name that the tests have for where the one before was killed. */
const phases: ReadonlyArray<readonly [at: string, killed: string, next: string]> = [
  ["model 0", "in the first model call", "the call is made again, maybe in other words"],
  ["tool", "behind the model call, before its tool begins", "the tool is called; the model is not asked again"],
  ["before the effect", "in the tool, before the effect", "the tool is called again: asked, executed, recorded"],
  ["after the effect", "in the tool, after the effect, before the record", "the tool is called again: asked, recorded"],
  ["after the record", "behind the record", "the tool is called again, and answers the recorded result"],
  ["model 1", "in the next model call", "that call is made again; what came before is not"]
]

const pointsIn = (file: string): ReadonlyArray<string> => {
  const [, points = ""] = /const (?:kill|point) of \[([^\]]+)\]/.exec(readFileSync(file, "utf8")) ?? []
  return [...points.matchAll(/"([^"]+)"/g)].map(([, point]) => point!)
}

/** Where a process is killed, and what the next one does; all tests kill at all of them, and at no others. */
export const phasesOfRuns = (): ReadonlyArray<readonly [killed: string, next: string]> => {
  const known = phases.map(([at]) => at).join(", ")
  for (const file of files) {
    const points = pointsIn(file).join(", ")
    if (points !== known) throw new Error(`${file} kills at ${points}, and the page speaks of ${known}`)
  }
  return phases.map(([, killed, next]) => [killed, next])
}

/** The tests by which rules are found, by the engine that they are about. */
const tests: ReadonlyArray<readonly [where: string, tests: ReadonlyArray<string>]> = [
  ["every engine", [
    "Engine.run > answers the recorded result where the run is over, without the model and without the tools",
    "Engine.retry > goes on from the last good step",
    "a ledger in trouble > that lasts puts the run to sleep, which goes on by itself; the model never hears of it",
    "timeout, on SQLite > toolMs is a failure that the model reads, and the key is in doubt",
    "SqliteEngine > leaves nothing of a pruned run but its effects, which a run of the same id does not apply again"
  ]],
  ["one process, on SQLite", [
    `a process that is killed > at "tool" leaves a run that the next process completes, with each effect and each model call once`,
    "a key that somebody else holds > lets the run sleep through the death of its process",
    "a process that is killed > while the run waits for a person leaves it waiting, and an answer in the next process completes it",
    "SqliteEngine > interrupts what runs when its layers close, and goes on when they are built again"
  ]],
  ["many workers, on Postgres", [
    "a worker that freezes in a request > until others have its run, and thaws within its lease, applies the effect once",
    "a worker that freezes in a request > past its lease applies the effect again where the remote does, and the events say so",
    "a worker that is asked to end > lets its tools end first, and its runs go on elsewhere",
    "a client of a cluster > approves, before the run waits or while no worker is there, and the run goes on when one comes",
    "a cluster > outlasts a restart of Postgres in the middle of tools and model calls",
    "chaos > kills workers of a cluster until 20 runs are done: each effect is applied once"
  ]]
]

/** The rule whose tests have one of this title. */
export const ruleOf = (rules: string, title: string): string => {
  const row = rules.split("\n").find((line) => line.startsWith("| ") && line.includes(`\`${title}\``))
  if (row === undefined) throw new Error(`docs/rules.md has no rule with the test "${title}"`)
  return row.split(/(?<!\\)\|/)[1]!.trim()
}

/** Rules by engine. */
export const rulesOfRuns = (rules: string): ReadonlyArray<readonly [where: string, rules: ReadonlyArray<string>]> =>
  tests.map(([where, titles]) => [where, titles.map((title) => ruleOf(rules, title))])
