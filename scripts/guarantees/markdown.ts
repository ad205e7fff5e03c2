/**
 * Tables of Markdown, and the difference of two pages.
 */
type Cells = ReadonlyArray<string>

const rowOf = (cells: Cells): string => `| ${cells.join(" | ")} |`.replaceAll("|  |", "| |")

export const table = (header: Cells, rows: ReadonlyArray<Cells>): string =>
  [rowOf(header), rowOf(header.map(() => "---")), ...rows.map(rowOf)].join("\n")

export const list = (items: ReadonlyArray<string>): string => items.map((item) => `- ${item}`).join("\n")

/** For each line of one and of the other from which on how many lines are common at most. */
const commonFrom = (some: Cells, others: Cells): ReadonlyArray<ReadonlyArray<number>> => {
  const common = Array.from({ length: some.length + 1 }, () => Array.from({ length: others.length + 1 }, () => 0))
  for (let i = some.length - 1; i >= 0; i--) {
    for (let j = others.length - 1; j >= 0; j--) {
      common[i]![j] = some[i] === others[j]
        ? common[i + 1]![j + 1]! + 1
        : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)
    }
  }
  return common
}

/** The lines that are not in both: `-` those of the first, `+` those of the second, each with its line number. */
export const difference = (first: string, second: string): ReadonlyArray<string> => {
  const some = first.split("\n")
  const others = second.split("\n")
  const common = commonFrom(some, others)
  const lines: Array<string> = []
  let i = 0
  let j = 0
  while (i < some.length || j < others.length) {
    if (i < some.length && j < others.length && some[i] === others[j]) {
      i++
      j++
    } else if (j >= others.length || (i < some.length && common[i + 1]![j]! >= common[i]![j + 1]!)) {
      lines.push(`${String(i + 1).padStart(4)} - ${some[i++]}`)
    } else {
      lines.push(`${String(j + 1).padStart(4)} + ${others[j++]}`)
    }
  }
  return lines
}
