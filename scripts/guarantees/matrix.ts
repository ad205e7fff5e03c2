/**
 * All that is run for the page, as data.
 */
import { EffectStore } from "chamvi-effect"
import { Effect, Layer } from "effect"
import { mostAfterFreeze } from "./exploration.ts"
import { type Cells, cellsOf } from "./lab.ts"
import { table } from "./remote.ts"
import { type LabStore, openStores } from "./stores.ts"
import { type Column, type ToolKind, toolKinds } from "./tools.ts"

/** What came of each situation, in each setting that makes a difference. */
export interface Table {
  readonly kind: ToolKind
  readonly headers: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
}

export interface Row {
  readonly situation: string
  readonly cells: ReadonlyArray<string>
}

export interface StoreFacts {
  readonly name: string
  readonly batch: boolean
  readonly transactional: boolean
  /** Situations that end otherwise than on the ledgers before it. */
  readonly different: ReadonlyArray<string>
}

export interface Matrix {
  readonly tables: ReadonlyArray<Table>
  readonly stores: ReadonlyArray<StoreFacts>
}

/** What came of each situation, by column. */
type Found = ReadonlyMap<Column, Cells>

const frozen = "frozen for longer than the lease with its request on the way, which arrives after all"

const doubt = ({ whenInDoubt }: Column): string => `\`whenInDoubt: "${whenInDoubt}"\``

const isSame = (some: Cells, others: Cells): boolean =>
  some.size === others.size && Array.from(some).every(([situation, cell]) => others.get(situation) === cell)

/** A column for each setting, and one for each `whenInDoubt` where that makes a difference. */
const tableOf = (kind: ToolKind, found: Found): Table => {
  const cellsAt = (column: Column): Cells => found.get(column)!
  const settings = Array.from(new Set(kind.columns.map(({ setting }) => setting)))
  const shown = settings.flatMap((setting) => {
    const columns = kind.columns.filter((column) => column.setting === setting)
    const [first] = columns
    const isOne = columns.every((column) => isSame(cellsAt(column), cellsAt(first!)))
    return (isOne ? [first!] : columns).map((column) => ({
      header: [setting, isOne ? "either `whenInDoubt`" : doubt(column)].filter((part) => part !== "").join(", "),
      cells: cellsAt(column)
    }))
  })
  const rows = Array.from(shown[0]!.cells.keys(), (situation) => ({
    situation,
    cells: shown.map(({ cells }) => cells.get(situation) ?? "")
  }))
  return { kind, headers: shown.map(({ header }) => header), rows }
}

const columnsFor = ({ inProgramsDatabase }: LabStore): ReadonlyArray<Column> =>
  toolKinds.flatMap(({ columns }) => columns).filter(({ transactional }) => inProgramsDatabase || !transactional)

/** Situations that end otherwise than they are known to. */
const differences = (known: Cells, cells: Cells): ReadonlyArray<string> =>
  Array.from(cells).filter(([situation, cell]) => known.get(situation) !== cell).map(([situation]) => situation)

const factsOf = ({ layer, name }: LabStore) =>
  Effect.map(
    EffectStore,
    ({ batch, transactions }) => ({ name, batch, transactional: transactions !== undefined })
  ).pipe(Effect.provide(Layer.provide(layer, table)))

export const runMatrix = Effect.gen(function*() {
  const found = new Map<Column, Cells>()
  const stores: Array<StoreFacts> = []
  for (const store of yield* openStores) {
    const different = new Set<string>()
    for (const column of columnsFor(store)) {
      const cells = yield* cellsOf(column, store)
      const known = found.get(column)
      if (known === undefined) found.set(column, cells)
      else differences(known, cells).forEach((situation) => different.add(situation))
    }
    stores.push({ ...yield* factsOf(store), different: Array.from(different) })
  }
  for (const [column, cells] of found) {
    if (column.explored === undefined) continue
    const most = mostAfterFreeze(column.explored)
    found.set(column, new Map([...cells, [frozen, most > 1 ? "**twice**, an event says so" : "at most once"]]))
  }
  const matrix: Matrix = { tables: toolKinds.map((kind) => tableOf(kind, found)), stores }
  return matrix
}).pipe(Effect.scoped)
