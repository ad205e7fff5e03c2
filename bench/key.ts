/** The effect key alone, for inputs of three sizes. */
import { fingerprint } from "chamvi-effect"
import { type Case, measure, print } from "./harness.ts"

const inputOf = (bytes: number): unknown => {
  const line = (i: number) => ({ id: i, name: `item ${i}`, price: i * 1.5, tags: ["a", "b"] })
  const input: { customer: string; items: Array<unknown> } = { customer: "ada", items: [] }
  while (JSON.stringify(input).length < bytes) input.items.push(line(input.items.length))
  return input
}

export const benchKey = async (): Promise<void> => {
  const sizes = [["94 B", {
    issue: 7,
    body: "Fixed in 1.4.2, please upgrade to it and tell us.",
    labels: ["bug", "done"]
  }], [
    "2 KB",
    inputOf(1_950)
  ], ["100 KB", inputOf(100_000)]] as const
  const cases = sizes.map(([name, input], i): Case => {
    const operations = [2_000, 200, 4][i]!
    return {
      name,
      operations,
      run: () => {
        for (let n = 0; n < operations; n++) fingerprint("bench", input)
      }
    }
  })
  print(
    "Effect key: canonical JSON and SHA-256",
    (await measure(cases, 60)).map((row) => ({ ...row, base: undefined }))
  )
}
