// A lock file that names a server pins every machine to it. npm leaves the addresses out (see .npmrc), but an older npm
// or another setting would write them back.
import { readFileSync } from "node:fs"

interface Entry {
  readonly resolved?: string
  readonly link?: boolean
  readonly integrity?: string
}

const lock: { readonly packages: { readonly [path: string]: Entry } } = JSON.parse(
  readFileSync("package-lock.json", "utf8")
)
const problems = Object.entries(lock.packages).flatMap(([path, entry]) => {
  if (entry.resolved !== undefined) {
    return [`${path} has a download address`]
  }
  return path !== "" && entry.integrity === undefined && entry.link !== true ? [`${path} has no integrity hash`] : []
})
for (const problem of problems) {
  console.error(`package-lock.json: ${problem}`)
}
if (problems.length > 0) {
  console.error("Run `npm install` with the settings of .npmrc in force.")
  process.exitCode = 1
}
