/** The page for operators names every event, flag, metric and status that the source has, and no other. */
import { describe, expect, it } from "vitest"
import { filesMatching, textOf } from "../architecture/sources.ts"

const page = textOf("docs/operating.md")

/** The first column of the table whose header begins with `name`. */
const rowsOf = (name: string): ReadonlyArray<string> => {
  const [, table = ""] = page.split(new RegExp(`^\\| ${name} \\|.*\\n\\|[ -|]*\\n`, "m"))
  const [rows = ""] = table.split("\n\n")
  return [...rows.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name!).toSorted()
}

const quoted = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/"([^"]+)"/g)].map(([, name]) => name!).toSorted()

/** The part of a source file from `start` to the next blank line. */
const part = (path: string, start: string): string => {
  const text = textOf(path)
  const from = text.indexOf(start)
  return from === -1 ? "" : text.slice(from, text.indexOf("\n\n", from))
}

describe("docs/operating.md", () => {
  it("has every outcome of an event", () => {
    const outcomes = quoted(part("src/EffectEvent.ts", "export type Outcome"))
    expect(outcomes.length).toBeGreaterThan(5)
    expect(rowsOf("outcome")).toEqual(outcomes)
  })

  it("has every flag of an event", () => {
    const flags = [...part("src/EffectEvent.ts", "export interface Flags").matchAll(/readonly (\w+):/g)]
      .map(([, name]) => name!).toSorted()
    expect(flags.length).toBeGreaterThan(3)
    expect(rowsOf("flag")).toEqual(flags)
  })

  it("has every metric", () => {
    const metrics = filesMatching("src/**/*.ts").flatMap((path) =>
      [...textOf(path).matchAll(/"(chamvi_[a-z_]+)",\s*(?:"|\{\s*description)/g)].map(([, name]) => name!)
    ).toSorted()
    expect(metrics.length).toBeGreaterThan(5)
    expect(rowsOf("metric")).toEqual(metrics)
  })

  it("has every status of a run", () => {
    const statuses = quoted(part("src/engine/RunIndex.ts", "export type RunStatus"))
    expect(statuses.length).toBeGreaterThan(5)
    expect(rowsOf("status")).toEqual(statuses)
  })
})
