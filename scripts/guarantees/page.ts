/**
 * The page, out of what was found.
 */
import { mutants } from "../../test/explorer/mutants.ts"
import { kinds } from "../../test/explorer/Remote.ts"
import type { Ledger } from "./deaths.ts"
import { phasesOfRuns, ruleOf, rulesOfRuns } from "./engine.ts"
import { about, explored } from "./exploration.ts"
import { list, table } from "./markdown.ts"
import type { Matrix, Row, Table } from "./matrix.ts"
import { residualRisks } from "./risks.ts"

export interface Findings {
  readonly matrix: Matrix
  /** How soon a killed holder's key is free. */
  readonly deaths: Readonly<Record<Ledger, string>>
  /** The text of docs/rules.md. */
  readonly rules: string
}

const lines = (...parts: ReadonlyArray<string>): string => parts.join("<br>")

const opening = `# Guarantees

What happens to an effect when processes die, freeze, race and repeat themselves, for each kind of tool, setting and ledger; what is not
promised; and what closes that.

This page is written by \`npm run guarantees\`. What it says of tools, of orders, and of ledgers in memory and SQLite is what the crash lab
([\`CrashLab\`](testing.md), which examines your tools too), the exploration of the tests, and killed processes came to; nobody types those
cells. \`npm run check -- guarantees\` runs all of it again, and fails where the page says something else. The rest has tests, which are
[named](rules.md), or is said as a limit.

## The promise

**Per effect key at most one application, as long as no live holder outlives its lease, and either \`alreadyApplied\` answers truly, or
\`whenInDoubt\` is \`"fail"\` and \`execute\` fails plainly only where nothing was applied.**

A holder that freezes past its lease just before its request leaves can add one more, and the event says so. A remote that honours the
key (\`idempotencyKey\`) closes even that. Nothing more is promised.

An attempt that was cut off leaves its key *in doubt*: the effect is there, or it is not. The next call asks \`alreadyApplied\`. Where there
is none, \`whenInDoubt\` decides: \`"execute"\`, the default, applies again; \`"fail"\` stops until a person has looked and resolved the key.`

/** What cells say, by a part that they have. */
const meanings: ReadonlyArray<readonly [part: string, cell: string, meaning: string]> = [
  ["once", "once", "the effect is there once, and callers have its result"],
  ["once, asked", "once, asked", "the same; the next call found it by `alreadyApplied`, and executed nothing"],
  [
    "in doubt",
    "in doubt, applied<br>in doubt, not applied",
    "calls fail with `EffectInDoubtError` until a person resolves the key"
  ],
  ["**twice**", "**twice**", "the effect was applied twice"],
  ["**never**", "**never**", "the effect was not applied, and calls end as if it were"],
  ["InDoubt", "`executedInDoubt`", "an event says that `execute` ran although the effect may have been there"],
  ["claimLost", "`claimLost`", "an event says that a holder outlived its lease, and another took over"],
  ["takenOver", "`takenOver`", "an event says that the key was taken from a holder that gave no sign of life"]
]

const legendOf = (tables: ReadonlyArray<Table>): string => {
  const cells = tables.flatMap(({ rows }) => rows.flatMap(({ cells }) => cells))
  const known = meanings.filter(([part]) => cells.some((cell) => cell.includes(part)))
  return `## Tools

In each situation a first call gets into trouble. Then the same key is called again, by other processes, until a call succeeds or stops in
doubt, and then once more. The cells say what the remote holds then, and what [events](operating.md#events) say of it:

${table(["cell", "meaning"], known.map(([, cell, meaning]) => [cell, meaning]))}

"Killed" is any death of a process; "frozen" is one that stands still, or does not reach the ledger, and goes on later.`
}

const isTwice = (cell: string): boolean => cell.includes("**twice**")
const isInDoubt = (cell: string): boolean => cell.includes("in doubt")

const inShort = (tables: ReadonlyArray<Table>): string => {
  const rows = tables.flatMap(({ headers, kind, rows }) =>
    headers.map((header, column) => {
      const where = (is: (cell: string) => boolean): string => {
        const found = rows.filter(({ cells }) => is(cells[column]!)).map(({ situation }) => situation)
        return found.length === 0 ? "nowhere" : lines(...found)
      }
      const doubtful = rows.some(({ cells }) => isInDoubt(cells[column]!))
      return [kind.title, header, where(isTwice), doubtful ? "yes" : "no"]
    })
  )
  return `### In short

${table(["tool", "setting", "applied twice", "may wait for a person"], rows)}`
}

/** Situations that end alike are one row. */
const merged = (rows: ReadonlyArray<Row>): ReadonlyArray<ReadonlyArray<string>> => {
  const groups = new Map<string, Array<Row>>()
  for (const row of rows) {
    const name = row.cells.join("|")
    groups.set(name, [...groups.get(name) ?? [], row])
  }
  return Array.from(groups.values(), (group) => [
    lines(...group.map(({ situation }) => situation)),
    ...group[0]!.cells
  ])
}

const tableOf = ({ headers, kind, rows }: Table): string =>
  `### ${kind.title}

${kind.about}

${table(["situation", ...headers], merged(rows))}`

