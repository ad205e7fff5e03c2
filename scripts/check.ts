// All static checks: one line each with its time, and the output of those that fail.
// `npm run check` runs all of them, `npm run check -- lint types` some.
import { spawn } from "node:child_process"

interface Check {
  readonly name: string
  /** A script of package.json. */
  readonly script: string
  /** What the output must hold; for tools that exit with 0 when they looked at nothing. */
  readonly proof?: RegExp
}

const checks: ReadonlyArray<Check> = [
  { name: "lockfile", script: "check:lockfile" },
  { name: "types", script: "check:types" },
  { name: "effect", script: "check:effect", proof: /Checked [1-9]\d* files/ },
  { name: "lint", script: "check:lint", proof: /on [1-9]\d* files/ },
  { name: "format", script: "check:format" },
  { name: "architecture", script: "check:architecture", proof: /^[1-9]\d* passed, 0 failed/m },
  { name: "guarantees", script: "check:guarantees", proof: /is current/ },
  { name: "build", script: "build" },
  { name: "publint", script: "check:publint" },
  { name: "attw", script: "check:attw" },
  { name: "consumer", script: "check:consumer" }
]

const run = (check: Check): Promise<boolean> =>
  new Promise((resolve) => {
    const start = performance.now()
    const child = spawn("npm", ["run", "--silent", check.script], { shell: process.platform === "win32" })
    let output = ""
    const collect = (chunk: Buffer) => {
      output += chunk.toString()
    }
    child.stdout.on("data", collect)
    child.stderr.on("data", collect)
    child.on("close", (code) => {
      const unproven = code === 0 && check.proof?.test(output) === false
      const ok = code === 0 && !unproven
      const seconds = ((performance.now() - start) / 1000).toFixed(1)
      console.log(`${ok ? "ok    " : "FAILED"} ${check.name.padEnd(14)} ${seconds.padStart(5)} s`)
      if (!ok) {
        const reason = unproven ? `exited with 0, but its output does not match ${check.proof}\n` : ""
        console.log(`${reason}${output.trim()}`.replace(/^/gm, "       "))
      }
      resolve(ok)
    })
  })

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !checks.some((check) => check.name === name))
if (unknown.length > 0) {
  console.error(`no such check: ${unknown.join(", ")}; there are ${checks.map((check) => check.name).join(", ")}`)
  process.exit(2)
}

const failed: Array<string> = []
for (const check of checks) {
  if (wanted.length === 0 || wanted.includes(check.name)) {
    if (!await run(check)) {
      failed.push(check.name)
    }
  }
}
console.log(failed.length === 0 ? "all checks passed" : `failed: ${failed.join(", ")}`)
process.exitCode = failed.length === 0 ? 0 : 1
