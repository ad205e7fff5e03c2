/**
 * The laws need no test runner of the project's: Node's own runs them on a user's store, and tells which one is broken.
 */
import { storeLaws } from "chamvi-effect/testing"
import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const file = fileURLToPath(new URL("nodeTest.ts", import.meta.url))

const nodeTest = async (store: string) => {
  const child = spawn(
    process.execPath,
    ["--conditions=chamvi-source", "--no-warnings", "--test", "--test-reporter=tap", file],
    // a child of a test of Node's runner would report to it
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, STORE: store, NODE_TEST_CONTEXT: undefined } }
  )
  const output = await text(child.stdout)
  const told = (mark: string) =>
    output.split("\n").flatMap((line) => line.match(new RegExp(`^ *${mark} \\d+ - (.*)`))?.[1] ?? [])
  return { passed: told("ok"), failed: told("not ok"), output }
}

describe("the laws with node:test", () => {
  it("pass for a store that keeps them", { timeout: 60_000 }, async () => {
    const { failed, passed } = await nodeTest("own")
    expect(failed).toEqual([])
    expect(passed.length).toBeGreaterThanOrEqual(Object.keys(storeLaws).length)
  })

  it("name the one that a store breaks", { timeout: 60_000 }, async () => {
    const { failed, output } = await nodeTest("optimistic")
    expect(failed).toContain("after a release its token can neither complete nor renew")
    expect(failed.length).toBeLessThan(20)
    expect(output).toContain("renew: expected \"lost\", got ok")
  })
})