const explorationOf = (): string => {
  const rows = Object.values(kinds).map((kind) => {
    const { most, mostAfterLostLease, orders } = explored(kind)
    return [kind.name, about(orders), String(most), String(mostAfterLostLease)]
  })
  return `## Every order of two processes

The situations above are chosen. Beside them \`npm test\` runs the real program in all orders of the requests of two processes to ledger
and remote, with one trouble (a crash, a freeze, a lost, late or failed request or reply, a caller that leaves) at any point of any of
them. More processes, two troubles at once and random orders come behind that, there and in \`npm run prove\`.

${table(["tool", "orders, more than", "applied at most", "where a live holder outlives its lease"], rows)}

The tool of set semantics is the one whose remote honours the key. In each of these orders, after every step and at the end:

${
    list([
      "the effect is applied no more often than the promise says, and an event tells of each application too many, unless the process that would tell it has died;",
      "a caller gets the result of the key's effect, the one that the ledger keeps (or the event says `claimLost` or `recordFailed`), or an error of the documentation;",
      "two tools never apply an effect of one key;",
      "nobody waits for ever, no key stays held, and no process keeps anything of a call that is over."
    ])
  }

The exploration is tested too: it finds each of ${
    Object.keys(mutants).length
  } faults that are put into the program or its ledger.`
}

/** Tests whose rules are about ledgers. */
const testedOfLedgers: ReadonlyArray<readonly [ledger: string, test: string]> = [
  ["Postgres", "SqlEffectStore on Postgres"],
  ["Redis", "RedisEffectStore"],
  ["Redis", "RedisEffectStore > warns of a server without an append-only file, and of one that evicts"],
  ["SQLite", "SqliteEffectStore > flushes every record to the disk, unless it is told not to"],
  ["SQLite", "opening > rows survive a restart"],
  ["SQLite", "several processes on one file > a frozen process keeps its claim until the lease ends"]
]

const ledgersOf = ({ deaths, matrix: { stores }, rules }: Findings): string => {
  const [memory, durable, fast, inDatabase] = stores
  const run = [memory!, durable!, fast!, inDatabase!]
  const yesNo = (is: boolean): string => is ? "yes" : "no"
  const different = run.flatMap(({ different, name }) => different.map((situation) => `${name}: ${situation}`))
  const sameness = different.length === 0
    ? "give the tables above, cell by cell."
    : `give the tables above, but for these situations:\n\n${list(different)}`
  return `## Ledgers

Postgres and Redis pass the same laws as all ledgers, and are tested by races of processes and in networks that break, on servers that
\`npm test\` starts. Memory and SQLite are run for this page, and ${sameness}

${
    table(["", ...run.map(({ name }) => name), "Postgres", "Redis"], [
      ["lives as long as", "the process", "the file", "the file", "the database", "the database", "the server"],
      [
        "the key of a holder that was killed is free",
        "with the process, all is gone",
        deaths.durable,
        deaths.fast,
        deaths["program's"],
        "after its lease",
        "after its lease"
      ],
      ["the key of a holder that is frozen is free", ...Array.from({ length: 6 }, () => "after its lease")],
      [
        "the machine loses power",
        "all is gone",
        "nothing that was answered is lost",
        "the last claims and records may be lost",
        "as the client is set",
        "as `synchronous_commit` is set",
        "what was not flushed is lost: `appendfsync`"
      ],
      [
        "a failover",
        "—",
        "—",
        "—",
        "—",
        "loses what an asynchronous replica had not got",
        "loses what the replica had not got"
      ],
      ["`transactional: true`", ...run.map(({ transactional }) => yesNo(transactional)), "yes", "no"],
      ["calls of one turn share a round trip", ...run.map(({ batch }) => yesNo(batch)), "yes", "yes"]
    ])
  }

An effect whose claim or record is lost so can be applied again, unless its tool has \`alreadyApplied\`, which finds it. By tests:

${list(testedOfLedgers.map(([ledger, test]) => `${ledger}: ${ruleOf(rules, test)}`))}`
}

const runsOf = (rules: string): string =>
  `## Runs of agents

A run is made of model calls and tool calls. What is finished is stored, and not done again; what was cut off is done again, and for an
effect tool that is the second call of the tables above. Tests kill the process at each phase of a run, on SQLite and in a cluster of
workers on Postgres. Another process goes on with it by itself, each effect is applied once, and no finished model call is made again:

${table(["killed", "the next process"], phasesOfRuns())}

A model call that is made again may say other words: a key that shall survive that is made by \`effectKey\` of what stays the same.

What else holds, by engine; [Rules and their tests](rules.md) names the tests:

${table(["engine", "promise"], rulesOfRuns(rules).map(([where, rules]) => [where, lines(...rules)]))}`

const risksOf = (): string =>
  `## What is not promised, and how to close it

${table(["risk", "what closes it"], residualRisks)}`

export const pageOf = (findings: Findings): string => {
  const { matrix: { tables }, rules } = findings
  return [
    opening,
    legendOf(tables),
    inShort(tables),
    ...tables.map(tableOf),
    ledgersOf(findings),
    explorationOf(),
    runsOf(rules),
    risksOf()
  ].join("\n\n") + "\n"
}
