// Writes docs/guarantees.md: `npm run guarantees`. With `--check` it compares, and says what is not current.
import { Effect } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import { type Ledger, seesDeaths } from "./guarantees/deaths.ts"
import { difference } from "./guarantees/markdown.ts"
import { runMatrix } from "./guarantees/matrix.ts"
import { pageOf } from "./guarantees/page.ts"

const file = "docs/guarantees.md"

const deaths = Effect.map(
  Effect.forEach(
    ["durable", "fast", "program's"] as const,
    (ledger) => Effect.map(seesDeaths(ledger), (when) => [ledger, when] as const),
    // they wait for processes, and not for each other
    { concurrency: "unbounded" }
  ),
  (found) => Object.fromEntries(found) as Readonly<Record<Ledger, string>>
)

const page = Effect.map(
  Effect.all([runMatrix, deaths]),
  ([matrix, deaths]) => pageOf({ matrix, deaths, rules: readFileSync("docs/rules.md", "utf8") })
)

const written = (() => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
})()
const found = await Effect.runPromise(page)

if (!process.argv.includes("--check")) {
  writeFileSync(file, found)
  console.log(`${file} ${found === written ? "was current" : "is written"}`)
} else if (found === written) {
  console.log(`${file} is current`)
} else {
  console.log(`${file} is not what was found ("-" is the page, "+" what was found):`)
  console.log(difference(written, found).join("\n"))
  console.log("Where what was found is right, `npm run guarantees` writes the page anew.")
  process.exitCode = 1
}
