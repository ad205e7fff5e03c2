/**
 * Each tool in the lab, on each ledger: what came of each situation, as the cells of a table.
 */
import { CrashLab } from "chamvi-effect/testing"
import { Effect } from "effect"
import { Remote } from "./remote.ts"
import type { LabStore } from "./stores.ts"
import { failing, tell } from "./stories.ts"
import type { Column } from "./tools.ts"
import { cellOf, foundAt, situations, transactionalSituations } from "./words.ts"

/** What came of each situation, in order. */
export type Cells = ReadonlyMap<string, string>

/** The different ones, in order. */
const distinct = (cells: ReadonlyArray<string>): string => Array.from(new Set(cells)).join("; or ")

export const cellsOf = Effect.fnUntraced(function*(column: Column, { layer }: LabStore) {
  const report = yield* CrashLab.run({
    tool: column.tool("5 seconds"),
    name: "tool",
    input: { entry: 1 },
    world: column.world,
    store: layer,
    count: () => Effect.flatMap(Remote, ({ count }) => count),
    crowd: (entries) =>
      Effect.flatMap(Remote, ({ byStrangers }) => byStrangers(Array.from({ length: entries }, () => "Me too."))),
    plant: (marker) => Effect.flatMap(Remote, ({ byStrangers }) => byStrangers([marker])),
    loseReply: Effect.flatMap(Remote, ({ failNext }) => failNext("after")),
    lag: "2 seconds"
  })
  const left = new Map(report.points.map((point) => [point.name, point]))
  const cells = new Map<string, string>()
  for (const { points, words } of column.transactional ? transactionalSituations : situations) {
    const found = points.flatMap((name) => left.get(name) ?? [])
    points.forEach((name) => left.delete(name))
    if (found.length > 0) cells.set(words, distinct(found.map((point) => cellOf(foundAt(point)))))
  }
  if (left.size > 0) {
    throw new Error(`the lab tries points that words.ts has no words for: ${Array.from(left.keys()).join(", ")}`)
  }
  cells.set(failing, cellOf(yield* tell(column, layer)))
  const found: Cells = cells
  return found
})
