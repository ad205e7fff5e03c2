/**
 * The laws need no test runner of the project's: Node's own runs them on a user's store, and tells which one is broken.
 */
import { storeLaws } from "chamvi-effect/testing"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { runNodeTests } from "../../support/nodeTest.ts"

const file = fileURLToPath(new URL("nodeTest.ts", import.meta.url))

const nodeTest = (store: string) => runNodeTests(file, { STORE: store })

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
