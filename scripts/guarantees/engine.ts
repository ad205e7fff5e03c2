/**
 * What is promised of runs, in the words of docs/rules.md, whose tests kill the processes. Each rule is found by a test of
 * its own.
 */

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
    `a process that is killed > at "after the effect" leaves a run that the next process completes, with each effect and each model call once`,
    `a process that is killed > at "tool" leaves a run that the next process completes, with each effect and each model call once`,
    "a key that somebody else holds > lets the run sleep through the death of its process",
    "a process that is killed > while the run waits for a person leaves it waiting, and an answer in the next process completes it",
    "SqliteEngine > interrupts what runs when its layers close, and goes on when they are built again"
  ]],
  ["many workers, on Postgres", [
    "a worker that is killed > at any point leaves its run to another one, which completes it with each effect and each model call once",
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
