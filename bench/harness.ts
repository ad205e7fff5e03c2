/**
 * Interleaved measuring: every round runs every case once, so that a machine that slows down slows all of them. Reported
 * are medians and their ratios; single figures of one machine mean little.
 */
export interface Case {
  readonly name: string
  /** How many operations one run makes. */
  readonly operations: number
  readonly run: () => Promise<unknown> | unknown
}

export interface Measured {
  readonly name: string
  /** Microseconds per operation: the median over the rounds. */
  readonly micros: number
}

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

export const measure = async (cases: ReadonlyArray<Case>, rounds: number): Promise<ReadonlyArray<Measured>> => {
  const samples = cases.map((): Array<number> => [])
  for (let round = -Math.ceil(rounds / 4); round < rounds; round++) {
    for (const [i, { operations, run }] of cases.entries()) {
      const start = performance.now()
      await run()
      const micros = (performance.now() - start) / operations * 1000
      if (round >= 0) samples[i]!.push(micros)
    }
  }
  return cases.map(({ name }, i) => ({ name, micros: median(samples[i]!) }))
}

export interface Row {
  readonly name: string
  readonly micros: number
  /** What it is compared with. */
  readonly base: Measured | undefined
}

export const print = (title: string, rows: ReadonlyArray<Row>): void => {
  console.log(`\n${title}`)
  for (const { base, micros, name } of rows) {
    const compared = base === undefined
      ? ""
      : `   ${(micros / base.micros).toFixed(2)}x of ${base.name} (${micros >= base.micros ? "+" : ""}${
        (micros - base.micros).toFixed(1)
      } us)`
    console.log(`  ${name.padEnd(40)} ${micros.toFixed(1).padStart(9)} us${compared}`)
  }
}
