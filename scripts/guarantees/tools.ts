/**
 * The tools that the page speaks of: one of each kind, in each of its settings.
 */
import { defineEffectTool, idempotencyKey, type WhenInDoubt } from "chamvi-effect"
import { Effect, Schema } from "effect"
import { type Kind, kinds } from "../../test/explorer/Remote.ts"
import { adding, once, Remote, table, type World } from "./remote.ts"

interface Settings {
  readonly checks?: boolean
  readonly settle?: boolean
  readonly whenInDoubt: WhenInDoubt
  readonly transactional?: boolean
  readonly sendsIdempotencyKey?: boolean
}

/** How long the tool repeats a "no" of its check. */
export type Settle = "5 seconds" | "10 millis"

const toolOf = (
  { checks, sendsIdempotencyKey, settle, transactional, whenInDoubt }: Settings,
  duration: Settle
) =>
  defineEffectTool({
    description: "Adds an entry.",
    inputSchema: Schema.Struct({ entry: Schema.Int }),
    whenInDoubt,
    transactional,
    settle: settle === true ? duration : undefined,
    alreadyApplied: checks === true ? (key) => Effect.flatMap(Remote, ({ find }) => find(key)) : undefined,
    execute: (_, { effectKey }) =>
      Effect.flatMap(Remote, ({ send }) => send(sendsIdempotencyKey === true ? idempotencyKey(effectKey) : effectKey))
  })

/** A tool in one of its settings: a column of a table, unless another one is just the same. */
export interface Column {
  readonly setting: string
  readonly whenInDoubt: WhenInDoubt
  readonly tool: (settle: Settle) => ReturnType<typeof toolOf>
  readonly world: World
  readonly transactional: boolean
  /** The same for the exploration, where that knows of it. */
  readonly explored: Kind | undefined
}

export interface ToolKind {
  readonly title: string
  /** What it is, in a sentence or two. */
  readonly about: string
  readonly columns: ReadonlyArray<Column>
}

const byDoubt = (
  setting: string,
  settings: Omit<Settings, "whenInDoubt">,
  world: World,
  explored?: Kind
): ReadonlyArray<Column> =>
  (["execute", "fail"] as const).map((whenInDoubt) => ({
    setting,
    whenInDoubt,
    tool: (settle) => toolOf({ ...settings, whenInDoubt }, settle),
    world,
    transactional: settings.transactional === true,
    explored: explored && { ...explored, whenInDoubt }
  }))

export const toolKinds: ReadonlyArray<ToolKind> = [
  {
    title: "With `alreadyApplied`",
    about:
      "Its check answers truly: it reads all pages, takes nobody else's entry for its own, and finds what `execute` wrote. `settle` is 5 seconds.",
    columns: [
      ...byDoubt("without `settle`", { checks: true }, adding, kinds.checked),
      ...byDoubt("with `settle`", { checks: true, settle: true }, adding, kinds.lagging)
    ]
  },
  {
    title: "Set semantics, without `alreadyApplied`",
    about: "To apply it twice is to apply it once: a label, a status, a file that is put.",
    columns: byDoubt("", {}, once, kinds.honours)
  },
  {
    title: "Idempotency key, without `alreadyApplied`",
    about: "`execute` sends `idempotencyKey(effectKey)`, and the remote applies a key once.",
    columns: byDoubt("", { sendsIdempotencyKey: true }, once, kinds.honours)
  },
  {
    title: "Transactional",
    about: "The effect is a write to the ledger's own database, with `transactional: true`.",
    columns: byDoubt("", { transactional: true }, table)
  },
  {
    title: "None of these",
    about:
      "No `alreadyApplied`, and each request is another effect to the remote: a comment, a mail, a charge without a key.",
    columns: byDoubt("", {}, adding, kinds.default)
  }
]
