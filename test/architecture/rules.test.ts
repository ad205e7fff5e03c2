/**
 * docs/rules.md lists what the library promises, and for each promise the test that would notice if it were broken.
 * Here: those tests exist.
 */
import { describe, expect, it } from "vitest"
import { textOf } from "./sources.ts"
import { collectTitles } from "./titles.ts"

interface Rule {
  readonly line: number
  readonly rule: string
  readonly titles: ReadonlyArray<string>
  readonly toCome: boolean
}

const toCome = "(to come)"
const [built] = textOf("docs/rules.md").split(/^## Not built yet$/m)

/** Rows of tables with two cells; the titles stand in backquotes. */
const rules: ReadonlyArray<Rule> = built!.split("\n").flatMap((text, index) => {
  const cells = text.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replaceAll("\\|", "|"))
  const [rule, tests] = cells
  return cells.length !== 2 || rule === undefined || tests === undefined || rule === "Rule" || /^-+$/.test(rule)
    ? []
    : [{
      line: index + 1,
      rule,
      titles: [...tests.matchAll(/`([^`]+)`/g)].map((match) => match[1]!),
      toCome: tests.includes(toCome)
    }]
})

const shown = ({ line, rule }: Rule) => `docs/rules.md:${line} ${rule}`

describe("rules", () => {
  it("each rule names a test", () => {
    expect(rules.length).toBeGreaterThan(0)
    expect(rules.filter((rule) => rule.titles.length === 0).map(shown)).toEqual([])
  })

  it("each test that a rule names exists", () => {
    const titles = collectTitles()
    const missing = rules.flatMap((rule) =>
      rule.titles.filter((title) => !titles.has(title)).map((title) => `${shown(rule)} -> ${title}`)
    )
    expect(missing).toEqual([])
  })

  it("no rule waits for its test", () => {
    expect(rules.filter((rule) => rule.toCome).map(shown)).toEqual([])
  })
})
